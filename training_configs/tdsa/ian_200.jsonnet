local common = import 'common.libsonnet';

common.ian(200)
