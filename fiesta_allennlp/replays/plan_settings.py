"""The options of a plan as one record."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.replays.settings import columns_option, done_option, minimise_option
from fiesta_allennlp.selection.options import flag, option
from fiesta_allennlp.selection.settings import CHOOSING, OFFICIAL, RESOURCES, ChoiceSettings, splits_option

PROBLEM = "Problem"

OF_NUMBERS = ("gap", "sd", "split_sd", "candidates")
"""The settings that describe a problem without a pilot."""


@dataclass(frozen=True)
class PlanSettings(ChoiceSettings):
    """The settings of `fiesta plan`. Names and defaults are those of the command's options.

    Where `source` is the directory of a selection, what it was started with stands below what is given here.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (PROBLEM, CHOOSING, RESOURCES)

    source: Optional[str] = option(
        None,
        "a pilot: the directory of a selection, or a table of scores. Leave it out with --gap",
        metavar="DIR|SCORES.json|SCORES.csv",
    )
    gap: Optional[float] = option(
        None, "distance of the best mean from all others, in units of the score", group=PROBLEM, least=0
    )
    sd: Optional[float] = option(
        None, "run-to-run standard deviation of a candidate's scores on one split", group=PROBLEM, above=0
    )
    split_sd: Optional[float] = option(
        None, "standard deviation between splits, in addition to --sd (default 0)", group=PROBLEM, least=0
    )
    candidates: Optional[int] = option(None, "number of candidates (default 2)", group=PROBLEM, least=2)
    minimise: bool = minimise_option(PROBLEM)
    seconds: Optional[float] = option(
        None,
        "duration of a run, to estimate the hours (default: the pilot's)",
        group=PROBLEM,
        metavar="SECONDS",
        above=0,
    )
    belief: Any = option(None, "model of the scores, as in a selection", group=CHOOSING, metavar="NAME|JSON")
    budget: Optional[int] = option(
        None, "fixed budget to compare with (default: the mean number of runs)", group=CHOOSING, least=1
    )
    splits: Optional[str] = splits_option(PROBLEM, default=None)
    evaluations_per_split: Optional[int] = option(
        None,
        "in a JSON file, this number of consecutive scores of each candidate shares a split (default 1)",
        group=PROBLEM,
        least=1,
    )
    columns: Optional[Mapping[str, str]] = columns_option(PROBLEM)
    done: Tuple[str, ...] = done_option(PROBLEM)
    workers: int = option(1, "number of runs at once (default 1)", group=RESOURCES, least=1)
    repetitions: Optional[int] = option(
        None,
        "number of selections to simulate (default: 20 to 200, which takes about 5 seconds)",
        group=RESOURCES,
        least=1,
    )
    processes: int = option(1, "number of processes (default 1)", group=RESOURCES, least=1)
    seed: Optional[int] = option(
        None,
        "master random seed, which repeats the simulation (default: random, recorded)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gap", "sd", "split_sd", "seconds", "margin"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ConfigError(f"{flag(name)} must be a finite number but got {value}.")
        given = [name for name in OF_NUMBERS if getattr(self, name) is not None]
        if self.source is not None and given:
            raise ConfigError(
                f"{flag(given[0])} cannot be combined with {self.source}, which already gives it. Give only one."
            )
        if self.source is None and (self.gap is None or self.sd is None):
            raise ConfigError(
                "give the directory of a selection or a table of scores; or --gap and --sd, such as --gap 0.01 "
                "--sd 0.03 --candidates 4."
            )
        if self.source is None and self.done:
            raise ConfigError("--done names candidates of a table of scores or a selection. Give one, or leave it out.")
        if self.source is None and self.minimise:
            raise ConfigError("--minimise is for tables of scores: --gap has no direction. Leave it out.")
        if self.source is None and self.evaluations_per_split is not None:
            raise ConfigError("--evaluations-per-split is for a table of scores. Give one, or leave it out.")
        if self.split_sd and self.splits == OFFICIAL:
            raise ConfigError(
                f"--split-sd {self.split_sd:g} cannot be combined with --splits official, where all runs have one "
                "split. Leave one of them out."
            )
