"""The base class of strategies, and what they share: the analysis, who is next, margins, and minimized metrics."""

import math
import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Collection, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.core.errors import ConfigError, OptionError, did_you_mean, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import CredibleMargin, Decision, Forecast, History, LoopRuns, PairAlone, Undecided
from fiesta_allennlp.core.registry import Registrable, convert_value
from fiesta_allennlp.probability import check_margin

TIE_DIGITS = 9
"""Probabilities that are equal to so many digits are a tie: the quadrature is not exact to the last one."""


class Strategy(Registrable):
    """Chooses the next runs, and ends the selection when its rule is met.

    A strategy holds no state: it decides from the history alone, which includes the pending runs. The same strategy
    therefore serves one worker or many, synchronous or not, and a resumed selection. The caller passes the history and
    the number of free workers.

    `belief` computes the probabilities that the strategy reports. `confidence` is the probability at which it stops, or
    None if it stops for another reason. `num_starts` is the number of runs that every candidate begins with, and
    `budget` the number of runs to spend, or None without one.
    """

    belief: Belief
    confidence: Optional[float] = None
    num_starts: int = 0
    budget: Optional[int] = None
    done: FrozenSet[str] = frozenset()
    """Candidates that get no further runs. Set by `without_further_runs`."""

    def without_further_runs(self, done: Collection[str], history: History) -> None:
        """Take these candidates with the runs that they have.

        Raises:
            ConfigError: if one is unknown or has too few scores, or all of them are named.
        """
        min_evaluations = self.belief.min_evaluations
        for name in done:
            if name not in history.candidates:
                raise ConfigError(f"--done: unknown candidate '{name}'.{did_you_mean(name, history.candidates)}")
            if history.num_finished(name) < min_evaluations:
                raise ConfigError(
                    f"--done: candidate '{name}' has {history.num_finished(name)} of the {min_evaluations} scores "
                    "required for P(best). Add scores or remove the candidate."
                )
        if done and set(history.active) <= set(done):
            raise ConfigError("--done names all candidates, so there is nothing left to run. Remove one of them.")
        self.done = frozenset(done)

    def open(self, names: Sequence[str]) -> Tuple[str, ...]:
        """Return those of `names` that get further runs."""
        return tuple(name for name in names if name not in self.done)

    def check(self, candidates: List[str]) -> None:
        """Check the settings against these candidates, before the first run.

        Raises:
            ConfigError: if the settings cannot work; the message has the rule, the value and the remedy.
        """

    def check_room(self, history: History) -> None:
        """Check that the limit leaves room for candidates that joined after the selection began.

        Raises:
            ConfigError: if it does not; the message has the smallest limit that does.
        """

    @abstractmethod
    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names of active candidates to run next. A name can occur more than once.

        An empty list means that there is nothing to start now. If nothing is pending either, the selection is over.
        """

    @abstractmethod
    def recommend(self, history: History) -> Decision:
        """Return the current decision.

        `stopped_by` is set if and only if the selection is over, even if runs are still pending.
        """

    def describe(self, history: History) -> Decision:
        """Return the current decision with what it costs and with its `pair_alone`, for somebody who watches."""
        return replace(
            self.recommend(history), expected_loss=self.expected_loss(history), pair_alone=self.pair_alone(history)
        )

    def fix_margin(self, history: History) -> Optional[str]:
        """Fix a margin in units of the run-to-run sd, once the starting runs are done.

        Returns the margin to record, or `None` if there is nothing to fix or it is fixed already.
        """
        return None

    def undecided(self, history: History) -> Optional[Undecided]:
        """Return why there is no winner yet; `None` if there is one, or for a strategy with a budget."""
        return None

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        """Return the margin at which the selection would be over now.

        Returns `None` if more runs are needed first, or if the strategy does not stop at a probability.
        """
        return None

    def expected_loss(self, history: History) -> Optional[float]:
        """Return what choosing the leading candidate now costs on average, E[max_j mean_j - mean_best].

        It is in the metric's units. Returns `None` if nobody leads yet, or if the posterior has no such mean.
        """
        return None

    def pair_alone(self, history: History) -> Optional[PairAlone]:
        """Return P(best) of the leading candidate against its runner-up alone.

        Returns `None` if there is no posterior yet, if there are no other candidates, or if the strategy does not stop
        at a probability.
        """
        return None

    def forecast(
        self, history: History, rng: np.random.Generator, *, max_runs: Optional[int] = None
    ) -> Optional[Forecast]:
        """Estimate how many more runs the selection makes, pending ones included, and whether it is decided then.

        `max_runs` is the most runs that there is time for. Returns `None` if there is no estimate, or if the selection
        is over.
        """
        return None

    def plain_loop(self, history: History, rng: np.random.Generator) -> Optional[LoopRuns]:
        """Estimate how many runs a plain loop would have taken to decide, all candidates equally often.

        Returns `None` if there is no estimate, or if the selection is undecided.
        """
        return None

    @abstractmethod
    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        """Return the smallest and the largest number of runs that a selection among `num_candidates` candidates can
        take.
        """


@dataclass(frozen=True, eq=False)
class Analysis:
    """The decision and the posterior after a history.

    `posterior` is `None` while the model of the scores needs more runs.
    """

    decision: Decision
    posterior: Optional[Posterior] = None

    def expected_loss(self, best: Optional[str], history: History) -> Optional[float]:
        """Return what choosing `best` costs on average, by this posterior after `history`; see
        `Strategy.expected_loss`."""
        if self.posterior is None or best not in history.active:
            return None
        return self.posterior.expected_loss(history.active.index(best))


def check_candidates(candidates: Sequence[str]) -> None:
    """Check that there are at least two candidates and that no two share a name.

    Raises:
        ConfigError: if there are fewer, or if a name occurs twice; the message has the number or the name.
    """
    if len(candidates) < 2:
        raise ConfigError(f"a selection needs at least 2 candidates but got {len(candidates)}.")
    duplicates = [name for name in candidates if candidates.count(name) > 1]
    if duplicates:
        raise ConfigError(f"candidate names must be unique, but '{duplicates[0]}' appears more than once.")


def analyse(
    history: History, belief: Belief, *, margin: float = 0.0, posterior: Optional[Posterior] = None
) -> Analysis:
    """Compute the posterior after `history`, unless it is given, and the candidate that is most probably within
    `margin` of the best.

    In a tie, `best` is the candidate with the highest probability of being the best, then the first. `best` is `None`
    while the model of the scores needs more runs. With fewer than two active candidates there is nothing to compare:
    `best` is then the one that is left.
    """
    active = history.active
    if len(active) < 2:
        best = next((name for name in active if history.num_finished(name)), None)
        return Analysis(Decision(best=best, margin=margin))
    if not have_finished(history, active, belief.min_evaluations):
        return Analysis(Decision(best=None, margin=margin))
    posterior = posterior or belief.posterior(history)
    if not hasattr(posterior, "prob_best"):
        raise ConfigError(f"{type(belief).__name__}.posterior must be a Posterior but got {shorten(posterior)}.")
    prob_best = dict(zip(active, posterior.prob_best().tolist(), strict=True))
    prob_within = prob_best
    if margin > 0:
        prob_within = dict(zip(active, posterior.prob_best(margin).tolist(), strict=True))
    best = max(active, key=lambda name: (round(prob_within[name], TIE_DIGITS), round(prob_best[name], TIE_DIGITS)))
    decision = Decision(best=best, margin=margin, prob_best=prob_best, prob_within_margin=prob_within)
    return Analysis(decision, posterior)


def valid_names(returned: Any, history: History, method: str) -> List[str]:
    """Return the names that a method returned, which may be of a user's own class.

    Raises:
        ConfigError: if they are not a list, or one is unknown; the message names the method and the value.
    """
    names = convert_value(returned, List[str], method)
    for name in names:
        if name not in history.candidates:
            raise ConfigError(f"{method} must be candidates, {join_some(history.candidates)}, but one is '{name}'.")
    return names


def have_finished(history: History, names: Sequence[str], min_runs: int) -> bool:
    """Return whether each of `names` has at least `min_runs` finished runs."""
    return all(history.num_finished(name) >= min_runs for name in names)


def fill_evenly(num_runs_by_name: Mapping[str, int], *, target_runs: int, slots: float = math.inf) -> List[str]:
    """Return at most `slots` names, the one with the fewest runs first, until each has `target_runs`.
    `num_runs_by_name` are the runs of each so far."""
    num_runs = dict(num_runs_by_name)
    chosen: List[str] = []
    while num_runs and len(chosen) < slots:
        name = min(num_runs, key=num_runs.__getitem__)
        if num_runs[name] >= target_runs:
            break
        num_runs[name] += 1
        chosen.append(name)
    return chosen


SD_SHARE_PATTERN = re.compile(r"\s*(?P<share>[^\s=]+?)\s*sd\s*(=\s*(?P<number>\S+)\s*)?")


@dataclass(frozen=True)
class Margin:
    """The margin of a strategy: `value` in units of the score, `sd_share` as a part of the run-to-run sd.

    The first runs fix the number of a share, see `FixedConfidence.margin_after`; until then it is None. As text, a
    share is `0.25sd`, and `0.25sd=0.0037` once it is fixed.
    """

    value: Optional[float] = 0.0
    sd_share: Optional[float] = None

    @classmethod
    def parse(cls, value: Union[float, str]) -> "Margin":
        """Read a number or a text.

        Raises:
            ConfigError: if it is neither a number of at least 0 nor a share of the sd.
        """
        match = SD_SHARE_PATTERN.fullmatch(value) if isinstance(value, str) else None
        try:
            if match is None:
                margin = cls(float(value))
            else:
                with_sd = match["number"]
                margin = cls(None if with_sd is None else float(with_sd), float(match["share"]))
        except (TypeError, ValueError):
            raise OptionError(
                "margin",
                "must be a number in units of the score, or a share of the run-to-run sd such as 0.25sd, but "
                f"is '{value}'.",
            ) from None
        for number in (margin.value, margin.sd_share):
            check_margin(number or 0.0)
        return margin

    def with_sd(self, sd: float) -> "Margin":
        """Return the share with its number, of two digits, for this run-to-run sd."""
        return Margin(float(f"{(self.sd_share or 0.0) * sd:.2g}"), self.sd_share)

    @property
    def is_above_0(self) -> bool:
        return bool(self.sd_share or self.value)

    @property
    def text(self) -> str:
        if self.sd_share is None:
            return f"{self.value:g}"
        return f"{self.sd_share:g}sd" if self.value is None else f"{self.sd_share:g}sd={self.value:g}"


def is_recorded_margin(new: Any, recorded: Any) -> bool:
    """Return whether a margin is the recorded one, whose number the first runs have fixed."""
    if not (isinstance(new, str) and isinstance(recorded, str)):
        return False
    typed, fixed = Margin.parse(new), Margin.parse(recorded)
    return typed.sd_share is not None and typed.sd_share == fixed.sd_share and typed.value is None


def without_fixed_number(recorded: Any) -> Any:
    """Return a recorded margin without the number that the first runs gave it."""
    return recorded.partition("=")[0] if isinstance(recorded, str) else recorded


class Minimising(Strategy):
    """Wraps another strategy, so that the lowest mean is the best.

    The strategy, its model of the scores and its stopping rule read `History.negated`; no other object does. A decision
    contains only candidates, probabilities and a margin above 0, so nothing in it needs to be negated back.

    Args:
        strategy: strategy that looks for the highest mean.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.belief, self.confidence = strategy.belief, strategy.confidence
        self.num_starts, self.budget = strategy.num_starts, strategy.budget

    def without_further_runs(self, done: Collection[str], history: History) -> None:
        self.strategy.without_further_runs(done, history.negated)

    def open(self, names: Sequence[str]) -> Tuple[str, ...]:
        return self.strategy.open(names)

    def check(self, candidates: List[str]) -> None:
        self.strategy.check(candidates)

    def check_room(self, history: History) -> None:
        self.strategy.check_room(history.negated)

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        return self.strategy.propose(history.negated, slots, rng)

    def recommend(self, history: History) -> Decision:
        return self.strategy.recommend(history.negated)

    def describe(self, history: History) -> Decision:
        return self.strategy.describe(history.negated)

    def fix_margin(self, history: History) -> Optional[str]:
        return self.strategy.fix_margin(history.negated)

    def undecided(self, history: History) -> Optional[Undecided]:
        return self.strategy.undecided(history.negated)

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        return self.strategy.credible_margin(history.negated)

    def expected_loss(self, history: History) -> Optional[float]:
        return self.strategy.expected_loss(history.negated)

    def pair_alone(self, history: History) -> Optional[PairAlone]:
        return self.strategy.pair_alone(history.negated)

    def forecast(
        self, history: History, rng: np.random.Generator, *, max_runs: Optional[int] = None
    ) -> Optional[Forecast]:
        return self.strategy.forecast(history.negated, rng, max_runs=max_runs)

    def plain_loop(self, history: History, rng: np.random.Generator) -> Optional[LoopRuns]:
        return self.strategy.plain_loop(history.negated, rng)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        return self.strategy.bounds(num_candidates)


def unwrap_minimising(strategy: Strategy) -> Strategy:
    """Return the strategy that looks for the highest mean: the given one, or the one inside `Minimising`."""
    return strategy.strategy if isinstance(strategy, Minimising) else strategy
