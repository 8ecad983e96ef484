local common = import 'common.libsonnet';

common.softmax('none')
