local common = import 'common.libsonnet';

common.candidate(['text', 'target'], {
  type: 'ian',
  text_encoder: common.lstm(common.dim, 20),
  target_encoder: common.lstm(common.dim, 20),
})
