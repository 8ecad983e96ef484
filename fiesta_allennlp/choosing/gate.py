"""A gate: whether candidates are no worse than a baseline, by more than a drop that is allowed."""

from dataclasses import replace
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing.probability.leads import Leads
from fiesta_allennlp.choosing.strategy import Decision, GateDecision, GateVerdict, Strategy, analyse, with_everybody
from fiesta_allennlp.choosing.thompson import TopTwo, choose_names
from fiesta_allennlp.core.errors import ConfigError, did_you_mean, join_some
from fiesta_allennlp.core.records import History

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
        strategy: the settings of the selection.
        candidates: the names of all candidates.
        against: the baseline.
        max_drop: the drop that is allowed, in units of the score.

    Raises:
        ConfigError: if the baseline is unknown, there is no drop, or the strategy has a budget, a margin, or a sampling
            rule of its own.
    """

    choose_at_once: Any = None  # the rules of many selections at once name a winner

    def __init__(
        self, strategy: Strategy, candidates: Sequence[str], *, against: str, max_drop: Optional[float]
    ) -> None:
        if against not in candidates:
            hint = did_you_mean(against, candidates) or f" Candidates: {join_some(candidates)}."
            raise ConfigError(f"--against: unknown candidate '{against}'.{hint}")
        if max_drop is None:
            raise ConfigError("--against needs --max-drop, the drop that is allowed, in units of the score.")
        if not isinstance(strategy, TopTwo) or strategy.rules(1, 1) is None or strategy.parsed_margin.size:
            raise ConfigError(
                "--against cannot be combined with --strategy, --stop glr, --budget, --margin or --preset."
            )
        names = "belief", "confidence", "num_starts", "min_runs", "max_evaluations", "stop"
        super().__init__(**{name: getattr(strategy, name) for name in names})
        self.against, self.max_drop = against, max_drop

    def _analyse(self, history: History) -> Decision:
        if self.against not in history.active:
            return replace(analyse(history, self.belief), stopped_by="failures")
        return super()._analyse(history)

    def _complete(self, history: History, decision: Decision) -> Decision:
        everybody, posterior = with_everybody(history, self.belief), decision.posterior
        may_judge = posterior is not None and self.may_stop(history, decision)
        if may_judge and everybody is not history:
            posterior = self.belief.posterior(everybody)
        verdicts = tuple(self._judge(everybody, posterior)) if may_judge else ()
        unjudged = tuple(name for name in history.candidates if name in everybody.withdrawn)
        return replace(decision, gate=GateDecision(self.against, self.max_drop, verdicts, unjudged))

    def _judge(self, history: History, posterior: Any) -> Iterator[GateVerdict]:
        leads, names = posterior.leads_of(history.active.index(self.against)), history.active
        units = np.concatenate([self.num_units_of_pair(history, leads, np.array([k])) for k in range(len(names))])
        allowed = self.stop.allowed_error(units, self.confidence)
        words = np.where(units >= self.to_win, judge_against(leads, self.max_drop, allowed[None])[0], OPEN)
        columns = words, -history.sign * leads.difference[0], leads.tails()[0], leads.tails(-self.max_drop)[0], allowed
        for name, *own in zip(names, *(each.tolist() for each in columns), strict=True):
            if name != self.against:
                yield GateVerdict(name, *own)

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
