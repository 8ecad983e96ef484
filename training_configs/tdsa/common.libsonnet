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

  embedder(dim):: {
    token_embedders: {
      tokens: {
        type: 'embedding',
        embedding_dim: dim,
        pretrained_file: $.vectors_path(dim),
        trainable: true,
      },
    },
  },

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
      text_field_embedder: $.embedder(dim),
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

  // In the authors' released code, ATAE and IAN embed the target apart from the sentence, and drop hidden states.
  // `released=false` gives the models as their own papers describe them, but IAN without its tanh.
  released(dim):: { target_field_embedder: $.embedder(dim), state_dropout: $.dropout(dim) },

  atae(dim, released=true):: $.candidate(dim, ['text', 'target'], {
    type: 'atae_lstm',
    target_encoder: { type: 'boe', embedding_dim: dim, averaged: true },
    text_encoder: $.lstm(2 * dim, dim),
  } + if released then $.released(dim) {
    final_state: false,
    joint_fusion: true,
    initializer: { regexes: [['_attention.weight', { type: 'uniform', a: -0.01, b: 0.01 }]] },
  } else {}),

  ian(dim, released=true):: $.candidate(dim, ['text', 'target'], {
    type: 'ian',
    text_encoder: $.lstm(dim, dim),
    target_encoder: $.lstm(dim, dim),
  } + if released then $.released(dim) { tanh_logits: true } else {}),
}
