"""Posteriors of the candidates' means, from a history."""

# ruff: noqa: F401
from fiesta_allennlp.choosing.beliefs.belief import Belief, Lead, MeanPosterior, Posterior
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import DirichletFMeasure
from fiesta_allennlp.choosing.beliefs.paired_measure import MeasurePosterior, PairedMeasure
from fiesta_allennlp.choosing.beliefs.student_t import LogitStudentT, ModeratedT, StudentT, StudentTPosterior

__all__ = ["belief", "dirichlet_f_measure", "student_t"]
