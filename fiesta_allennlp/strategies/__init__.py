# ruff: noqa: F401
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.bts import BatchThompson
from fiesta_allennlp.strategies.fixed_budget import FixedBudget
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.non_adaptive import NonAdaptiveFixedBudget, NonAdaptiveFixedConfidence
from fiesta_allennlp.strategies.sequential_halving import SequentialHalving
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule
from fiesta_allennlp.strategies.thompson import Thompson
from fiesta_allennlp.strategies.top_two import TopTwo, TopTwoThompson
