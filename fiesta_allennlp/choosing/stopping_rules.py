"""Stopping rules: when a winner is certain enough, and which runs it misses. At the end, evidence that a normal mean is
above 0, valid at all sample sizes at once, with the variance unknown."""

import math
from abc import abstractmethod
from typing import Dict, Optional, Tuple

import numpy as np
from scipy.special import gammainccinv, stdtr

from fiesta_allennlp.choosing.beliefs.belief import Belief
from fiesta_allennlp.choosing.probability import batch
from fiesta_allennlp.choosing.probability.batch import NUM_STARTS
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.choice_settings import STOPPING_RULE
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable

PRIOR_PRECISION = 0.5
"""g: the effect size of the mixture is half-normal with variance 1/g. In a simulation with 1,500 sequences of normal
differences, effect sizes 0.8 to 2 and thresholds 40 and 160, it took 8 to 25 differences to reach the threshold, and
0.5 came within 4% of the best of {0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 4} for each of them."""

NUM_GRID_CELLS = 400


class StoppingRule(Registrable):
    """Decides whether the winner of a decision is certain enough, and if not, which runs it misses.

    A rule holds no state. It does not influence which candidates run next, except for the runs that it misses.
    """

    default = STOPPING_RULE

    gives_up: bool = False
    """Whether a selection ends where the runs that are left are too few to go on for; see `batch.gives_up`."""

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

    def allowed_error(self, num_units: np.ndarray, confidence: float) -> np.ndarray:
        """Return the largest 1 - P(winner) at which the rule stops, where the winner and its nearest rival have at
        least `num_units` units. Shapes: `(...,)` both."""
        return np.full(np.shape(num_units), 1 - confidence)

    def is_hopeless(self, history: History, decision: Decision, confidence: float, room: int) -> bool:
        """Return whether the `room` runs that the limit leaves are too few to go on for."""
        names, best, rival_name = history.active, decision.best, decision.rival
        if not self.gives_up or decision.posterior is None or best is None or rival_name is None:
            return False
        num_units = np.array([[history.num_units(name) for name in names]])
        leads, rival = decision.posterior.leads_of(names.index(best)), np.array([names.index(rival_name)])
        margin, left = np.array([decision.margin]), np.array([room])
        return bool(batch.gives_up(leads, rival, num_units, margin=margin, room=left, confidence=confidence)[0])


@StoppingRule.register("bayesian")
class BayesianStop(StoppingRule):
    """Stops when the posterior probability of the winner is at least the confidence (FIESTA, section 4.2).

    The share of wrong winners is below 1 - confidence on average over problems drawn from the prior. This does not hold
    for each single problem, and not if two candidates are equal. The reason is that the rule checks the probabilities
    after every run and stops as soon as one is high enough. Use it to reproduce the paper.
    """

    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        if decision.confidence is None:
            return None
        allowed = float(self.allowed_error(np.array(decision.num_units), confidence))
        return () if 1 - decision.confidence <= allowed else None


@StoppingRule.register(STOPPING_RULE)
class EarlyLooks(BayesianStop):
    """Stops at the confidence, but asks for more than that after few runs. It is the default.

    The rule looks after every run. A lead of few runs is often luck, and changes with each of them. With
    delta = 1 - confidence, and n the units of the winner or of its nearest rival, whichever has fewer, it stops when::

        1 - P(winner) <= delta min(1, n / 16)

    At 0.95, the rule asks for 0.991 after 3 runs each and for 0.95 from 16 runs on, so that two clearly different
    candidates need little more than their starting runs. A candidate that gets no further runs does not count in n.

    The rule gives up where the R runs that the limit leaves reach the confidence with a probability below 0.35, and
    below R / 500; see `choosing.probability.batch.predictive_power`. So each further winner costs more than 500
    runs.

    No rule can know of collapses that no run has shown. If your models collapse at times, ask for a number of runs with
    `min_runs`.
    """

    gives_up = True

    def starts(self, belief: Belief) -> int:
        # Counts tell the noise of a single run.
        return belief.min_evaluations if belief.needs_counts else max(NUM_STARTS, belief.min_evaluations)

    def allowed_error(self, num_units: np.ndarray, confidence: float) -> np.ndarray:
        return batch.allowed_error(num_units, confidence)


@StoppingRule.register("glr")
class GeneralizedLikelihoodRatioStop(StoppingRule):
    """Stops when anytime-valid likelihood ratio tests put the winner above every other active candidate.

    With N candidates and delta = 1 - confidence, the rule must reject mean_a <= mean_b - margin for the winner a and
    every other b, at level delta / N each. It then guarantees, for every sampling rule and any number of looks::

        P(it ever stops with an a for which this is true of some b) <= delta

    The proof takes a candidate b with the largest mean. A wrong winner other than b needs a false rejection against b,
    which is possible for at most N - 1 pairs. If b itself is the wrong winner, another candidate has the same mean (and
    margin is 0), which adds one more pair.

    On shared splits, the test uses the differences on common splits, D_k = x_{a,k} - x_{b,k}; see `log_evidence`. The
    sequence of these differences is fixed beforehand. The sampling rule only decides how much of it is observed. If a
    candidate has several runs on one split, only the first counts. After a replicate that is pending for one of the
    two, no later replicate counts until it finishes. Failed replicates are left out. Without common splits, the test
    treats the two samples as independent, each with its own variance; see `unpaired_log_evidence`.

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


def log_evidence(counts: np.ndarray, sums: np.ndarray, sums_of_squares: np.ndarray) -> np.ndarray:
    """log E_m of normal differences D_1, ..., D_m of unknown variance, against the hypothesis that their mean is <= 0.

    With T = sum D, S = sum D^2, A = S - T^2 / (m + g) and F_m the distribution function of Student's t::

        E_m = sqrt(g / (m + g)) (S / A)^(m/2) 2 F_m(T sqrt(m / ((m + g) A)))

    This is the likelihood of D_1/|D_1|, ..., D_m/|D_1| with half-normal effect sizes (mean / sd) of variance 1/g, over
    that with effect size 0; both have the scale integrated out with 1/sigma. S / A rises with t^2, so E_m >= c says
    that the generalised likelihood ratio (m/2) log(1 + t^2 / (m - 1)) exceeds a number that depends on m alone.

    To derive it, put u = 1/sigma with density 1/u. Integrate the likelihood over the effect size theta > 0, whose
    density is 2 sqrt(g / (2 pi)) exp(-g theta^2 / 2)::

        u^(m-1) exp(-(S u^2 - 2 theta T u + m theta^2) / 2)
        -> sqrt(g / (m + g)) u^(m-1) exp(-A u^2 / 2) 2 Phi(T u / sqrt(m + g))

    Then integrate over u. A u^2 is chi-squared with m degrees of freedom, so Phi becomes F_m. The rest gives A^(-m/2),
    and S^(-m/2) without an effect.

    Under mean 0, E_m is a non-negative martingale that begins at 1, whatever the variance, with respect to what these
    ratios tell (Lai, 1976; Wang and Ramdas, 2023), and by Ville's inequality P(some E_m >= c) <= 1/c. To add one
    number to all D_k raises t and leaves the sd as it is, and E_m rises with t by the monotone likelihood ratio of
    the noncentral t: a mean below 0 makes all E_m only smaller. Jourdan, Degenne and Kaufmann (2022) calibrate these
    ratios with other bounds.

    If all differences are equal and not 0, the evidence grows with m but stays finite. With g = 0.5 it reaches the
    threshold 40 (two candidates at 0.95) after 4 differences, and 160 (eight candidates) after 5.

    `counts` (m, at least 1), `sums` (T) and `sums_of_squares` (S) may have any shapes that go together. Where S is 0,
    nothing was seen to differ and the evidence is log 1.
    """
    is_varying = sums_of_squares > 0
    squares = np.where(is_varying, sums_of_squares, 1.0)
    residual = squares - sums**2 / (counts + PRIOR_PRECISION)
    prob_below = stdtr(counts, sums * np.sqrt(counts / ((counts + PRIOR_PRECISION) * residual)))
    with np.errstate(divide="ignore"):
        log_tail = np.log(2 * prob_below)
    log_prior = 0.5 * np.log(PRIOR_PRECISION / (counts + PRIOR_PRECISION))
    return np.where(is_varying, log_prior + counts / 2 * (np.log(squares) - np.log(residual)) + log_tail, 0.0)


def max_log_evidence(differences: np.ndarray) -> float:
    """The largest log E_m over all beginnings of the sequence, and of none: at least 0.

    `differences` has the shape `(num_differences,)`.
    """
    counts = np.arange(1.0, len(differences) + 1)
    return float(np.max(log_evidence(counts, np.cumsum(differences), np.cumsum(differences**2)), initial=0.0))


def unpaired_log_evidence(higher_scores: np.ndarray, lower_scores: np.ndarray) -> float:
    """Evidence that one mean is above another, from two independent samples with unknown variances. It is much weaker
    than the evidence of pairs.

    The least over u of max(0, log E(higher - u)) + max(0, log E(u - lower)). Where the mean of `higher_scores` is not
    above the mean of `lower_scores`, both hypotheses hold at the latter's u; over all sizes of the two samples, each
    term is then dominated by an exponential variable, they are independent, and so::

        P(some value >= c) <= (1 + c) exp(-c)

    The first term falls with u and the second rises, so values at the ends of `NUM_GRID_CELLS` cells bound it from
    below: what is returned is this bound. Below the lower mean the second is 0, above the higher one the first.

    Both have shapes `(count,)` of their own, at least 1 score each.
    """
    shift_grid = np.linspace(lower_scores.mean(), higher_scores.mean(), NUM_GRID_CELLS + 1)
    if shift_grid[-1] <= shift_grid[0]:
        return 0.0
    higher_evidence = np.maximum(_log_evidence_above(higher_scores, shift_grid, 1.0), 0.0)
    lower_evidence = np.maximum(_log_evidence_above(lower_scores, shift_grid, -1.0), 0.0)
    return float(np.min(higher_evidence[1:] + lower_evidence[:-1]))


def unpaired_threshold(error: float) -> float:
    """The c with (1 + c) exp(-c) = `error`."""
    return float(gammainccinv(2, error))


def _log_evidence_above(scores: np.ndarray, shift_grid: np.ndarray, sign: float) -> np.ndarray:
    """log E of sign (scores - u) for each u of `shift_grid`. Shape: that of `shift_grid`."""
    count = np.array(float(len(scores)))
    shifts = scores.mean() - shift_grid
    return log_evidence(count, sign * count * shifts, np.sum((scores - scores.mean()) ** 2) + count * shifts**2)
