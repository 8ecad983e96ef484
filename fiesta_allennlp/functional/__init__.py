"""Select the best of several models that are plain Python functions: no configs, no AllenNLP models, no command line.

The calls are those of the package that accompanies the FIESTA paper, without its argument `samples`. A model is a
function of a training set and a test set that returns a score; more is better. Without an `rng`, every call makes fresh
random choices.
"""

from fiesta_allennlp.functional.calls import BTS, TTTS, non_adaptive_fb, non_adaptive_fc, sequential_halving

__all__ = ["BTS", "TTTS", "non_adaptive_fb", "non_adaptive_fc", "sequential_halving"]
