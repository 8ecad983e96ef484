local common = import 'common.libsonnet';

common.candidate(false, 'crf')
