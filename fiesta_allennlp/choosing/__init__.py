"""Leads, posteriors, who runs next, when to stop."""

# ruff: noqa: F401
from fiesta_allennlp.choosing.fixed_budget import NonAdaptiveFixedBudget, NonAdaptiveFixedConfidence, SequentialHalving
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule
from fiesta_allennlp.choosing.strategy import Strategy
from fiesta_allennlp.choosing.thompson import BatchThompson, Thompson, TopTwo, TopTwoThompson

__all__ = ["fixed_budget", "fixed_confidence", "forecast", "gate", "stopping_rules", "strategy", "t_tests", "thompson"]
