// The words vote. The data are those of the examples with programs.
{
  dataset_reader: { type: 'opinions' },
  train_data_path: 'examples/programs/data/train.jsonl',
  test_data_path: 'examples/programs/data/test.jsonl',
  model: { type: 'majority_vote', dropout: 0.2 },
  data_loader: { batch_size: 32, shuffle: true },
  trainer: { optimizer: { type: 'adam', lr: 0.1 }, num_epochs: 10, validation_metric: '+accuracy' },
}
