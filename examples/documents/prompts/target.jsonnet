(import 'service.libsonnet').asked(|||
  What does the sentence say about the target: Positive, Negative or Neutral? Answer with one word.
  Sentence: ${text}
  Target: ${target}
|||, cost=0.0003)
