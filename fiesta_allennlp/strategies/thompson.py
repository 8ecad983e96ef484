from collections import Counter
from typing import Collection, List, Mapping, Sequence

import numpy as np

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Look, Strategy, all_finished, in_turn
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.minimising import unwrapped


class PosteriorSampling(FixedConfidence):
    """Makes the starting runs of all candidates in turn, and then draws names from the posterior.

    If the stopping rule misses runs of some candidates before it names the winner, only these run, so that many workers
    do not make runs that nobody needs. A run of a candidate of `done` goes to the most probable of
    the others.

    The parameters are those of `FixedConfidence`.
    """

    def fill(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        starts = in_turn(history, self._open(history.active), target=self.num_starts, slots=slots)
        if starts or not all_finished(history, self._open(history.active), self.num_starts):
            return starts
        if look.decision.lacking:
            return _without_pending(look.decision.lacking, history)[:slots]
        prob_best = look.decision.prob_best
        instead = max(self._open(history.active), key=lambda name: prob_best[name])
        return [instead if name in self.done else name for name in self.choose(history, look, slots, rng)]

    def _open(self, names: Sequence[str]) -> List[str]:
        """Those that get further runs."""
        return [name for name in names if name not in self.done]

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names, once all starting runs have finished.

        `look` has the current decision, with a probability for every active candidate.
        """
        raise NotImplementedError


@Strategy.register("thompson")
class Thompson(PosteriorSampling):
    """Thompson sampling: draws a candidate for every free slot by its probability of being the best (FIESTA, section
    4.2).

    With many workers this is the asynchronous form of batch Thompson sampling (section 4.3): each draw uses all scores
    that have finished. Prefer `top_two` for high confidence, because Thompson sampling runs little else once a
    candidate is probably the best.

    The parameters are those of `FixedConfidence`.
    """

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        return draw(look.decision.prob_best, slots, rng)


def without_further_runs(strategy: Strategy, done: Collection[str], history: History) -> None:
    """Have a strategy take these candidates with the runs that they have.

    Raises:
        ConfigError: where one is unknown or has too few scores, all of them are named, or the strategy cannot do it.
    """
    plain = unwrapped(strategy)
    for name in done:
        least, known = strategy.belief.min_evaluations, list(history.candidates)
        if name not in known:
            raise ConfigError(f"--done: there is no candidate '{name}'.{did_you_mean(name, known)}")
        if history.num_finished(name) < least:
            raise ConfigError(
                f"--done: candidate '{name}' has {history.num_finished(name)} of the {least} scores that P(best) "
                "needs. Add scores, or leave the candidate out."
            )
    if done and not isinstance(plain, PosteriorSampling):
        raise ConfigError("--done goes with a strategy that draws from P(best), such as top_two.")
    if set(history.active) <= set(done):
        raise ConfigError("--done names all candidates, so no run is left to choose. Leave one of them out.")
    if isinstance(plain, PosteriorSampling):
        plain.done = frozenset(done)


def _without_pending(names: Sequence[str], history: History) -> List[str]:
    """The names, each as often as it has no pending run that stands for it."""
    pending = Counter(request.candidate for request in history.pending)
    left: List[str] = []
    for name in names:
        pending[name] -= 1
        if pending[name] < 0:
            left.append(name)
    return left


def draw(weights: Mapping[str, float], size: int, rng: np.random.Generator) -> List[str]:
    """Draw `size` independent names with probabilities proportional to the weights. At least one weight must be above
    0.
    """
    names = [name for name, weight in weights.items() if weight > 0]
    passed = np.cumsum([weights[name] for name in names])
    indices = np.searchsorted(passed, rng.random(size) * passed[-1], side="right")
    return [names[min(index, len(names) - 1)] for index in indices]
