"""Leads, posteriors, who runs next, when to stop."""

# ruff: noqa: F401
from fiesta_allennlp.choosing.fixed_budget import NonAdaptiveFixedBudget, NonAdaptiveFixedConfidence, SequentialHalving
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.sampling_rules import BatchThompson, Thompson, TopTwo, TopTwoThompson
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule
from fiesta_allennlp.choosing.strategy import Strategy

__all__ = ["fixed_budget", "fixed_confidence", "forecast", "sampling_rules", "stopping_rules", "strategy", "t_tests"]
