from typing import List, Tuple

from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Strategy, all_finished
from fiesta_allennlp.strategies.fixed_budget import FixedBudget, Stage


@Strategy.register("sequential_halving")
class SequentialHalving(FixedBudget):
    """Spends an equal share of the budget in each round and keeps the better half (FIESTA, algorithm 1 and table 1).

    With N candidates there are ceil(log2 N) rounds (Karnin et al., 2013). Round r gives each of its contenders S_r::

        floor(budget / (|S_r| ceil(log2 N)))

    new runs. It keeps the ``ceil(|S_r| / 2)`` contenders with the highest mean of all their scores so far. Among equal
    means, the first in the candidates' order stays. Exactly the scores planned up to the round count, by replicate, so
    the order in which runs finish has no influence.

    Use it if the number of runs is fixed beforehand. It gives no guarantee about confidence.

    A candidate that drops out after failures leaves all rounds. If it had survived a round, the best candidate that was
    eliminated in that round takes its place and catches up, as far as the budget lasts. A candidate that the user
    removed is not part of the plan: N counts the other candidates, and they share what it left of the budget.

    The parameters are those of `FixedBudget`.
    """

    def least(self, num_candidates: int) -> int:
        return num_candidates * _num_rounds(num_candidates)

    def stage(self, history: History) -> Stage:
        contenders = history.active
        target = 0
        for size in _sizes(history.num_planned):
            num_new = _num_new(self.planned(history), size, history.num_planned)
            target += num_new
            if num_new == 0 or not all_finished(history, self.open(contenders), target):
                break
            means = {name: history.scores(name)[:target].mean() for name in contenders}
            ranked = sorted(means, key=means.__getitem__, reverse=True)
            contenders = tuple(name for name in contenders if name in ranked[: (size + 1) // 2])
        return Stage(contenders, target)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        """Return the plan's total twice.

        If a candidate drops out, the selection can take fewer runs, or more within the budget.
        """
        planned = sum(size * _num_new(self.budget, size, num_candidates) for size in _sizes(num_candidates))
        return planned, planned


def _num_new(budget: int, size: int, num_candidates: int) -> int:
    return budget // (size * _num_rounds(num_candidates))


def _num_rounds(num_candidates: int) -> int:
    return (num_candidates - 1).bit_length()


def _sizes(num_candidates: int) -> List[int]:
    """|S_r| of every round."""
    sizes = [num_candidates]
    for _ in range(_num_rounds(num_candidates) - 1):
        sizes.append((sizes[-1] + 1) // 2)
    return sizes
