from typing import List, Tuple

from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.fixed_budget import FixedBudget, Stage


@Strategy.register("sequential_halving")
class SequentialHalving(FixedBudget):
    """Rounds that each spend an equal share of the budget and keep the better half (FIESTA, algorithm 1 and table 1).

    With N candidates there are ceil(log2 N) rounds (Karnin et al., 2013). Round r gives each of its contenders S_r::

        floor(budget / (|S_r| ceil(log2 N)))

    new evaluations and keeps the ``ceil(|S_r| / 2)`` with the highest mean of all their scores so far; the first of
    equals in the candidates' order. Exactly the scores planned up to the round count, by replicate, so that the
    order of finishing plays no part.

    Use it where the number of trainings is given beforehand. It makes no promise about confidence.

    A withdrawn candidate drops out of all rounds. Where one drops out after it survived a round, the best of those
    that it had displaced takes its place and catches up, as far as the budget lasts. One that the user removed is no
    part of the plan: N is the number of the others, and the budget what they have left of it.

    See `FixedBudget` for the parameters.
    """

    unit = "rounds"

    def least(self, num_candidates: int) -> int:
        return num_candidates * _num_rounds(num_candidates)

    def stage(self, history: History) -> Stage:
        contenders = history.active
        target = 0
        for size in _sizes(history.num_planned):
            num_new = _num_new(self.planned(history), size, history.num_planned)
            target += num_new
            if num_new == 0 or any(history.num_finished(name) < target for name in contenders):
                break
            contenders = _better(history, contenders, target, (size + 1) // 2)
        return Stage(contenders, target)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        """Both are the plan's total; where a candidate is withdrawn it can be less, or more within the budget."""
        planned = sum(size * _num_new(self.budget, size, num_candidates) for size in _sizes(num_candidates))
        return planned, planned


def _num_new(budget: int, size: int, num_candidates: int) -> int:
    return budget // (size * _num_rounds(num_candidates))


def _num_rounds(num_candidates: int) -> int:
    """ceil(log2 N), in integers."""
    return (num_candidates - 1).bit_length()


def _sizes(num_candidates: int) -> List[int]:
    """|S_r| of every round."""
    sizes = [num_candidates]
    for _ in range(_num_rounds(num_candidates) - 1):
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def _better(history: History, contenders: Tuple[str, ...], target: int, size: int) -> Tuple[str, ...]:
    """The `size` contenders with the highest mean of their first `target` scores, in the candidates' order."""
    ranked = sorted(contenders, key=lambda name: -history.scores(name)[:target].mean())
    return tuple(name for name in contenders if name in ranked[:size])
