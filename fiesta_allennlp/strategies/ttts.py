from typing import Any, Optional

from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.top_two import TopTwo


@Strategy.register("ttts")
class TopTwoThompson(TopTwo):
    """Top-two Thompson sampling as in the FIESTA paper (algorithm 2; Russo, 2016).

    With pi_i the probability that candidate i is the best, the rule draws a leader I from pi and a challenger J != I
    with probability pi_J / (1 - pi_I). I is run with probability `beta`, otherwise J. This is also the pure exploration
    Thompson sampling (PETS) of Haffari et al. (2017, algorithms 1 and 2). With `beta` 1 it is their Thompson sampling.
    `top_two` needs fewer runs.

    The parameters are those of `TopTwo`, with other defaults.
    """

    def __init__(self, *, challenger: str = "posterior", beta: Optional[float] = 0.5, **kwargs: Any) -> None:
        super().__init__(challenger=challenger, beta=beta, **kwargs)
