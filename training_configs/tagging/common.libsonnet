// What all candidates have in common, so that the characters and the layer on top are the only differences between them.
// FIESTA_TAGGING names the files, separated by commas: training, validation and test set; training and test set; or one
// file for all. FIESTA_VECTORS is a file of word vectors in GloVe's text format, where %d stands for the number of
// dimensions.
local files = std.split(std.extVar('FIESTA_TAGGING'), ',');
local vectors = std.extVar('FIESTA_VECTORS');

local word_dim = 100;
local character_dim = 30;
local characters_dim = 50;
local hidden_dim = 100;

local embedders = {
  none: {},
  cnn: {
    type: 'cnn',
    embedding_dim: character_dim,
    num_filters: characters_dim,
    ngram_filter_sizes: [3],
    output_dim: characters_dim,  // a linear layer after the CNN
  },
  lstm: { type: 'lstm', input_size: character_dim, hidden_size: characters_dim / 2, bidirectional: true },
};

{
  vectors_path:: if std.length(std.findSubstr('%d', vectors)) > 0 then vectors % word_dim else vectors,

  // `characters` is 'none', 'cnn' or 'lstm'; `model` has the model's type and its own options.
  candidate(characters, model):: {
    local has_characters = characters != 'none',

    dataset_reader: {
      type: 'tagged_columns',
      encoding: 'IOB1',  // also reads files in BIO
      convert_to: 'BIO',
      document_prefix: '-DOCSTART-',
      token_indexers: {
        tokens: { type: 'single_id', lowercase_tokens: true },
        [if has_characters then 'characters']: { type: 'characters', min_padding_length: 3 },
      },
    },
    train_data_path: files[0],
    [if std.length(files) == 3 then 'validation_data_path']: files[1],
    [if std.length(files) > 1 then 'test_data_path']: files[std.length(files) - 1],
    evaluate_on_test: std.length(files) > 1,
    model: {
      text_field_embedder: {
        token_embedders: {
          tokens: {
            type: 'embedding',
            embedding_dim: word_dim,
            pretrained_file: $.vectors_path,
            trainable: true,
          },
          [if has_characters then 'characters']: {
            type: 'distinct_character_encoding',
            embedding: { embedding_dim: character_dim, vocab_namespace: 'token_characters' },
            encoder: embedders[characters],
          },
        },
      },
      encoder: {
        type: 'unpacked_lstm',
        input_size: word_dim + (if has_characters then characters_dim else 0),
        hidden_size: hidden_dim,
        bidirectional: true,
      },
      dropout: 0.5,
      label_encoding: 'BIO',
      loss: 'sum',
    } + model,
    data_loader: {
      batch_sampler: { type: 'bucket', batch_size: 64, sorting_keys: ['tokens'] },
      collate_fn: 'token_ids',
    },
    trainer: {
      optimizer: { type: 'sgd', lr: 0.015, weight_decay: 1e-8 },
      learning_rate_scheduler: { type: 'exponential', gamma: 0.9524 },
      grad_clipping: 5,
      num_epochs: 1000,
      patience: 5,
    },
  },

  crf(characters):: $.candidate(characters, { type: 'crf_sequence_tagger' }),

  softmax(characters):: $.candidate(characters, { type: 'softmax_sequence_tagger' }),
}
