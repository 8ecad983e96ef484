"""What every strategy is, and the questions about a history that strategies share: what is believed, who is next."""

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

import numpy as np
from allennlp.common import Registrable

from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import CredibleMargin, Decision, History, Remaining

TIE_DIGITS = 9
"""Probabilities that are equal to so many digits are a tie: the quadrature is not exact to the last one."""


class Strategy(Registrable):
    """Chooses what to train next and says when it is enough. Holds no state: everything is in the history.

    One strategy serves one worker or many, synchronous or not, and a resumed run: whoever calls it gives the
    history, pending evaluations included, and the number of workers that are free.

    `belief` gives the probabilities that it reports.
    """

    belief: Belief

    def check(self, candidates: List[str]) -> None:
        """Refuse settings that cannot work for these candidates, before the first training.

        Raises:
            ConfigError: with the rule, the value and the remedy.
        """
        raise NotImplementedError

    def check_room(self, history: History) -> None:
        """Refuse a limit that leaves no room for candidates that joined a selection which had begun.

        Raises:
            ConfigError: with the least limit that does.
        """
        raise NotImplementedError

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        """At most `slots` names of active candidates to train next, with repetition.

        An empty list means: nothing to start now. With nothing pending it means that the selection is over.
        """
        raise NotImplementedError

    def recommend(self, history: History) -> Decision:
        """The decision as of now. `stopped_by` is set if and only if the selection is over, whatever is pending."""
        raise NotImplementedError

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        """The margin at which the selection would be over now. `None` where it is not by a probability that it ends,
        and where more evaluations are needed."""
        return None

    def remaining(self, history: History, rng: np.random.Generator) -> Optional[Remaining]:
        """An estimate of how many more evaluations it takes; `None` where there is none, and once it is over."""
        return None

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        """The least and the most evaluations a run with `num_candidates` candidates can take."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Look:
    """What is believed after a history. `posterior` is None while the belief needs more evaluations. `doubted` must run
    again before a winner is named of whom the stopping rule is sure."""

    decision: Decision
    posterior: Optional[Posterior] = None
    doubted: Optional[str] = None


def check_candidates(candidates: Sequence[str]) -> None:
    """Refuse fewer than two candidates, and two with one name.

    Raises:
        ConfigError: with the number or the name.
    """
    if len(candidates) < 2:
        raise ConfigError(f"a selection needs at least 2 candidates but got {len(candidates)}.")
    twice = [name for name in candidates if candidates.count(name) > 1]
    if twice:
        raise ConfigError(f'every candidate needs a name of its own but "{twice[0]}" is there more than once.')


def believed(history: History, belief: Belief, *, margin: float = 0.0) -> Look:
    """What is believed now, and the candidate that is most probably within `margin` of the best, in case of a tie the
    one that is most probably best, then the first. `best` is `None` where the belief needs more evaluations.

    With fewer than two active candidates there is nothing to compare: `best` is then the one that is left.
    """
    active = history.active
    if len(active) < 2:
        best = next((name for name in active if history.num_finished(name)), None)
        return Look(Decision(best=best, margin=margin))
    if not all_finished(history, active, belief.min_evaluations):
        return Look(Decision(best=None, margin=margin))
    posterior = belief.posterior(history)
    prob_best = dict(zip(active, posterior.prob_best().tolist(), strict=True))
    within = prob_best
    if margin > 0:
        within = dict(zip(active, posterior.prob_best(margin).tolist(), strict=True))
    best = max(active, key=lambda name: (round(within[name], TIE_DIGITS), round(prob_best[name], TIE_DIGITS)))
    decision = Decision(best=best, margin=margin, prob_best=prob_best, prob_within_margin=within)
    return Look(decision, posterior)


def finalists(decision: Decision) -> Tuple[str, ...]:
    """The recommended candidate and the other one that is most probably best; none while nothing is known."""
    others = {name: prob for name, prob in decision.prob_best.items() if name != decision.best}
    if decision.best is None or not others:
        return ()
    return decision.best, max(others, key=lambda name: others[name])


def all_finished(history: History, names: Sequence[str], count: int) -> bool:
    """Whether each of `names` has at least `count` finished evaluations."""
    return all(history.num_finished(name) >= count for name in names)


def in_turn(history: History, names: Sequence[str], *, target: int, slots: int) -> List[str]:
    """At most `slots` of `names`, the one with the fewest started evaluations first, until each has `target`."""
    started = {name: history.num_started(name) for name in names}
    chosen: List[str] = []
    while len(chosen) < slots:
        name = min(started, key=lambda key: started[key])
        if started[name] >= target:
            break
        started[name] += 1
        chosen.append(name)
    return chosen
