// What the programs read. Paths are relative to the repository root.
{
  train: 'examples/programs/data/train.jsonl',
  test: 'examples/programs/data/test.jsonl',
  format: 'jsonl',
}
