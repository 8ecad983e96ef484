from fiesta_allennlp.probability.student_t import check_margin, prob_best
from fiesta_allennlp.probability.transforms import logit

__all__ = ["check_margin", "logit", "prob_best"]
