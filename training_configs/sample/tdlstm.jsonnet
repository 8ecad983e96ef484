local common = import 'common.libsonnet';

common.candidate(['left', 'right'], {
  type: 'td_lstm',
  left_encoder: common.lstm(common.dim, 20),
  right_encoder: common.lstm(common.dim, 20),
})
