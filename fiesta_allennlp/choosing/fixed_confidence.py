"""When a selection for a fixed confidence is over."""

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from fiesta_allennlp.choosing import strategy
from fiesta_allennlp.choosing.beliefs.belief import Belief
from fiesta_allennlp.choosing.probability.batch import ChooseAtOnce, Rules, num_units_of_pair
from fiesta_allennlp.choosing.probability.leads import Leads
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, EarlyLooks, StoppingRule
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.choice_settings import CONFIDENCE, MAX_EVALUATIONS_PER_CANDIDATE
from fiesta_allennlp.core.errors import ConfigError, OptionError
from fiesta_allennlp.core.records import History


class FixedConfidence(strategy.Strategy):
    """Continues until one candidate is the best, within `margin`, with the target confidence.

    The selection stops as soon as every active candidate has runs on `num_starts` splits and the stopping rule is met,
    even if runs are still pending. The recommended candidate is the one that leads.

    Args:
        belief: model of the scores, which computes the probabilities.
        confidence: target confidence, 1 - delta in the paper, above 0 and below 1.
        margin: difference in units of the score. Candidates within this margin of the best one count as equally good.
            Or a text such as `0.25sd`, a share of the run-to-run sd, computed after each run.
        num_starts: number of runs that every candidate begins with, at least `belief.min_evaluations`. The default is
            what the stopping rule begins with: three runs for `early_looks` unless the belief is of counts.
        min_runs: number of runs that the winner and its nearest rival need, on different splits. Use it for models that
            collapse at times: 12 runs show a collapse that happens in one run of four.
        max_evaluations: limit on the finished and pending runs of all candidates together. The default is 50 for each
            candidate.
        stop: the stopping rule, `early_looks` by default.
    """

    choose_at_once: Optional[ChooseAtOnce] = None
    """The sampling rule for many selections at once; None if it needs the history."""

    def __init__(
        self,
        *,
        belief: Belief,
        confidence: float = CONFIDENCE,
        margin: Union[float, str] = 0.0,
        num_starts: Optional[int] = None,
        min_runs: int = 0,
        max_evaluations: Optional[int] = None,
        stop: Optional[StoppingRule] = None,
    ) -> None:
        self.belief = belief
        self.confidence: float = confidence
        self.margin, self.parsed_margin = margin, strategy.Margin.parse(margin)
        self.min_runs, self.max_evaluations = min_runs, max_evaluations
        self.stop = EarlyLooks() if stop is None else stop
        self.num_starts: int = self.stop.starts(belief) if num_starts is None else num_starts
        self._latest_decision: Tuple[Any, Decision] = (None, Decision(best=None))

    def with_margin(self, margin: float) -> "FixedConfidence":
        """Return the same strategy with another margin, in units of the score."""
        other = copy(self)
        other.margin, other.parsed_margin = margin, strategy.Margin(margin)
        other._latest_decision = (None, Decision(best=None))
        return other

    @abstractmethod
    def fill(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names to run next, while there is more to do and room for as many.

        `decision` has the current posterior. If nothing is pending, the list has at least one name.
        """

    def check(self, candidates: List[str]) -> None:
        strategy.check_candidates(candidates)
        if not 0 < self.confidence < 1:
            raise OptionError("confidence", f"must be above 0 and below 1, such as 0.95, but is {self.confidence}.")
        margin = self.parsed_margin
        if margin.size and not self.belief.has_margin:
            raise OptionError(
                "margin",
                f"must be 0 with the posterior {type(self.belief).__name__}, which models logits of scores, but "
                f"is {margin.text}. Choose another posterior or remove the margin.",
            )
        if margin.is_in_sds and self.belief.needs_counts:
            raise OptionError(
                "margin",
                f"must be a number with the posterior {type(self.belief).__name__}, which has no run-to-run "
                f"sd, but is {margin.text}.",
            )
        if self.min_runs < 0:
            raise OptionError("min_runs", f"must be 0 or more but is {self.min_runs}.")
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
        decision = self._analyse(history)
        room = min(slots, self.room(history))
        if decision.stopped_by is not None or room < 1:
            return []
        return self.within_limit(self.fill(history, decision, room, rng), history, decision.prob_best)

    def recommend(self, history: History) -> Decision:
        return self._analyse(history)

    def _analyse(self, history: History) -> Decision:
        """Return the current decision; kept for the next question about an equal history."""
        if self._latest_decision[0] != (history, self.done):
            self._latest_decision = ((history, self.done), self._conclude(history))
        return self._latest_decision[1]

    def _conclude(self, history: History) -> Decision:
        decision = self._complete(history, strategy.analyse(history, self.belief, margin=self.parsed_margin))
        num_left, may_stop = self.room(history) + len(history.pending), self.may_stop(history, decision)
        has_rival = len(history.active) > 1
        missing_runs = self._missing_runs(history, decision) if has_rival and may_stop else None
        stopped_by: Optional[str] = None
        if not has_rival:
            stopped_by = "failures"
        elif missing_runs == ():
            stopped_by = "confidence"
        elif num_left < 1 or (missing_runs is None and may_stop and self._is_hopeless(history, decision, num_left)):
            stopped_by = "max_evaluations"
        elif self._has_no_variation(history, decision):
            stopped_by = "no_variation"
        gave_up = stopped_by == "max_evaluations" and num_left > 0
        decision = replace(decision, stopped_by=stopped_by, lacking=missing_runs or (), gave_up=gave_up)
        if stopped_by in (None, "max_evaluations") and self._is_at_run_limit(history, decision):
            return self.end_at_limit(history, decision)
        return decision

    def _has_no_variation(self, history: History, decision: Decision) -> bool:
        """Return whether the first runs of every candidate are equal: then there is no estimate of the noise."""
        is_asked = self.run_limit is None and not self.belief.needs_counts and self.may_stop(history, decision)
        return is_asked and all(np.ptp(history.scores(name)) == 0 for name in history.active)

    def _is_at_run_limit(self, history: History, decision: Decision) -> bool:
        """Return whether all candidates that together are the best with the target confidence have made all their
        runs."""
        exhausted = self.exhausted(history)
        total_prob = sum(decision.prob_best.get(name, 0.0) for name in exhausted)
        is_settled = len(exhausted) > 1 and total_prob >= self.confidence
        return bool(exhausted) and (is_settled or len(exhausted) == len(history.active))

    def _is_hopeless(self, history: History, decision: Decision, room: int) -> bool:
        return self.stop.is_hopeless(history, decision, self.confidence, room)

    def _complete(self, history: History, decision: Decision) -> Decision:
        """Return the decision with what the stopping rule asks about: the units of its best candidate and the rival."""
        if decision.best is None or decision.rival is None or decision.posterior is None:
            return decision
        rival = np.array([history.active.index(decision.rival)])
        return replace(decision, num_units=float(self.num_units_of_pair(history, decision.posterior.leads, rival)[0]))

    def num_units_of_pair(self, history: History, leads: Leads, rival: np.ndarray) -> np.ndarray:
        """Return the units that a lead rests on, as `batch.num_units_of_pair` does. Shape: that of `rival`."""
        names = history.active
        is_open = np.array([[self.num_left(history, name) >= 1 for name in names]])
        num_units = [[[part.num_units(name) for name in names]] for part in history.by_task.values()]
        return num_units_of_pair(leads, rival, np.array(num_units), is_open)

    @property
    def to_win(self) -> int:
        """Number of finished runs that the winner and its nearest rival need."""
        return max(self.min_runs, self.stop.least_runs(self.confidence))

    def _missing_runs(self, history: History, decision: Decision) -> Optional[Tuple[str, ...]]:
        """Return the runs that are missing before the winner is named; see `StoppingRule.missing_runs`."""
        missing_runs = self.stop.missing_runs(history, decision, self.confidence)
        if missing_runs == ():
            pair = self.open([name for name in (decision.best, decision.rival) if name is not None])
            missing_runs = tuple(strategy.fill_evenly({n: history.num_units(n) for n in pair}, target_runs=self.to_win))
        method = f"{type(self.stop).__name__}.missing_runs"
        return None if missing_runs is None else self.open(strategy.valid_names(missing_runs, history, method))

    def may_stop(self, history: History, decision: Decision) -> bool:
        """Return whether enough runs have finished to ask the stopping rule."""
        return decision.best is not None and strategy.have_units(history, self.open(history.active), self.num_starts)

    def rules(self, limit: int, num_slots: int) -> Optional[Rules]:
        """Return the same rules for many selections at once; None for a strategy or a stopping rule that needs the
        history.

        Args:
            limit: most runs of all candidates together.
            num_slots: runs that are made at once.
        """
        if self.choose_at_once is None or type(self.stop).missing_runs is not BayesianStop.missing_runs:
            return None
        margin = self.parsed_margin
        return Rules(
            self.confidence,
            limit,
            margin=0.0 if margin.is_in_sds else margin.size,
            margin_share=margin.size if margin.is_in_sds else 0.0,
            num_starts=self.num_starts,
            min_runs=self.to_win,
            num_slots=num_slots,
            choose=self.choose_at_once,
            allowed_error=self.stop.allowed_error,
            gives_up=self.stop.gives_up,
        )

    def limit(self, num_candidates: int) -> int:
        """Return `max_evaluations`, or its default."""
        return MAX_EVALUATIONS_PER_CANDIDATE * num_candidates if self.max_evaluations is None else self.max_evaluations

    def limit_of(self, history: History) -> int:
        """Return `max_evaluations`, or its default.

        The default counts the candidates that the user did not remove on each task, plus the runs already spent on
        removed ones.
        """
        default = self.limit(history.num_planned * len(history.by_task)) + history.num_runs_of_removed
        return default if self.max_evaluations is None else self.max_evaluations

    def room(self, history: History) -> int:
        """Return how many runs may still start."""
        return max(0, self.limit_of(history) - history.total_started)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        least = num_candidates * self.num_starts + 2 * max(0, self.to_win - self.num_starts)
        return self.limited_bounds(num_candidates, least, self.limit(num_candidates))
