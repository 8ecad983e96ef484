"""Sampling rules: Thompson sampling, its synchronous batches, top-two rules, and a gate, which runs candidates against
a baseline until each is no worse by more than a drop that is allowed, or is worse."""

from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing import strategy
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.batch import ChooseAtOnce, choose_next
from fiesta_allennlp.choosing.probability.leads import Leads, choose_task
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.errors import ConfigError, did_you_mean, join_some
from fiesta_allennlp.core.records import History


class PosteriorSampling(FixedConfidence):
    """Makes the starting runs of all candidates in turn, and then draws names from the posterior.

    If runs of some candidates are missing before the winner is named, only these run, so that many workers do not make
    runs that nobody needs. A run of a candidate of `done` goes to the most probable of the others.

    The parameters are those of `FixedConfidence`.
    """

    def fill(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        names = self.open(history.active)
        parts, least = history.by_task.values(), self.num_starts
        num_started = {name: sum(min(part.num_started_units(name), least) for part in parts) for name in names}
        starting_runs = strategy.fill_evenly(num_started, target_runs=least * len(parts), slots=slots)
        if starting_runs or not strategy.have_units(history, names, self.num_starts):
            return starting_runs
        if decision.lacking:
            return _subtract_pending(decision.lacking, history)[:slots]
        return strategy.valid_names(
            self.choose(history, decision, slots, rng), history, f"{type(self).__name__}.choose"
        )

    @abstractmethod
    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names, once all starting runs have finished.

        `decision` has the current decision, with a probability for every active candidate.
        """


class Drawing(PosteriorSampling):
    """A sampling rule of the papers, which draws from a posterior of means.

    The parameters are those of `FixedConfidence`.
    """

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if not self.belief.has_draws:
            raise ConfigError(
                f"the strategy draws from a posterior of means, but that of {type(self.belief).__name__} is of leads "
                "alone. Use --belief student_t, or --strategy top_two."
            )


@strategy.Strategy.register("thompson")
class Thompson(Drawing):
    """Thompson sampling: draws a candidate for every free slot by its probability of being the best (FIESTA, section
    4.2).

    With many workers this is the asynchronous form of batch Thompson sampling (section 4.3): each draw uses all scores
    that have finished. Prefer `top_two` for high confidence, because Thompson sampling runs little else once a
    candidate is probably the best.

    The parameters are those of `FixedConfidence`.
    """

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        return draw_names(decision.prob_best, slots, rng)


@strategy.Strategy.register("bts")
class BatchThompson(Drawing):
    """Batch Thompson sampling, synchronous (FIESTA, section 4.3 and table 3; Kandasamy et al., 2018).

    The strategy draws a whole batch from the posterior at the start of the batch. The next batch begins when all runs
    of this one have finished. With fewer slots than `batch_size`, it starts a batch in pieces, all drawn from the same
    posterior. If a run fails, another draw replaces it within its batch. Use `thompson` if workers need not wait for
    each other.

    Args:
        batch_size: number of runs in a batch. By default, a batch is as large as the number of slots that are free when
            nothing is pending; failed runs are then not replaced.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, batch_size: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self._batch_start: Tuple[Optional[History], Mapping[str, float]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if self.batch_size is not None and self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1 but is {self.batch_size}.")

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        num_started = self._num_started_in_batch(history)
        if num_started == 0 and history.pending:
            return []
        start_history = history.first_evaluations(history.total_started - num_started)
        if num_started == 0:
            self._batch_start = (start_history, decision.prob_best)
        elif self._batch_start[0] != start_history:  # another history than at the last piece, as after a resumption
            prob_best = strategy.analyse(start_history, self.belief).prob_best  # empty if a candidate joined since
            self._batch_start = (start_history, prob_best or decision.prob_best)
        return draw_names(self._batch_start[1], min(slots, (self.batch_size or slots) - num_started), rng)

    def _num_started_in_batch(self, history: History) -> int:
        """Count the started evaluations of the batch: 0 where the last one is complete, or pending."""
        num_starting_runs = sum(min(self.num_starts, history.num_started(name)) for name in history.candidates)
        return (history.total_started - num_starting_runs) % self.batch_size if self.batch_size else 0


@strategy.Strategy.register("top_two")
class TopTwo(PosteriorSampling):
    """Runs the leader or its challenger, whichever has fewer runs: the sampling rule to use for a fixed confidence.

    With p_j the probability that j is better than the leader, and n_j its units with finished and pending runs, the
    challenger has the greatest p_j / n_j of all candidates that get further runs. A margin counts in p_j. Every free
    slot gets a run of its own. Pending runs count as made, so that many workers do not all choose the same one. There
    are no draws.

    Rules with a leader and a challenger go back to Russo (2016). The paper's own rule is `ttts`, which needs more runs.

    The parameters are those of `FixedConfidence`.
    """

    choose_at_once = staticmethod(choose_next)

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        assert decision.posterior is not None
        leads = decision.posterior.leads
        num_left = np.array([[self.num_left(history, name) for name in history.active]])
        tails, choose_at_once = leads.tails(decision.margin), self.choose_at_once
        return choose_names(history, tails, leads.leader, num_left, slots, choose_at_once=choose_at_once)


@strategy.Strategy.register("ttts")
class TopTwoThompson(Drawing):
    """Top-two Thompson sampling as in the FIESTA paper (algorithm 2; Russo, 2016).

    With pi_i the probability that candidate i is the best, the rule draws a leader I from pi and a challenger J != I
    with probability pi_J / (1 - pi_I), or with equal probability if pi leaves nothing for the others. I is run with
    probability `beta`, otherwise J. This is also the pure exploration Thompson sampling (PETS) of Haffari et al. (2017,
    algorithms 1 and 2). With `beta` 1 it is their Thompson sampling. `top_two` needs fewer runs.

    Args:
        beta: probability that I is run instead of J, above 0 and at most 1.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, beta: float = 0.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta = beta

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if not 0 < self.beta <= 1:
            raise ConfigError(f"beta must be above 0 and at most 1, such as 0.5, but is {self.beta}.")

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        chosen: List[str] = []
        for _ in range(slots):
            leader = draw_names(decision.prob_best, 1, rng)[0]
            is_leader = rng.random() < self.beta
            weights = {name: prob for name, prob in decision.prob_best.items() if name != leader}
            others = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
            chosen.append(leader if is_leader else draw_names(others, 1, rng)[0])
        return chosen


def choose_names(
    history: History,
    tails: np.ndarray,
    leader: np.ndarray,
    num_left: np.ndarray,
    slots: int,
    *,
    choose_at_once: ChooseAtOnce = choose_next,
) -> List[str]:
    """Return at most `slots` names by the tails of the leader's leads. Shape of `tails` and `num_left`: `(1,
    num_candidates)`."""
    num_started = np.array([[history.num_started_units(name) for name in history.active]])
    chosen: List[str] = []
    while len(chosen) < slots and (num_left >= 1).any():
        index = int(choose_at_once(tails, leader, num_started, num_left >= 1)[0])
        num_started[0, index] += 1
        num_left[0, index] -= 1
        chosen.append(history.active[index])
    return chosen


def choose_tasks(history: History, decision: Decision, names: Sequence[str], *, num_starts: int) -> List[str]:
    """Return the task of each of these runs: the one with the fewest units of a candidate until it has `num_starts` on
    each, and then the one on which a unit makes the variance of its lead fall most; see `leads.choose_task`."""
    parts, active, chosen = history.by_task, history.active, []
    best, rival = str(decision.best), str(decision.rival)
    units = {name: np.array([[own.num_started_units(name) for own in parts.values()]], float) for name in active}
    for name in names:
        task = int(units[name].argmin())
        if decision.posterior is not None and units[name].min() >= num_starts:
            lead = active.index(rival if name == best else name)
            variances = decision.posterior.leads.task_variances[None, :, 0, lead]
            task = int(choose_task(variances, units[name], units[rival if name == best else best])[0])
        units[name][0, task] += 1
        chosen.append(list(parts)[task])
    return chosen


def _subtract_pending(names: Sequence[str], history: History) -> List[str]:
    """The names, each as often as it has no pending run that stands for it."""
    num_pending_by_name = Counter(request.candidate for request in history.pending)
    unmatched: List[str] = []
    for name in names:
        num_pending_by_name[name] -= 1
        if num_pending_by_name[name] < 0:
            unmatched.append(name)
    return unmatched


def draw_names(weights: Mapping[str, float], size: int, rng: np.random.Generator) -> List[str]:
    """Draw `size` independent names with probabilities proportional to the weights. At least one weight must be above
    0.
    """
    names = [name for name, weight in weights.items() if weight > 0]
    cumulative_weights = np.cumsum([weights[name] for name in names])
    indices = np.searchsorted(cumulative_weights, rng.random(size) * cumulative_weights[-1], side="right")
    return [names[min(index, len(names) - 1)] for index in indices]


OPEN, BETTER, NO_WORSE, WORSE = "open", "better", "no worse", "worse"


def judge_against(leads: Leads, max_drop: float, allowed: np.ndarray) -> np.ndarray:
    """Return the verdict about each candidate.

    With p(m) the probability that a candidate is better than the baseline by more than m, and a the error that is
    allowed: better if 1 - p(0) <= a, or else no worse if 1 - p(-drop) <= a, worse if p(-drop) <= a. Shape:
    `(num_selections, num_candidates)`.

    Args:
        leads: those of the baseline.
        max_drop: in units of the score, at least 0.
        allowed: the error that is allowed; shape of the result.
    """
    is_better, is_above = leads.tails(), leads.tails(-max_drop)
    cases = [leads.is_leader | ~leads.noise.varied[:, None], 1 - is_better <= allowed, 1 - is_above <= allowed]
    return np.select([*cases, is_above <= allowed], [OPEN, BETTER, NO_WORSE, WORSE], OPEN)


class Gate(TopTwo):
    """Runs a baseline and others until each is better, no worse, or worse by more than a drop.

    Of those about which the verdict is open, the next run goes to the one with the greatest chance of error for each of
    its units, or to the baseline if that has fewer. The looks, their floor, and when to give up are those of the
    stopping rule. A candidate that left is judged by its scores.

    Args:
        settings: the strategy of the selection, with its settings.
        candidates: the names of all candidates.
        against: the baseline.
        max_drop: the drop that is allowed, in units of the score.

    Raises:
        ConfigError: if the baseline is unknown, there is no drop, or the strategy has a budget, a margin, or a sampling
            rule of its own.
    """

    choose_at_once: Any = None  # the rules of many selections at once name a winner

    def __init__(
        self, settings: strategy.Strategy, candidates: Sequence[str], *, against: str, max_drop: Optional[float]
    ) -> None:
        if against not in candidates:
            hint = did_you_mean(against, candidates) or f" Candidates: {join_some(candidates)}."
            raise ConfigError(f"--against: unknown candidate '{against}'.{hint}")
        if max_drop is None:
            raise ConfigError("--against needs --max-drop, the drop that is allowed, in units of the score.")
        if not isinstance(settings, TopTwo) or settings.rules(1, 1) is None or settings.parsed_margin.size:
            raise ConfigError(
                "--against cannot be combined with --strategy, --stop glr, --budget, --margin or --preset."
            )
        names = "belief", "confidence", "num_starts", "min_runs", "max_evaluations", "stop"
        super().__init__(**{name: getattr(settings, name) for name in names})
        self.against, self.max_drop = against, max_drop

    def _analyse(self, history: History) -> Decision:
        if self.against not in history.active:
            return replace(strategy.analyse(history, self.belief), stopped_by="failures")
        return super()._analyse(history)

    def _complete(self, history: History, decision: Decision) -> Decision:
        everybody, posterior = strategy.with_everybody(history, self.belief), decision.posterior
        may_judge = posterior is not None and self.may_stop(history, decision)
        if may_judge and everybody is not history:
            posterior = self.belief.posterior(everybody)
        verdicts = tuple(self._judge(everybody, posterior)) if may_judge else ()
        unjudged = tuple(name for name in history.candidates if name in everybody.withdrawn)
        return replace(decision, gate=strategy.GateDecision(self.against, self.max_drop, verdicts, unjudged))

    def _judge(self, history: History, posterior: Any) -> Iterator[strategy.GateVerdict]:
        leads, names = posterior.leads_of(history.active.index(self.against)), history.active
        units = np.concatenate([self.num_units_of_pair(history, leads, np.array([k])) for k in range(len(names))])
        allowed = self.stop.allowed_error(units, self.confidence)
        words = np.where(units >= self.to_win, judge_against(leads, self.max_drop, allowed[None])[0], OPEN)
        columns = words, -history.sign * leads.difference[0], leads.tails()[0], leads.tails(-self.max_drop)[0], allowed
        for name, *own in zip(names, *(each.tolist() for each in columns), strict=True):
            if name != self.against:
                yield strategy.GateVerdict(name, *own)

    def _missing_runs(self, history: History, decision: Decision) -> Optional[Tuple[str, ...]]:
        verdicts = decision.gate.verdicts if decision.gate else ()
        return () if verdicts and not self._find_open(history, decision) else None

    def _find_open(self, history: History, decision: Decision) -> List[str]:
        """Return the candidates that take part, and about which the verdict is open."""
        return [name for name in (decision.gate.open if decision.gate else ()) if name in history.active]

    def _is_hopeless(self, history: History, decision: Decision, room: int) -> bool:
        """Return whether the runs that are left are too few to decide about any candidate that is open."""
        names = self._find_open(history, decision)
        pairs = [replace(decision, best=self.against, rival=name, margin=-self.max_drop) for name in names]
        return all(super(Gate, self)._is_hopeless(history, pair, room) for pair in pairs)

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        assert decision.gate is not None
        names, is_open = history.active, {self.against, *decision.gate.open}
        chance = {each.candidate: min(each.prob_no_worse, 1 - each.prob_no_worse) for each in decision.gate.verdicts}
        num_left = np.array([[self.num_left(history, name) if name in is_open else 0 for name in names]])
        chances = np.array([[chance.get(name, 0.5) for name in names]])
        return choose_names(history, chances, np.array([names.index(self.against)]), num_left, slots)
