// Reports `accuracy`, without the prefix of Hugging Face's Trainer, and leaves its model in the directory of the run.
{
  type: 'program',
  command: [
    'python', 'examples/programs/hf_trainer.py',
    '--train', '{train}', '--validation', '{validation}', '--test', '{test}',
    '--seed', '{seed}', '--output', '{directory}',
  ],
  data: import 'data.libsonnet',
  environment: { TOKENIZERS_PARALLELISM: 'false' },
}
