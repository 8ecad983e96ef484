from typing import Any, Optional

from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.top_two import TopTwo


@Strategy.register("ttts")
class TopTwoThompson(TopTwo):
    """Top-two Thompson sampling as in the FIESTA paper (algorithm 2; Russo, 2016).

    With pi_i the probability that candidate i is best, a leader I is drawn from pi and a challenger J != I with
    probability pi_J / (1 - pi_I). I is trained with probability `beta`, else J. This is also the pure exploration
    Thompson sampling (PETS) of Haffari et al. (2017, algorithms 1 and 2), and with `beta` 1 their Thompson sampling.
    `top_two` needs fewer evaluations.

    Args:

    See `TopTwo`: the same with other defaults.
    """

    def __init__(self, *, challenger: str = "posterior", beta: Optional[float] = 0.5, **kwargs: Any) -> None:
        super().__init__(challenger=challenger, beta=beta, **kwargs)
