local common = import 'common.libsonnet';

common.crf('none')
