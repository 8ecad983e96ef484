// Writes its metrics into a file that the command names.
{
  type: 'program',
  command: [
    'python', 'examples/programs/sklearn_tfidf.py',
    '--train', '{train}', '--validation', '{validation}', '--test', '{test}',
    '--seed', '{seed}', '--output', '{directory}/metrics.json',
  ],
  data: import 'data.libsonnet',
}
