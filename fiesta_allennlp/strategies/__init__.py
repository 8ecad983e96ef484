# ruff: noqa: F401
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.fixed_budget import (
    FixedBudget,
    NonAdaptiveFixedBudget,
    NonAdaptiveFixedConfidence,
    SequentialHalving,
)
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule
from fiesta_allennlp.strategies.thompson import BatchThompson, Thompson, TopTwo, TopTwoThompson
