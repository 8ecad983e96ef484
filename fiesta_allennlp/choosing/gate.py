"""A gate: whether candidates are no worse than a baseline, by more than a drop that is allowed."""

from dataclasses import replace
from typing import Any, List, Literal, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing.decision import Decision, GateDecision, GateVerdict
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.batch import Rules, gives_up
from fiesta_allennlp.choosing.probability.leads import Leads
from fiesta_allennlp.choosing.strategy import Strategy, analyse
from fiesta_allennlp.choosing.thompson import TopTwo
from fiesta_allennlp.core.errors import ConfigError, did_you_mean
from fiesta_allennlp.core.records import History

GateWord = Literal["better", "no worse", "worse", "open"]
WORDS: Sequence[GateWord] = ("open", "better", "no worse", "worse")
OPEN, BETTER, NO_WORSE, WORSE = range(4)


def judge_against(leads: Leads, max_drop: float, allowed: np.ndarray) -> np.ndarray:
    """Return the verdict about each candidate, as its place in `WORDS`.

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
    stopping rule.

    Args:
        strategy: the settings of the selection.
        against: the baseline.
        max_drop: the drop that is allowed, in units of the score.
    """

    def __init__(self, strategy: FixedConfidence, *, against: str, max_drop: float) -> None:
        super().__init__(
            belief=strategy.belief,
            confidence=strategy.confidence,
            num_starts=strategy.num_starts,
            min_runs=strategy.min_runs,
            max_evaluations=strategy.max_evaluations,
            stop=strategy.stop,
        )
        self.against, self.max_drop = against, max_drop

    def _analyse(self, history: History) -> Decision:
        decision = analyse(history, self.belief)
        if len(history.active) < 2 or self.against not in history.active:
            return replace(decision, stopped_by="failures")
        verdicts = self._judge(history, decision)
        is_over = bool(verdicts) and all(each.verdict != "open" for each in verdicts)
        gave_up = not is_over and self._gives_up(history, decision, verdicts)
        is_at_limit = self.room(history) + len(history.pending) < 1
        stopped_by = "confidence" if is_over else "max_evaluations" if gave_up or is_at_limit else None
        if stopped_by is None and self._has_no_variation(history, decision):
            stopped_by = "no_variation"
        gate = GateDecision(self.against, self.max_drop, verdicts)
        return replace(decision, stopped_by=stopped_by, gave_up=gave_up and not is_at_limit, gate=gate)

    def _judge(self, history: History, decision: Decision) -> Tuple[GateVerdict, ...]:
        """Return the verdict about each candidate; empty while starting runs are missing."""
        posterior, names = decision.posterior, history.active
        if posterior is None or not self.may_stop(history, decision):
            return ()
        leads = posterior.leads_of(names.index(self.against))
        units = [self.num_units_of_pair(history, posterior, self.against, name) for name in names]
        verdicts = judge_against(leads, self.max_drop, self.stop.allowed_error(np.array([units]), self.confidence))
        codes = np.where(np.array(units) >= self.to_win, verdicts[0], OPEN)
        better, above = leads.tails()[0].tolist(), leads.tails(-self.max_drop)[0].tolist()
        difference = (-history.sign * leads.difference[0]).tolist()
        rows = zip(names, [WORDS[code] for code in codes], difference, better, above, strict=True)
        return tuple(GateVerdict(*row) for row in rows if row[0] != self.against)

    def _gives_up(self, history: History, decision: Decision, verdicts: Sequence[GateVerdict]) -> bool:
        """Return whether the runs that are left are too few to decide about any candidate that is open."""
        if not self.stop.gives_up or not verdicts or decision.posterior is None:
            return False
        leads = decision.posterior.leads_of(history.active.index(self.against))
        num_units = np.array([[history.num_units(name) for name in history.active]])
        rivals = [history.active.index(each.candidate) for each in verdicts if each.verdict == "open"]
        room = np.array([self.room(history) + len(history.pending)])
        facts = {"margin": np.array([-self.max_drop]), "room": room, "confidence": self.confidence}
        return all(gives_up(leads, np.array([rival]), num_units, **facts)[0] for rival in rivals)

    def rules(self, limit: int, num_slots: int) -> Optional[Rules]:
        return None  # those of many selections name a winner

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        assert decision.gate is not None
        names, main = history.active, history.active.index(self.against)
        chance = {each.candidate: min(each.prob_no_worse, 1 - each.prob_no_worse) for each in decision.gate.verdicts}
        settled = {each.candidate for each in decision.gate.verdicts if each.verdict != "open"}
        num_left = np.array([[0 if name in settled else self.num_left(history, name) for name in names]])
        return self.choose_from(history, np.array([[chance.get(name, 0.5) for name in names]]), main, num_left, slots)


def make_gate(strategy: Strategy, candidates: Sequence[str], *, against: str, max_drop: Any) -> Gate:
    """Return the gate with the settings of a strategy.

    Raises:
        ConfigError: if the baseline is unknown, there is no drop, or the strategy has a budget, a margin, or a sampling
            rule of its own.
    """
    if against not in candidates:
        raise ConfigError(f"--against: unknown candidate '{against}'.{did_you_mean(against, candidates)}")
    if max_drop is None:
        raise ConfigError("--against needs --max-drop, the drop that is allowed, in units of the score.")
    if not isinstance(strategy, TopTwo) or strategy.rules(1, 1) is None or strategy.parsed_margin.size:
        raise ConfigError("--against cannot be combined with --strategy, --stop glr, --budget, --margin or --preset.")
    return Gate(strategy, against=against, max_drop=max_drop)
