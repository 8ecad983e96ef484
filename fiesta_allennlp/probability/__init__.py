# ruff: noqa: F401
from fiesta_allennlp.probability.student_t import check_margin, logit, prob_best
