# ruff: noqa: F401
from fiesta_allennlp.beliefs.base import Belief, Lead, MeanPosterior, Posterior
from fiesta_allennlp.beliefs.dirichlet_f_measure import DirichletFMeasure
from fiesta_allennlp.beliefs.moderated_t import ModeratedT, ModeratedTPosterior
from fiesta_allennlp.beliefs.paired_measure import MeasurePosterior, PairedMeasure
from fiesta_allennlp.beliefs.student_t import LogitStudentT, StudentT, StudentTPosterior
