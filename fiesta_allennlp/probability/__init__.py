from fiesta_allennlp.probability.student_t import check_margin, logit, prob_best

__all__ = ["check_margin", "logit", "prob_best"]
