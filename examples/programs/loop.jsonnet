// Prints its metrics as the last line of its output.
{
  type: 'program',
  command: [
    'python', 'examples/programs/pytorch_loop.py',
    '--train', '{train}', '--validation', '{validation}', '--test', '{test}',
    '--seed', '{seed}',
  ],
  data: import 'data.libsonnet',
  metrics: 'stdout',
}
