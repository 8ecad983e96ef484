local common = import 'common.libsonnet';

// Three units that do not gate what they remember.
local rnn = { type: 'rnn', input_size: common.dim, hidden_size: 3 };

common.candidate(['left', 'right'], {
  type: 'td_lstm',
  left_encoder: rnn,
  right_encoder: rnn,
})
