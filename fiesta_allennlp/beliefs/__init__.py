from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.beliefs.student_t import LogitStudentT, StudentT, StudentTPosterior

__all__ = ["Belief", "LogitStudentT", "Posterior", "StudentT", "StudentTPosterior"]
