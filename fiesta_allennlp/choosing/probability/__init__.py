"""Arrays in, numbers out."""

# ruff: noqa: F401
from fiesta_allennlp.choosing.probability.independent_t import check_margin, logit, prob_best

__all__ = ["batch", "leads"]
