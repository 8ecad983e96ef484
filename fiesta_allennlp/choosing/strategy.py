"""The base class of strategies, what they share, and how one is built and checked from the options that name it."""

import math
import re
from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Callable, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from fiesta_allennlp.choosing.beliefs.belief import Belief, Posterior
from fiesta_allennlp.choosing.probability.batch import nearest_rival
from fiesta_allennlp.choosing.probability.prob_best import check_margin
from fiesta_allennlp.core.choice_settings import BELIEF, ChoiceSettings
from fiesta_allennlp.core.errors import ConfigError, OptionError, did_you_mean, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.options import deciding_options, flag
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable, build, convert_value

DECIDED_REASONS = ("confidence", "budget")
"""The reasons for which a selection stops with a winner; and `documents`, if P(best) has reached the target."""


@dataclass(frozen=True)
class ClassErrors:
    """How many winners of a class of P(best) and lead were wrong in simulated selections, of how many."""

    wrong: int
    winners: int


@dataclass(frozen=True)
class GateVerdict:
    """The verdict about a candidate against a baseline: `better`, `no worse`, `worse` or `open`.

    `difference` is its mean minus that of the baseline, as the metric reports them. `prob_better` is the probability
    that it is better, and `prob_no_worse` that it is not worse by more than the drop that is allowed. After the runs so
    far, the gate decides at a probability of error of at most `allowed_error`.
    """

    candidate: str
    verdict: str
    difference: float
    prob_better: float
    prob_no_worse: float
    allowed_error: float


@dataclass(frozen=True)
class GateDecision:
    """The verdicts about all candidates except the baseline `against`; none while starting runs are missing.

    `max_drop` is the drop that is allowed, in units of the score. `unjudged` candidates have left with too few scores.
    """

    against: str
    max_drop: float
    verdicts: Tuple[GateVerdict, ...] = ()
    unjudged: Tuple[str, ...] = ()

    @property
    def open(self) -> Tuple[str, ...]:
        """The candidates about which the verdict is open."""
        return tuple(each.candidate for each in self.verdicts if each.verdict == "open")

    @property
    def verdict(self) -> str:
        """The verdict about all of them: `worse` if one is, or else `open` if one is, `better` if all are."""
        words = {each.verdict for each in self.verdicts}.union(["open"] if self.unjudged or not self.verdicts else [])
        return next(word for word in ("worse", "open", "no worse", "better") if word in words)


@dataclass(frozen=True)
class Decision:
    """The conclusion of a strategy from a history.

    `best` is `None` while nothing can be concluded. `prob_best` has an entry for every active candidate, or is empty if
    some of them have too few runs for the model of the scores. `prob_within_margin` is P(mean >= best mean - margin),
    with the same entries; with `margin` 0 both are equal. `stopped_by` is `None` while there is more to do, otherwise
    `confidence`, `budget`, `max_evaluations`, `max_hours`, `documents` (no more are left), `failures` (fewer than two
    candidates are left), `no_variation` (all runs of each candidate are equal) or `interrupted`. With `gave_up`, the
    runs that the limit left were too few to go on for. `lacking` names the candidates that must run again before `best`
    is named, one for each run, even though its probability is high enough. `rival` is the other candidate that is most
    probably better than `best`. `num_units` are the units of the two, of the one that has fewer: only of those that get
    further runs, and infinite if neither does. `posterior` is `None` while the model of the scores needs more runs.

    The last fields are those of `fiesta_allennlp.selecting.results.verdict.judge`: `compared` are the candidates of the
    posterior if these are not the active ones. `unresolved` candidates have left and could still be the best.
    `questions` are about the scores. With one of them, `stopped_by` has its name instead of a reason for a winner.
    `prob_equal` is the least probability, over all pairs of those that could be the best, that two are within half a
    run-to-run sd. `class_errors` are the measured errors of winners such as `best`.

    `gate` has the verdicts against a baseline, where these are asked for instead of the best.
    """

    best: Optional[str]
    margin: float = 0.0
    stopped_by: Optional[str] = None
    prob_best: Mapping[str, float] = field(default_factory=dict)
    prob_within_margin: Mapping[str, float] = field(default_factory=dict)
    lacking: Tuple[str, ...] = ()
    gave_up: bool = False
    rival: Optional[str] = None
    num_units: float = math.inf
    posterior: Optional[Posterior] = field(default=None, repr=False, compare=False)
    compared: Optional[Tuple[str, ...]] = None
    unresolved: Tuple[str, ...] = ()
    questions: Tuple[str, ...] = ()
    prob_equal: Optional[float] = None
    gate: Optional[GateDecision] = None
    class_errors: Optional[ClassErrors] = None

    @property
    def confidence(self) -> Optional[float]:
        """The probability that `best` is the best (within `margin`).

        `None` while the model of the scores has too few runs to compute it.
        """
        return self.prob_within_margin.get(self.best) if self.best is not None else None


@dataclass(frozen=True)
class RunLimit:
    """At most `num_runs` runs of each candidate, as where documents run out.

    `measure` of a history and a name is what counts once candidates have made all their runs: then it is known.
    """

    num_runs: int
    measure: Callable[[History, str], float]


class Strategy(Registrable):
    """Chooses the next runs, and ends the selection when its rule is met.

    A strategy holds no state: it decides from the history alone, which includes the pending runs. The same strategy
    therefore serves one worker or many, synchronous or not, and a resumed selection. The caller passes the history and
    the number of free workers.

    `belief` computes the probabilities that the strategy reports. `confidence` is the probability at which it stops, or
    None if it stops for another reason. `num_starts` is the number of runs that every candidate begins with, and
    `budget` the number of runs to spend, or None without one; `needs_budget` says whether it must be given.
    `run_limit` limits the runs of each candidate.
    """

    belief: Belief
    confidence: Optional[float] = None
    num_starts: int = 0
    budget: Optional[int] = None
    needs_budget: bool = False
    run_limit: Optional[RunLimit] = None
    done: FrozenSet[str] = frozenset()
    """Candidates that get no further runs. Set by `without_further_runs`."""

    def without_further_runs(self, done: Sequence[str], history: History) -> None:
        """Take these candidates with the runs that they have.

        Raises:
            ConfigError: if one is unknown or has too few scores, or all of them are named.
        """
        min_evaluations = self.belief.min_evaluations
        for name in done:
            if name not in history.candidates:
                raise ConfigError(f"--done: unknown candidate '{name}'.{did_you_mean(name, history.candidates)}")
            num_finished = min(part.num_finished(name) for part in history.by_task.values())
            if num_finished < min_evaluations:
                where = " on every task" if history.tasks else ""
                raise ConfigError(
                    f"--done: candidate '{name}' has {num_finished} of the {min_evaluations} scores required for "
                    f"P(best){where}. Add scores or remove the candidate."
                )
        if done and set(history.active) <= set(done):
            raise ConfigError("--done names all candidates, so there is nothing left to run. Remove one of them.")
        self.done = frozenset(done)

    def open(self, names: Sequence[str]) -> Tuple[str, ...]:
        """Return those of `names` that are not `done`."""
        return tuple(name for name in names if name not in self.done)

    def num_left(self, history: History, name: str) -> float:
        """Return how many more runs a candidate may begin. Failed runs count as made."""
        if name in self.done:
            return 0
        return math.inf if self.run_limit is None else self.run_limit.num_runs - history.num_begun[name]

    def within_limit(self, names: Sequence[str], history: History, prob_best: Mapping[str, float]) -> List[str]:
        """Replace the names of candidates that get no further runs by the most probable of the others, the one with
        more runs left among equals. Leave them out if no others are left."""
        left = {name: self.num_left(history, name) for name in history.active}
        chosen: List[str] = []
        for name in names:
            others = (other for other in left if left[other] >= 1)
            if left[name] < 1:
                name = max(others, key=lambda other: (prob_best.get(other, 0.0), left[other]), default="")
            if name:
                left[name] -= 1
                chosen.append(name)
        return chosen

    def exhausted(self, history: History) -> Tuple[str, ...]:
        """Return the candidates that have made all runs of `run_limit`, even if each has failed."""
        if self.run_limit is None:
            return ()
        names = (name for name in history.active if history.num_begun[name] >= self.run_limit.num_runs)
        return tuple(name for name in names if not history.num_pending(name))

    def end_at_limit(self, history: History, decision: Decision) -> Decision:
        """Return the end where the runs of `run_limit` are made: the candidate with the highest `measure` leads. With
        fewer than two candidates that have a run, there is no comparison."""
        assert self.run_limit is not None
        measure, finished = self.run_limit.measure, [name for name in history.active if history.num_finished(name)]
        if len(finished) < 2:
            return replace(decision, best=finished[0] if finished else None, stopped_by="failures")
        known = [name for name in finished if name in self.exhausted(history)] or finished
        return replace(decision, best=max(known, key=lambda name: measure(history, name)), stopped_by="documents")

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

    def limited_bounds(self, num_candidates: int, least: int, most: int) -> Tuple[int, int]:
        """Return bounds of the number of runs within `run_limit`."""
        room = math.inf if self.run_limit is None else self.run_limit.num_runs * num_candidates
        return int(min(least, room)), int(min(most, room))

    @abstractmethod
    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        """Return the smallest and the largest number of runs that a selection among `num_candidates` candidates can
        take.
        """


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


def analyse(history: History, belief: Belief, *, margin: "Optional[Margin]" = None) -> Decision:
    """Compute the posterior after `history`, and the candidate that leads.

    `best` is `None` while the model of the scores needs more runs. With fewer than two active candidates there is
    nothing to compare: `best` is then the one that is left.
    """
    margin, active = margin or Margin(), history.active
    if len(active) < 2:
        best = next((name for name in active if history.num_finished(name)), None)
        return Decision(best=best, margin=margin.to_score(0.0))
    if not have_finished(history, active, belief.min_evaluations):
        return Decision(best=None, margin=margin.to_score(0.0))
    posterior = belief.posterior(history)
    if not isinstance(posterior, Posterior):
        raise ConfigError(f"{type(belief).__name__}.posterior must be a Posterior but got {shorten(posterior)}.")
    size = margin.to_score(posterior.noise_sd)
    prob_best = dict(zip(active, posterior.prob_best().tolist(), strict=True))
    prob_within = dict(zip(active, posterior.prob_best(size).tolist(), strict=True)) if size > 0 else prob_best
    rival = int(nearest_rival(posterior.leads, posterior.leads.tails(size))[0])
    best = active[posterior.leader]
    return Decision(best, size, None, prob_best, prob_within, rival=active[rival], posterior=posterior)


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


def have_units(history: History, names: Sequence[str], min_units: int) -> bool:
    """Return whether each of `names` has at least `min_units` units with a finished run, on every task."""
    return all(part.num_units(name) >= min_units for part in history.by_task.values() for name in names)


def have_finished(history: History, names: Sequence[str], min_runs: int) -> bool:
    """Return whether each of `names` has at least `min_runs` finished runs, on every task."""
    return all(part.num_finished(name) >= min_runs for part in history.by_task.values() for name in names)


def with_everybody(history: History, belief: Belief) -> History:
    """Return the history with those candidates active that left, but have enough scores to be compared."""
    left = [name for name in history.withdrawn if have_finished(history, [name], belief.min_evaluations)]
    return replace(history, withdrawn=history.withdrawn.difference(left)) if left else history


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


SD_SHARE_PATTERN = re.compile(r"\s*(?P<share>\S+?)\s*sd\s*")


@dataclass(frozen=True)
class Margin:
    """The margin of a strategy: its `size` in units of the score, or of the run-to-run sd (`is_in_sds`)."""

    size: float = 0.0
    is_in_sds: bool = False

    @classmethod
    def parse(cls, value: Union[float, str]) -> "Margin":
        """Read a number, or a text such as `0.25sd`.

        Raises:
            ConfigError: if it is neither a number of at least 0 nor a share of the sd.
        """
        match = SD_SHARE_PATTERN.fullmatch(value) if isinstance(value, str) else None
        try:
            margin = cls(float(value)) if match is None else cls(float(match["share"]), is_in_sds=True)
        except (TypeError, ValueError):
            raise OptionError(
                "margin",
                "must be a number in units of the score, or a share of the run-to-run sd such as 0.25sd, but "
                f"is '{value}'.",
            ) from None
        check_margin(margin.size)
        return margin

    def to_score(self, sd: float) -> float:
        """Return the margin in units of the score, for this run-to-run sd."""
        return self.size * sd if self.is_in_sds else self.size

    @property
    def text(self) -> str:
        return f"{self.size:g}sd" if self.is_in_sds else f"{self.size:g}"


def build_strategy(
    choice: ChoiceSettings,
    names: List[str],
    *,
    has_counts: bool = False,
    minimise: bool = False,
    run_limit: Optional[RunLimit] = None,
) -> Strategy:
    """Build the strategy with its belief, and check it for these candidates. `has_counts` says whether runs report
    counts of right and wrong answers, which some beliefs need, and `run_limit` limits the runs of each candidate."""
    params = choice.strategy_params()
    _check_strategy_options(params, choice)
    try:
        strategy = build(Strategy, params)
    except ConfigError as error:
        parts = [f"--{name} {params[name]['type']}" for name in ("belief", "stop") if name in params]
        raise ConfigError(f"--strategy {params['type']} with {' and '.join(parts)}: {error}") from error
    with translated_option_errors(choice):
        strategy.check(names)
    if strategy.belief.needs_counts and (minimise or not has_counts):
        reason = "needs counts of right and wrong answers, which these runs do not report"
        raise ConfigError(f"--belief {params['belief']['type']} {reason}. Use --belief {BELIEF}.")
    strategy.run_limit = run_limit
    return strategy


@contextmanager
def translated_option_errors(choice: ChoiceSettings) -> Iterator[None]:
    """Begin an error of a strategy with the option as it is typed. If the limit is too low, add what needs fewer
    runs."""
    try:
        yield
    except OptionError as error:
        remedy = ""
        if error.option == "max_evaluations":
            limit = choice.strategy_params()["max_evaluations"]
            remedy = f" Raise it, or use --budget {limit}, or --stop bayesian, which needs fewer runs."
        raise ConfigError(f"{flag(error.option)} {error.rule}{remedy}") from error


def _check_strategy_options(params: Mapping[str, Any], choice: ChoiceSettings) -> None:
    """Refuse an option that belongs to the other kind of strategy, and a missing budget."""
    name = params["type"]
    strategy_class = Strategy.find(name)
    if strategy_class is not None:
        has_budget = strategy_class.needs_budget
        forbidden_options = deciding_options(choice, "confidence" if has_budget else "budget")
        if wrong_options := [key for key in forbidden_options if key in params]:
            option = "--budget" if has_budget else f"--strategy {name}"
            raise ConfigError(f"{flag(wrong_options[0])} cannot be combined with {option}. Use one or the other.")
        if has_budget and "budget" not in params:
            raise ConfigError(f"--strategy {name} needs --budget N, the total number of runs.")
