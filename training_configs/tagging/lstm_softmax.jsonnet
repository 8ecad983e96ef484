local common = import 'common.libsonnet';

common.softmax('lstm')
