// What all candidates have in common, so that the models' architecture is the only difference between them.
// FIESTA_DATA is the directory of the SemEval-2014 files. FIESTA_VECTORS is a file of word vectors in GloVe's text
// format, where %d stands for the number of dimensions.
local data = std.extVar('FIESTA_DATA');
local vectors = std.extVar('FIESTA_VECTORS');

{
  vectors_path(dim):: if std.length(std.findSubstr('%d', vectors)) > 0 then vectors % dim else vectors,

  // Dropout goes with the larger vectors: the paper's 50-dimensional candidates have none.
  dropout(dim):: if dim > 50 then 0.5 else 0.0,

  lstm(input_dim, dim):: { type: 'unpacked_lstm', input_size: input_dim, hidden_size: dim },

  // `inputs` are the text fields that the model reads.
  candidate(dim, inputs, model):: {
    dataset_reader: {
      type: 'semeval_tdsa',
      inputs: inputs,
    },
    train_data_path: data + '/Restaurants_Train_v2.xml',
    test_data_path: data + '/Restaurants_Test_Gold.xml',
    evaluate_on_test: true,
    model: {
      text_field_embedder: {
        token_embedders: {
          tokens: {
            type: 'embedding',
            embedding_dim: dim,
            pretrained_file: $.vectors_path(dim),
            trainable: true,
          },
        },
      },
      dropout: $.dropout(dim),
      variational_dropout: $.dropout(dim),
    } + model,
    data_loader: { batch_size: 32, shuffle: true, collate_fn: 'token_ids' },
    trainer: {
      optimizer: { type: 'adam' },
      num_epochs: 100,
      patience: 5,
      validation_metric: '+accuracy',
    },
  },

  tdlstm(dim):: $.candidate(dim, ['left', 'right'], {
    type: 'td_lstm',
    left_encoder: $.lstm(dim, dim),
    right_encoder: $.lstm(dim, dim),
  }),

  lstm_baseline(dim):: $.candidate(dim, ['text'], {
    type: 'target_lstm',
    text_encoder: $.lstm(dim, dim),
  }),

  atae(dim):: $.candidate(dim, ['text', 'target'], {
    type: 'atae_lstm',
    target_encoder: { type: 'boe', embedding_dim: dim, averaged: true },
    text_encoder: $.lstm(2 * dim, dim),
  }),

  ian(dim):: $.candidate(dim, ['text', 'target'], {
    type: 'ian',
    text_encoder: $.lstm(dim, dim),
    target_encoder: $.lstm(dim, dim),
  }),
}
