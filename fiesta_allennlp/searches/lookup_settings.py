"""The options of a search by table lookup as one record."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Dict, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.options import check_options, option
from fiesta_allennlp.selection.settings import RESOURCES, registered

RUNS = "Runs"
SEARCHING = "Search"
MEASURING = "Measures"

BLEU = "dev_bleu"


def _separated(text: str) -> Tuple[str, ...]:
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))


@dataclass(frozen=True)
class LookupSettings:
    """What `allennlp fiesta-lookup` can be told. Names and defaults are those of the command's options."""

    GROUPS: ClassVar[Tuple[str, ...]] = (RUNS, SEARCHING, MEASURING, RESOURCES)

    table: str = option(
        "",
        "a CSV file with one run per line; or a directory of tables in the form of Zhang and Duh (2020), or one of "
        "them by the start of its file names, such as DIR/zh-en",
        metavar="RUNS.csv|DIR|DIR/NAME",
    )
    inputs: Tuple[str, ...] = option(
        (),
        "in a CSV file, the columns that are known before a run, separated by commas; NAME:log takes the logarithm; "
        "texts are categories",
        group=RUNS,
        metavar="A,B:log,...",
        parse=_separated,
    )
    objective: Tuple[str, ...] = option(
        (),
        "the column to maximise; -NAME minimises it; two columns search for their Pareto front (default dev_bleu)",
        group=RUNS,
        metavar="NAME[,-NAME]",
        parse=_separated,
    )
    searcher: Any = option(
        "gp_ei",
        "gp_ei (default), graph_ei, graph_eif or random; for two objectives gp_ehvi, graph_ehvi or random; or a JSON "
        "object with a `type`",
        group=SEARCHING,
        metavar="NAME|JSON",
    )
    batch_size: int = option(
        1,
        "runs per round; a round begins when all runs of the last one have finished (default 1)",
        group=SEARCHING,
        least=1,
    )
    tolerance: Optional[float] = option(
        None,
        "a run this close to the best counts as good, in units of the objective (default 0.5 for dev_bleu, else 0)",
        group=MEASURING,
        least=0,
    )
    budget: Optional[int] = option(
        None,
        "compare searchers after this number of runs (default 20; 50 with two objectives)",
        group=MEASURING,
        least=1,
    )
    trials: int = option(100, "number of searches (default 100)", group=RESOURCES, least=1)
    entropy: Optional[int] = option(
        None,
        "master random seed, which repeats a lookup (default: random, recorded)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if len(self.objective) > 2:
            raise ConfigError(
                f"--objective: give one or two but got {len(self.objective)}: {', '.join(self.objective)}."
            )
        if self.inputs and not self.is_csv:
            raise ConfigError(
                f"--inputs is for a CSV file: {self.table} says itself what its inputs are. Leave it out."
            )
        if self.is_csv and not self.objective:
            raise ConfigError(f"--objective is missing: say which column of {self.table} is to be optimised.")

    @property
    def is_csv(self) -> bool:
        return Path(self.table).suffix == ".csv"

    @property
    def objectives(self) -> Tuple[str, ...]:
        return self.objective or (BLEU,)

    def searcher_params(self) -> Dict[str, Any]:
        """The searcher as a config."""
        return registered(self.searcher, "--searcher")
