// Small candidates over the sample corpus of `data/sample`; paths are relative to the repository root.
local dim = 25;

{
  lstm(input_dim, hidden_dim):: { type: 'unpacked_lstm', input_size: input_dim, hidden_size: hidden_dim },

  dim:: dim,

  candidate(inputs, model):: {
    dataset_reader: { type: 'semeval_tdsa', inputs: inputs },
    train_data_path: 'data/sample/restaurants_train.xml',
    test_data_path: 'data/sample/restaurants_test.xml',
    evaluate_on_test: true,
    model: {
      text_field_embedder: {
        token_embedders: {
          tokens: {
            type: 'embedding',
            embedding_dim: dim,
            pretrained_file: 'data/sample/vectors.25d.txt',
            trainable: false,
          },
        },
      },
    } + model,
    data_loader: {
      batch_sampler: { type: 'bucket', batch_size: 32, sorting_keys: [inputs[0]] },
      collate_fn: 'token_ids',
    },
    trainer: {
      optimizer: { type: 'adam', lr: 0.01 },
      num_epochs: 12,
      patience: 4,
      validation_metric: '+accuracy',
    },
  },
}
