"""How many of a number of runs go to each stage of a search."""

from dataclasses import dataclass

from fiesta_allennlp.errors import ConfigError

SCREENING = 4 / 5
"""The share of the first stage."""

LEAST = 12


@dataclass(frozen=True)
class Shares:
    """`configs` run once each. The best `finalists` of them then share `decision` further runs."""

    configs: int
    finalists: int
    decision: int


def shared_out(runs: int) -> Shares:
    """A share that is near the best one on three tasks; see `docs/searching.md`. The finalists are as many as
    sequential halving can take, a power of two: m of them need m log2(m) runs.

    Raises:
        ConfigError: where there are too few runs.
    """
    if runs < LEAST:
        raise ConfigError(f"a search in two stages needs at least {LEAST} runs but got {runs}.")
    configs = round(SCREENING * runs)
    rounds = 1
    while 2 ** (rounds + 1) * (rounds + 1) <= runs - configs:
        rounds += 1
    return Shares(configs, 2**rounds, runs - configs)
