local common = import 'common.libsonnet';

common.ian(300)
