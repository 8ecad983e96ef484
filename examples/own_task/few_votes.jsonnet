local votes = import 'votes.jsonnet';

votes { model+: { dropout: 0.8 } }
