// Small taggers over the WikiGold sentences of `data/wikigold`; paths are relative to the repository root.
local word_dim = 50;
local character_dim = 16;
local characters_dim = 30;
local hidden_dim = 50;

{
  // `layer` is 'crf' or 'softmax'.
  candidate(has_characters, layer):: {
    dataset_reader: {
      type: 'tagged_columns',
      encoding: 'IOB1',
      convert_to: 'BIO',
      document_prefix: '-DOCSTART-',
      token_indexers: {
        tokens: { type: 'single_id', lowercase_tokens: true },
        [if has_characters then 'characters']: { type: 'characters', min_padding_length: 3 },
      },
    },
    train_data_path: 'data/wikigold/wikigold.conll.txt',
    model: {
      type: layer + '_sequence_tagger',
      text_field_embedder: {
        token_embedders: {
          tokens: {
            type: 'embedding',
            embedding_dim: word_dim,
            pretrained_file: 'data/wikigold/glove.6B.50d.txt.gz',
            trainable: false,
          },
          [if has_characters then 'characters']: {
            type: 'distinct_character_encoding',
            embedding: { embedding_dim: character_dim, vocab_namespace: 'token_characters' },
            encoder: {
              type: 'cnn',
              embedding_dim: character_dim,
              num_filters: characters_dim,
              ngram_filter_sizes: [3],
            },
          },
        },
      },
      encoder: {
        type: 'unpacked_lstm',
        input_size: word_dim + (if has_characters then characters_dim else 0),
        hidden_size: hidden_dim,
        bidirectional: true,
      },
      dropout: 0.3,
      label_encoding: 'BIO',
    },
    data_loader: {
      batch_sampler: { type: 'bucket', batch_size: 32, sorting_keys: ['tokens'] },
      collate_fn: 'token_ids',
    },
    trainer: {
      optimizer: { type: 'adam', lr: 0.01 },
      num_epochs: 6,
      validation_metric: '+f1-measure-overall',
    },
  },
}
