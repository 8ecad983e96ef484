local common = import 'common.libsonnet';

common.candidate(true, 'softmax')
