local common = import 'common.libsonnet';

common.crf('cnn')
