"""When a selection for a fixed confidence is over."""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.core.defaults import CONFIDENCE, MAX_EVALUATIONS_PER_CANDIDATE
from fiesta_allennlp.core.errors import ConfigError, OptionError
from fiesta_allennlp.core.records import CredibleMargin, Decision, History, LoopRuns, PairAlone, Undecided
from fiesta_allennlp.strategies.base import (
    Analysis,
    Margin,
    Strategy,
    analyse,
    check_candidates,
    have_finished,
    valid_names,
)
from fiesta_allennlp.strategies.forecast import estimate_plain_loop
from fiesta_allennlp.strategies.stopping_rules import EarlyLooks, StoppingRule

SMALLEST_MARGIN = 1e-9
LARGEST_MARGIN = 1e4
"""In ranges of the means and scales of the posterior."""

MAX_CACHED_MARGINS = 1000
"""Margins in sds to keep, one for each simulated selection."""

MARGIN_TOLERANCE = 1e-6
"""The relative precision of a margin, which is shown with two digits."""


class FixedConfidence(Strategy):
    """Continues until one candidate is the best, within `margin`, with the target confidence.

    The selection stops as soon as every active candidate has `num_starts` finished runs and the stopping rule is met,
    even if runs are still pending. The recommended candidate is the i with the largest P(mean_i >= max_j mean_j -
    margin). If these probabilities are equal, it is the candidate that is more probably the very best.

    Args:
        belief: model of the scores, which computes the probabilities.
        confidence: target confidence, 1 - delta in the paper, above 0 and below 1.
        margin: difference in units of the score. Candidates within this margin of the best one count as equally good.
            Or a text such as `0.25sd`, a share of the run-to-run sd; see `margin_after`.
        num_starts: number of runs that every candidate begins with, at least `belief.min_evaluations`. The default is
            what the stopping rule begins with: three runs for `early_looks` unless the belief is of counts.
        max_evaluations: limit on the finished and pending runs of all candidates together. The default is 50 for each
            candidate.
        stop: the stopping rule, `early_looks` by default.
    """

    def __init__(
        self,
        *,
        belief: Belief,
        confidence: float = CONFIDENCE,
        margin: Union[float, str] = 0.0,
        num_starts: Optional[int] = None,
        max_evaluations: Optional[int] = None,
        stop: Optional[StoppingRule] = None,
    ) -> None:
        self.belief = belief
        self.confidence: float = confidence
        self.margin, self.parsed_margin = margin, Margin.parse(margin)
        self._margin_by_first_runs: Dict[Any, float] = {}
        self.max_evaluations = max_evaluations
        self.stop = EarlyLooks() if stop is None else stop
        self.num_starts: int = self.stop.starts(belief) if num_starts is None else num_starts
        self._latest_analysis: Tuple[Any, Analysis] = (None, Analysis(Decision(best=None)))

    @abstractmethod
    def fill(self, history: History, analysis: Analysis, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names to run next, while there is more to do and room for as many.

        `analysis` has the current posterior. If nothing is pending, the list has at least one name.
        """

    def check(self, candidates: List[str]) -> None:
        check_candidates(candidates)
        if not 0 < self.confidence < 1:
            raise OptionError("confidence", f"must be above 0 and below 1, such as 0.95, but is {self.confidence}.")
        margin = self.parsed_margin
        if margin.is_above_0 and not self.belief.has_margin:
            raise OptionError(
                "margin",
                f"must be 0 with the posterior {type(self.belief).__name__}, which models logits of scores, but "
                f"is {margin.text}. Choose another posterior or remove the margin.",
            )
        if margin.sd_share is not None and self.belief.needs_counts:
            raise OptionError(
                "margin",
                f"must be a number with the posterior {type(self.belief).__name__}, which has no run-to-run "
                f"sd, but is {margin.text}.",
            )
        if self.num_starts < self.belief.min_evaluations:
            raise ConfigError(
                f"num_starts must be at least {self.belief.min_evaluations} with the posterior "
                f"{type(self.belief).__name__} but is {self.num_starts}."
            )
        self._check_limit(*self.bounds(len(candidates)))

    def check_room(self, history: History) -> None:
        num_started = [history.num_started(name) for name in history.active]
        num_missing_starts = sum(max(0, self.num_starts - number) for number in num_started)
        num_to_win = sum(sorted(max(0, self.to_win - max(number, self.num_starts)) for number in num_started)[:2])
        self._check_limit(history.total_started + num_missing_starts + num_to_win, self.limit_of(history))

    def _check_limit(self, min_limit: int, limit: int) -> None:
        if limit < min_limit:
            raise OptionError(
                "max_evaluations",
                f"must be at least {min_limit}, to start every candidate {self.num_starts} times and "
                f"give the winner and its closest rival {max(self.num_starts, self.to_win)} runs each, but is {limit}.",
            )

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        analysis = self._analyse(history)
        room = min(slots, self.room(history))
        if analysis.decision.stopped_by is not None or room < 1:
            return []
        return self.fill(history, analysis, room, rng)

    def recommend(self, history: History) -> Decision:
        return self._analyse(history).decision

    def expected_loss(self, history: History) -> Optional[float]:
        analysis = self._analyse(history)
        return analysis.expected_loss(analysis.decision.best, history)

    def pair_alone(self, history: History) -> Optional[PairAlone]:
        analysis = self._analyse(history)
        leader, together = analysis.decision.best, analysis.decision.confidence
        if leader is None or together is None or len(history.active) < 3 or not self.stop.stops_at_probability:
            return None
        prob_best = analysis.decision.prob_best
        runner_up = max((name for name in prob_best if name != leader), key=prob_best.__getitem__)
        others = frozenset(history.candidates) - {leader, runner_up}
        pair = analyse(replace(history, withdrawn=others), self.belief, margin=analysis.decision.margin)
        required = self.stop.required_probability(history, analysis, self.confidence)
        return PairAlone(runner_up, pair.decision.prob_within_margin[leader], together, required)

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        posterior = self._analyse(history).posterior
        if posterior is None or not self.belief.has_margin or not self.stop.stops_at_probability:
            return None

        def credible_margin_at(margin: float) -> Optional[CredibleMargin]:
            analysis = analyse(history, self.belief, margin=margin, posterior=posterior)
            is_over = analysis.decision.best is not None and self._missing_runs(history, analysis) == ()
            return CredibleMargin(margin, str(analysis.decision.best)) if is_over else None

        upper_bound = float(np.ptp(posterior.location) + posterior.scale.max()) or SMALLEST_MARGIN
        exact_margin = _smallest_margin(lambda margin: credible_margin_at(margin) is not None, upper_bound)
        return None if exact_margin is None else credible_margin_at(round_up(exact_margin))

    def undecided(self, history: History) -> Optional[Undecided]:
        analysis = self._analyse(history)
        decision = analysis.decision
        if len(history.active) < 2 or decision.stopped_by == "confidence":
            return None
        gave_up = decision.stopped_by == "max_evaluations" and self.room(history) + len(history.pending) > 0
        required = self.stop.required_probability(history, analysis, self.confidence)
        if not self.may_stop(history, decision):
            return Undecided("starting runs", self.confidence, required, gave_up)
        unmet = self.stop.unmet_condition(history, analysis, self.confidence)
        return Undecided(unmet, self.confidence, required, gave_up)

    def _analyse(self, history: History) -> Analysis:
        """Compute the posterior and `stopped_by`; kept for the next question about an equal history."""
        if self._latest_analysis[0] != (history, self.done):
            analysis = analyse(history, self.belief, margin=self.margin_after(history))
            missing_runs = self._missing_runs(history, analysis)
            stopped_by = "failures" if len(history.active) < 2 else "confidence" if missing_runs == () else None
            if stopped_by is None and self._has_reached_limit(history, analysis, missing_runs):
                stopped_by = "max_evaluations"
            decision = replace(analysis.decision, stopped_by=stopped_by, lacking=missing_runs or ())
            self._latest_analysis = ((history, self.done), replace(analysis, decision=decision))
        return self._latest_analysis[1]

    def _has_reached_limit(self, history: History, analysis: Analysis, missing_runs: Optional[Tuple[str, ...]]) -> bool:
        """Return whether the limit leaves no runs, or too few to go on for."""
        room = self.room(history) + len(history.pending)
        if room < 1 or missing_runs is not None or not self.may_stop(history, analysis.decision):
            return room < 1
        return self.stop.is_hopeless(history, analysis, self.confidence, room)

    def margin_after(self, history: History) -> float:
        """Return the margin in units of the score.

        A share of the run-to-run sd becomes a number when the starting runs are done, and is 0 before. It is computed
        by `Belief.noise_sd` from the first `num_starts` runs of each candidate that finished, so later runs do not
        change it.
        """
        margin = self.parsed_margin
        if margin.value is not None:
            return margin.value
        if not have_finished(history, self.open(history.active), self.num_starts):
            return 0.0
        names = [name for name in history.candidates if history.num_finished(name) >= self.num_starts]
        first_runs = tuple(run for name in names for run in history.evaluations_of(name)[: self.num_starts])
        key = tuple((run.request, run.score) for run in first_runs)
        if key not in self._margin_by_first_runs:
            if len(self._margin_by_first_runs) >= MAX_CACHED_MARGINS:
                self._margin_by_first_runs.clear()
            sd = self.belief.noise_sd(History(tuple(names), first_runs, sign=history.sign))
            self._margin_by_first_runs[key] = margin.with_sd(sd).value or 0.0
        return self._margin_by_first_runs[key]

    def plain_loop(self, history: History, rng: np.random.Generator) -> Optional[LoopRuns]:
        analysis = self._analyse(history)
        is_decided = analysis.decision.stopped_by == "confidence" and self.stop.stops_at_probability
        if analysis.posterior is None or not is_decided or self.done:
            return None
        return estimate_plain_loop(
            analysis.posterior,
            [history.num_finished(name) for name in history.active],
            confidence=self.confidence,
            margin=analysis.decision.margin,
            stop=self.stop,
            min_rounds=max(self.num_starts, self.to_win),
            max_runs=self.limit(len(history.active)),
            rng=rng,
        )

    def fix_margin(self, history: History) -> Optional[str]:
        is_open = self.parsed_margin.sd_share is not None and self.parsed_margin.value is None
        if not is_open or not have_finished(history, self.open(history.active), self.num_starts):
            return None
        self.parsed_margin = replace(self.parsed_margin, value=self.margin_after(history))
        return self.parsed_margin.text

    @property
    def to_win(self) -> int:
        """Number of finished runs that the winner and its nearest rival need."""
        return self.stop.least_runs(self.confidence)

    def _missing_runs(self, history: History, analysis: Analysis) -> Optional[Tuple[str, ...]]:
        """The runs that the stopping rule misses, once it may be asked; see `StoppingRule.missing_runs`."""
        if len(history.active) < 2 or not self.may_stop(history, analysis.decision):
            return None
        missing_runs = self.stop.missing_runs(history, analysis, self.confidence)
        method = f"{type(self.stop).__name__}.missing_runs"
        return None if missing_runs is None else self.open(valid_names(missing_runs, history, method))

    def may_stop(self, history: History, decision: Decision) -> bool:
        """Return whether enough runs have finished to ask the stopping rule."""
        return decision.best is not None and have_finished(history, self.open(history.active), self.num_starts)

    def limit(self, num_candidates: int) -> int:
        """Return `max_evaluations`, or its default."""
        return MAX_EVALUATIONS_PER_CANDIDATE * num_candidates if self.max_evaluations is None else self.max_evaluations

    def limit_of(self, history: History) -> int:
        """Return `max_evaluations`, or its default.

        The default counts the candidates that the user did not remove, plus the runs already spent on removed ones.
        """
        default = self.limit(history.num_planned) + history.num_runs_of_removed
        return default if self.max_evaluations is None else self.max_evaluations

    def room(self, history: History) -> int:
        """Return how many runs may still start."""
        return max(0, self.limit_of(history) - history.total_started)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        num_to_win = max(0, self.to_win - self.num_starts)
        return num_candidates * self.num_starts + 2 * num_to_win, self.limit(num_candidates)


def _smallest_margin(is_decided_at: Callable[[float], bool], upper: float) -> Optional[float]:
    """Return the smallest margin that decides, by bisection. `upper` is where the search begins."""
    if is_decided_at(0.0):
        return 0.0
    max_margin, min_width, lower = LARGEST_MARGIN * upper, MARGIN_TOLERANCE**2 * upper, 0.0
    while not is_decided_at(upper):
        lower, upper = upper, 2 * upper
        if upper > max_margin:
            return None
    while upper - lower > max(MARGIN_TOLERANCE * upper, min_width):  # any margin above 0 may do
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if is_decided_at(middle) else (middle, upper)
    return upper


def round_up(margin: float) -> float:
    """Round `margin` up to two significant digits."""
    if margin <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(margin))
    rounded = round(margin, digits)
    return rounded if rounded >= margin else round(rounded + 10.0**-digits, digits)
