"""When a winner is sure enough to stop."""

import math
from typing import Dict

import numpy as np
from allennlp.common import Registrable

from fiesta_allennlp.probability.confidence_sequence import apart_log_evidence, apart_threshold, highest_log_evidence
from fiesta_allennlp.records import Decision, History


class StoppingRule(Registrable):
    """Says whether the winner of a decision is sure. Holds no state, and has no part in what is trained next."""

    default_implementation = "bayesian"

    def is_sure(self, history: History, decision: Decision, confidence: float) -> bool:
        """Whether `decision.best` is known to be the best, within `decision.margin`, with this confidence.

        There are at least two active candidates.
        """
        raise NotImplementedError


@StoppingRule.register("bayesian")
class BayesianStop(StoppingRule):
    """Stops when the posterior gives the winner a probability of at least the confidence (FIESTA, section 4.2).

    The share of wrong winners is below 1 - confidence on average over problems as the prior has them. It is not for
    each single problem, and not where two candidates are equal: the probabilities are looked at after every
    evaluation and stop at their first high.
    """

    def is_sure(self, history: History, decision: Decision, confidence: float) -> bool:
        return decision.confidence is not None and decision.confidence >= confidence


@StoppingRule.register("glr")
class GeneralizedLikelihoodRatioStop(StoppingRule):
    """Stops when time-uniform likelihood ratio tests put the winner above every other active candidate.

    With N candidates and delta = 1 - confidence it must reject, at level delta / N each, mean_a <= mean_b - margin for
    the winner a and every other b. Then, whatever is trained next and however often it is looked at::

        P(it ever stops with an a for which this is true of some b) <= delta

    For take a b of the largest mean. A wrong winner other than b needs a false rejection against b: at most N - 1
    pairs. Where b itself is the wrong winner, another candidate has the same mean (and margin is 0): one more.

    On shared splits the test is of the differences on common splits, D_k = x_{a,k} - x_{b,k}; see
    `fiesta_allennlp.probability.confidence_sequence.log_evidence`. Their sequence is fixed beforehand, whatever the
    strategy takes: its choices say only how much of it is seen. Of several evaluations on one split the first counts;
    after a replicate that is pending for one of the two nothing counts until it finishes; a failed one is left out.
    Without common splits the two samples are taken as independent, with variances of their own; see
    `apart_log_evidence`.

    Normal scores with unknown variances are assumed, and failures that have nothing to do with scores. Likelihood
    ratios for unknown variances: Jourdan, Degenne and Kaufmann (2022); the thresholds here are derived from mixtures.
    The tests are about mean scores, with a logit belief too. The decision's own probability stays the belief's.

    Use it where a false winner costs more than trainings do. It needs several evaluations of the weak candidates as
    well: take it with `ttts` or `non_adaptive_fc`; `thompson` and `bts` leave off evaluating these too soon.
    """

    def is_sure(self, history: History, decision: Decision, confidence: float) -> bool:
        if decision.best is None:
            return False
        error = (1 - confidence) / len(history.candidates)
        winner = _settled(history, decision.best)
        rivals = (_settled(history, name) for name in history.active if name != decision.best)
        return all(_is_above(winner, rival, decision.margin, error) for rival in rivals)


def _settled(history: History, candidate: str) -> Dict[int, float]:
    """The first score on every split by its seed, in order of replicates, up to the first that is pending."""
    pending = [request.replicate for request in history.pending if request.candidate == candidate]
    end = min(pending, default=math.inf)
    own = (evaluation for evaluation in history.evaluations if evaluation.request.candidate == candidate)
    by_split: Dict[int, float] = {}
    for evaluation in sorted(own, key=lambda evaluation: evaluation.request.replicate):
        if evaluation.request.replicate < end:
            by_split.setdefault(evaluation.request.split_seed, evaluation.score)
    return by_split


def _is_above(winner: Dict[int, float], rival: Dict[int, float], margin: float, error: float) -> bool:
    """Whether mean of `winner` <= mean of `rival` - margin is rejected at this level, over all times."""
    common = [split for split in winner if split in rival]
    if common:
        differences = np.array([winner[split] - rival[split] + margin for split in common])
        return highest_log_evidence(differences) >= -math.log(error)
    if not winner or not rival:
        return False
    higher, lower = np.array(list(winner.values())) + margin, np.array(list(rival.values()))
    return apart_log_evidence(higher, lower) >= apart_threshold(error)
