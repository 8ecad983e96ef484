from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.beliefs.dirichlet_f_measure import DirichletFMeasure
from fiesta_allennlp.beliefs.split_paired import LogitSplitPaired, LogitUnpaired, SplitPaired, Unpaired
from fiesta_allennlp.beliefs.student_t import LogitStudentT, StudentT, StudentTPosterior

__all__ = [
    "Belief",
    "DirichletFMeasure",
    "LogitSplitPaired",
    "LogitStudentT",
    "LogitUnpaired",
    "Posterior",
    "SplitPaired",
    "StudentT",
    "StudentTPosterior",
    "Unpaired",
]
