local common = import 'common.libsonnet';

common.tdlstm(300)
