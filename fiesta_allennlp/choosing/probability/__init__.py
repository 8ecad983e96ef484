# ruff: noqa: F401
from fiesta_allennlp.choosing.probability.t_means import check_margin, logit, prob_best
