(import 'service.libsonnet').asked(|||
  Is this positive, negative or neutral? Answer with one word.
  Sentence: ${text}
|||, cost=0.0002)
