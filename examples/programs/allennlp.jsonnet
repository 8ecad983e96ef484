// A bag of word embeddings again, as an AllenNLP config over the same files.
local data = import 'data.libsonnet';
{
  dataset_reader: { type: 'text_classification_json', tokenizer: { type: 'whitespace' } },
  train_data_path: data.train,
  test_data_path: data.test,
  model: {
    type: 'basic_classifier',
    text_field_embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: 32 } } },
    seq2vec_encoder: { type: 'boe', embedding_dim: 32, averaged: true },
    dropout: 0.3,
  },
  data_loader: { batch_size: 32, shuffle: true },
  trainer: { optimizer: { type: 'adam', lr: 0.02 }, num_epochs: 15, validation_metric: '+accuracy' },
}
