local common = import 'common.libsonnet';

common.candidate(['text'], {
  type: 'target_lstm',
  text_encoder: common.lstm(common.dim, 20),
})
