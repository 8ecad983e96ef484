(import 'service.libsonnet').asked(|||
  What does the sentence say about the target: Positive, Negative or Neutral? Answer with one word.
  Example: "The soup was not fresh at all" says Negative about the soup.
  Example: "Nobody disliked the waiter" says Positive about the waiter.
  Sentence: ${text}
  Target: ${target}
|||, cost=0.0007)
