local common = import 'common.libsonnet';

common.atae(200)
