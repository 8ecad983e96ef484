"""Stopping rules: when a winner is certain enough, and which runs it misses."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Tuple

import numpy as np
from scipy.special import ndtr, ndtri

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.core.defaults import STOPPING_RULE
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.probability.collapsed import collapsed_runs
from fiesta_allennlp.probability.confidence_sequence import max_log_evidence, unpaired_log_evidence, unpaired_threshold
from fiesta_allennlp.strategies.base import fill_evenly
from fiesta_allennlp.strategies.decision import Decision

MAX_COLLAPSE_RATE = 0.25
"""A candidate with more collapsed runs than this does not count as the best."""

MIN_POWER, MAX_RUNS_PER_WINNER = 0.3, 500
"""`early_looks` gives up where the runs that the limit leaves decide with a probability below the first number, and
each winner then costs more runs than the second: the remaining runs divided by that probability."""

NUM_STARTS = 3
"""Runs that every candidate begins with. Of two runs, a candidate with five times the noise of the others looks like
them one time in four, and may never run again."""


class StoppingRule(Registrable):
    """Decides whether the winner of a decision is certain enough, and if not, which runs it misses.

    A rule holds no state. It does not influence which candidates run next, except for the runs that it misses.
    """

    default = STOPPING_RULE

    stops_at_probability: bool = False
    """Whether the rule needs a posterior probability of the winner of at least the confidence, and then only runs."""

    @abstractmethod
    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        """Return the candidates to run again before `decision.best` is named, one for each run, in order.

        An empty tuple means that this candidate is the best within `decision.margin`, with this confidence.
        `None` means that the sampling rule goes on. Requires at least two active candidates.
        """

    def starts(self, belief: Belief) -> int:
        """Return the number of runs that every candidate begins with."""
        return belief.min_evaluations

    def least_runs(self, confidence: float) -> int:
        """Return how many finished runs a winner and its nearest rival need, whatever the scores are."""
        return 0

    def least_runs_after(self, history: History, confidence: float) -> int:
        """Return what `least_runs` does for a selection with this history."""
        return self.least_runs(confidence)

    def allowed_error(self, num_runs: np.ndarray, confidence: float) -> np.ndarray:
        """Return the largest 1 - P(winner) at which the rule stops, where the winner and its nearest rival have at
        least `num_runs` runs. Shapes: `(...,)` both."""
        return np.full(np.shape(num_runs), 1 - confidence)

    def is_hopeless(self, history: History, decision: Decision, confidence: float, room: int) -> bool:
        """Return whether the `room` runs that the limit leaves are too few to go on for."""
        if decision.posterior is None:
            return False
        lead = find_lead(history, decision)
        return bool(self.gives_up(lead.size, lead.variances, lead.num_runs, confidence, np.array(room)))

    def gives_up(
        self, lead: np.ndarray, variances: np.ndarray, num_runs: np.ndarray, confidence: float, room: np.ndarray
    ) -> np.ndarray:
        """Return whether `room` runs are too few to go on for, with the arguments of `predictive_power`."""
        return np.zeros(np.shape(lead), dtype=bool)


@StoppingRule.register("bayesian")
class BayesianStop(StoppingRule):
    """Stops when the posterior probability of the winner is at least the confidence (FIESTA, section 4.2).

    The share of wrong winners is below 1 - confidence on average over problems drawn from the prior. This does not hold
    for each single problem, and not if two candidates are equal. The reason is that the rule checks the probabilities
    after every run and stops as soon as one is high enough. Use it to reproduce the paper.
    """

    stops_at_probability = True

    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        prob_best = decision.confidence
        return () if prob_best is not None and prob_best >= confidence else None


def rule_of_three_runs(confidence: float) -> int:
    """Return after how many runs without a failure the rate of failures is below `MAX_COLLAPSE_RATE` (the rule of
    three)."""
    return math.ceil(round(-math.log(1 - confidence) / MAX_COLLAPSE_RATE, 9))


@StoppingRule.register("rule_of_three")
class RuleOfThree(BayesianStop):
    """Stops as `bayesian` does, if neither unseen collapsed runs nor skewed scores could explain the
    lead.

    The winner and its nearest rival both need n runs, with delta = 1 - confidence::

        n >= ln(1 / delta) / 0.25

    After n runs of which none collapsed, such runs are rarer than ln(1 / delta) / n with confidence 1 - delta (the rule
    of three: 3 / n at .95). More frequent ones have shown themselves by then: the rule asks for 7 runs at .8, 12 at .95
    and 19 at .99.

    Collapsed runs that have shown skew the scores, and the mean of a few such scores tends to be too high. Let d be the
    lead of the winner over its nearest rival, plus the margin, and s and g the standard deviation and the skewness of
    this estimate. If g is below 0, the rule also asks for (Hall, 1992)::

        Phi(t + g t^2 / 3 + g^2 t^3 / 27 + g / 6) >= confidence,   t = d / s

    Until then, the two candidates run again. Use the rule if runs collapse at times: it takes about a quarter
    more runs than `early_looks`, and names fewer candidates that have not collapsed yet.
    """

    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        if super().missing_runs(history, decision, confidence) is None or decision.posterior is None:
            return None
        return self.missing_runs_of_pair(history, decision, confidence)

    def missing_runs_of_pair(self, history: History, decision: Decision, confidence: float) -> Tuple[str, ...]:
        """Return what is missing although the posterior probability of the winner is high enough."""
        lead = find_lead(history, decision)
        num_finished_by_name = {name: history.num_finished(name) for name in lead.names}
        if missing_runs := fill_evenly(num_finished_by_name, target_runs=self.least_runs(confidence)):
            return tuple(missing_runs)
        skewness = skewness_of_mean_difference(*(_scores_by_split(history, name) for name in num_finished_by_name))
        is_real = is_lead_confident(lead.size, sd=lead.sd, skewness=skewness, confidence=confidence)
        return () if is_real else tuple(sorted(num_finished_by_name, key=num_finished_by_name.__getitem__))

    def starts(self, belief: Belief) -> int:
        # Counts tell the noise of a single run.
        return belief.min_evaluations if belief.needs_counts else max(NUM_STARTS, belief.min_evaluations)

    def least_runs(self, confidence: float) -> int:
        return rule_of_three_runs(confidence)


@StoppingRule.register(STOPPING_RULE)
class EarlyLooks(BayesianStop):
    """Stops at the confidence, but asks for more than that after few runs. It is the default.

    The rule looks after every run. A lead of few runs is often luck, and changes with each of them. With
    delta = 1 - confidence, n the runs of the winner or of its nearest rival, whichever has fewer, and m the runs that
    `rule_of_three` asks for, it stops when::

        1 - P(winner) <= delta min(1, n / m)

    At 0.95, m is 12: the rule asks for 0.9875 after 3 runs each and for 0.95 from 12 runs on, so that two clearly
    different candidates need little more than their starting runs.

    Once a run of any candidate has collapsed (`fiesta_allennlp.probability.collapsed`), others may collapse too, and
    the rule also asks for what `rule_of_three` does. No rule can know of collapses that no run has shown. If yours
    collapse at times, use `rule_of_three` from the start.

    The rule gives up where the R runs that the limit leaves reach the confidence with a probability below 0.3, and
    below R / 500; see `predictive_power`. So each further winner costs more than 500 runs.
    """

    rule_of_three = RuleOfThree()

    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        if super().missing_runs(history, decision, confidence) is None or decision.posterior is None:
            return None
        num_runs = min(history.num_finished(name) for name in find_lead(history, decision).names)
        if 1 - (decision.confidence or 0.0) > self.allowed_error(np.array(num_runs), confidence):
            return None
        return self.rule_of_three.missing_runs_of_pair(history, decision, confidence) if collapsed_runs(history) else ()

    def starts(self, belief: Belief) -> int:
        return self.rule_of_three.starts(belief)

    def least_runs_after(self, history: History, confidence: float) -> int:
        return self.rule_of_three.least_runs(confidence) if collapsed_runs(history) else 0

    def allowed_error(self, num_runs: np.ndarray, confidence: float) -> np.ndarray:
        return (1 - confidence) * np.minimum(1, num_runs / self.rule_of_three.least_runs(confidence))

    def gives_up(
        self, lead: np.ndarray, variances: np.ndarray, num_runs: np.ndarray, confidence: float, room: np.ndarray
    ) -> np.ndarray:
        power = predictive_power(lead, variances, num_runs, confidence, room)
        return power < np.minimum(MIN_POWER, room / MAX_RUNS_PER_WINNER)


@dataclass(frozen=True)
class Lead:
    """The lead of the winner over its nearest rival: their `names`, its `size` with the margin, and the variances of
    both means and the numbers of runs. Shape: `(2,)` both."""

    names: Tuple[str, str]
    size: float
    variances: np.ndarray
    num_runs: np.ndarray

    @property
    def sd(self) -> float:
        return math.sqrt(self.variances.sum())


def find_lead(history: History, decision: Decision) -> Lead:
    """Find the winner of an decision that has a posterior, and the candidate that it leads by least."""
    assert decision.posterior is not None
    names, location, scale = history.active, decision.posterior.location, decision.posterior.scale
    best = names.index(str(decision.best))
    leads = location[best] - location + decision.margin
    leads[best] = np.inf
    pair = [best, int(np.argmin(leads))]
    first, second = (names[index] for index in pair)
    num_runs = np.array([history.num_finished(name) for name in (first, second)])
    return Lead((first, second), float(leads[pair[1]]), scale[pair] ** 2, num_runs)


def predictive_power(
    lead: np.ndarray, variances: np.ndarray, num_runs: np.ndarray, confidence: float, room: np.ndarray
) -> np.ndarray:
    """Return the probability that `room` more runs put the winner and its nearest rival apart with this confidence.

    The posterior lead is d with variance v. Half of the runs go to each of the two, which leaves the variance v'. By
    then the lead has moved by a normal variable with mean 0 and variance v - v', so that, with z the normal quantile of
    the confidence::

        Phi((d - z sqrt(v')) / sqrt(v - v')) + Phi((-d - z sqrt(v')) / sqrt(v - v'))

    Other candidates only make it smaller. It is 1 where the noise is not known yet.

    Args:
        lead: d, with the margin. Shape: `(...,)`, also that of `room`.
        variances: those of the means of the two, which add up to v. Shape: `(..., 2)`.
        num_runs: their finished runs. Shape: `(..., 2)`.
    """
    later_variance = (variances * num_runs / (num_runs + np.asarray(room)[..., None] / 2)).sum(axis=-1)
    moved_variance = variances.sum(axis=-1) - later_variance
    required_lead = ndtri(confidence) * np.sqrt(later_variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = sum(ndtr((size - required_lead) / np.sqrt(moved_variance)) for size in (lead, -lead))
    return np.where(moved_variance > 0, power, np.asarray(room) > 0)


def _scores_by_split(history: History, candidate: str) -> Dict[int, float]:
    return dict(zip(history.split_seeds(candidate).tolist(), history.scores(candidate).tolist(), strict=True))


def is_lead_confident(lead: float, *, sd: float, skewness: float, confidence: float) -> bool:
    """Return whether the true lead is above 0 with this confidence, although its estimate is skewed (Hall, 1992).

    `sd` and `skewness` are those of the estimate. A positive skewness, which would make the lead larger, is left out.
    """
    if sd == 0 or skewness >= 0:
        return True
    t = lead / sd
    skew_t = skewness * t
    return bool(ndtr(t * (1 + skew_t / 3 + skew_t * skew_t / 27) + skewness / 6) >= confidence)


def skewness_of_mean_difference(winner_scores: Mapping[int, float], rival_scores: Mapping[int, float]) -> float:
    """Estimate the skewness of the mean difference of two candidates, whose scores are by split.

    It is that of the mean of the differences on common splits, or if there are fewer than three, of the difference of
    the two means. It is 0 if the scores do not vary.
    """
    common_splits = [split for split in winner_scores if split in rival_scores]
    if len(common_splits) > 2:
        samples = [[winner_scores[split] - rival_scores[split] for split in common_splits]]
    else:
        samples = [list(winner_scores.values()), [-score for score in rival_scores.values()]]
    cumulants = np.sum([_cumulants_of_mean(np.array(sample)) for sample in samples if len(sample) > 2], axis=0)
    variance, third_cumulant = cumulants if np.any(cumulants) else (1.0, 0.0)
    return float(third_cumulant / variance**1.5)


def _cumulants_of_mean(sample: np.ndarray) -> Tuple[float, float]:
    """Variance and third cumulant of the mean, without bias (Fisher's k-statistics). Shape: `(num_scores,)`."""
    num_scores, deviations = len(sample), sample - sample.mean()
    variance = (deviations**2).sum() / (num_scores - 1)
    third_cumulant = (deviations**3).sum() * num_scores / ((num_scores - 1) * (num_scores - 2))
    return float(variance / num_scores), float(third_cumulant / num_scores**2)


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
    each with its own variance; see `unpaired_log_evidence`.

    The rule assumes normal scores with unknown variances, and failures that do not depend on scores. Jourdan, Degenne
    and Kaufmann (2022) treat likelihood ratios for unknown variances; the thresholds here are derived from mixtures.
    The tests are about mean scores, with a logit model too. The probability in the decision is still that of the model
    of the scores.

    Use it if a false winner costs more than runs do. It needs several runs of the weak candidates as well, so combine
    it with `ttts` or `non_adaptive_fc`. `thompson` and `bts` stop running weak candidates too early.
    """

    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        if decision.best is None:
            return None
        error = (1 - confidence) / len(history.candidates)
        winner = _first_scores_by_split(history, decision.best)
        rivals = (_first_scores_by_split(history, name) for name in history.active if name != decision.best)
        return () if all(_is_significantly_better(winner, rival, decision.margin, error) for rival in rivals) else None


def _first_scores_by_split(history: History, candidate: str) -> Dict[int, float]:
    """The first score on every split by its seed, in order of replicates, up to the first that is pending."""
    pending_replicates = [request.replicate for request in history.pending if request.candidate == candidate]
    first_pending = min(pending_replicates, default=math.inf)
    by_split: Dict[int, float] = {}
    for evaluation in sorted(history.evaluations_of(candidate), key=lambda evaluation: evaluation.request.replicate):
        if evaluation.request.replicate < first_pending:
            by_split.setdefault(evaluation.request.split_seed, history.sign * evaluation.score)
    return by_split


def _is_significantly_better(winner: Dict[int, float], rival: Dict[int, float], margin: float, error: float) -> bool:
    """Whether mean of `winner` <= mean of `rival` - margin is rejected at this level, over all times."""
    common_splits = [split for split in winner if split in rival]
    if common_splits:
        differences = np.array([winner[split] - rival[split] + margin for split in common_splits])
        return max_log_evidence(differences) >= -math.log(error)
    if not winner or not rival:
        return False
    winner_sample, rival_sample = np.array(list(winner.values())) + margin, np.array(list(rival.values()))
    return unpaired_log_evidence(winner_sample, rival_sample) >= unpaired_threshold(error)
