"""When a winner is sure enough to stop."""

import math
from typing import Dict

import numpy as np

from fiesta_allennlp.probability.confidence_sequence import apart_log_evidence, apart_threshold, highest_log_evidence
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.registry import Registrable


class StoppingRule(Registrable):
    """Decides whether the winner of a decision is certain enough.

    A rule holds no state and does not influence which candidates run next.
    """

    default = "bayesian"

    def is_sure(self, history: History, decision: Decision, confidence: float) -> bool:
        """Return whether `decision.best` is the best within `decision.margin`, with this confidence.

        Requires at least two active candidates.
        """
        raise NotImplementedError


@StoppingRule.register("bayesian")
class BayesianStop(StoppingRule):
    """Stops when the posterior probability of the winner is at least the confidence (FIESTA, section 4.2).

    The share of wrong winners is below 1 - confidence on average over problems drawn from the prior. This does not hold
    for each single problem, and not if two candidates are equal. The reason is that the rule checks the probabilities
    after every run and stops as soon as one is high enough.
    """

    def is_sure(self, history: History, decision: Decision, confidence: float) -> bool:
        return decision.confidence is not None and decision.confidence >= confidence


@StoppingRule.register("glr")
class GeneralizedLikelihoodRatioStop(StoppingRule):
    """Stops when anytime-valid likelihood ratio tests put the winner above every other active candidate.

    With N candidates and delta = 1 - confidence, the rule must reject mean_a <= mean_b - margin for the winner a and
    every other b, at level delta / N each. It then guarantees, for every sampling rule and any number of looks::

        P(it ever stops with an a for which this is true of some b) <= delta

    The proof takes a candidate b with the largest mean. A wrong winner other than b needs a false rejection against b,
    which is possible for at most N - 1 pairs. If b itself is the wrong winner, another candidate has the same mean (and
    margin is 0), which adds one more pair.

    On shared splits, the test uses the differences on common splits, D_k = x_{a,k} - x_{b,k}; see
    `fiesta_allennlp.probability.confidence_sequence.log_evidence`. The sequence of these differences is fixed
    beforehand. The sampling rule only decides how much of it is observed. If a candidate has several runs on one split,
    only the first counts. After a replicate that is pending for one of the two, no later replicate counts until it
    finishes. Failed replicates are left out. Without common splits, the test treats the two samples as independent,
    each with its own variance; see `apart_log_evidence`.

    The rule assumes normal scores with unknown variances, and failures that do not depend on scores. Jourdan, Degenne
    and Kaufmann (2022) treat likelihood ratios for unknown variances; the thresholds here are derived from mixtures.
    The tests are about mean scores, with a logit model too. The probability in the decision is still that of the model
    of the scores.

    Use it if a false winner costs more than runs do. It needs several runs of the weak candidates as well, so combine
    it with `ttts` or `non_adaptive_fc`. `thompson` and `bts` stop running weak candidates too early.
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
    by_split: Dict[int, float] = {}
    for evaluation in sorted(history.evaluations_of(candidate), key=lambda evaluation: evaluation.request.replicate):
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
