local common = import 'common.libsonnet';

common.lstm_baseline(300)
