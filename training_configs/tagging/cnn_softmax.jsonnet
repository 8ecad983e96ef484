local common = import 'common.libsonnet';

common.softmax('cnn')
