"""The options of `fiesta replay`, `fiesta next` and `fiesta plan`, each as one record."""

import argparse
import csv
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.selection.options import flag, option
from fiesta_allennlp.selection.settings import CHOOSING, OFFICIAL, RESOURCES, ChoiceSettings, splits_option

SCORES = "Scores"


def separated(text: str) -> Tuple[str, ...]:
    names = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(name.strip() for name in names)


COLUMNS = ("candidate", "split", "seed", "score", "metric")


def columns_of(text: str) -> Dict[str, str]:
    """Read `candidate=model,score=test_f1`: the columns that a file calls otherwise."""
    pairs = [pair.partition("=") for pair in separated(text)]
    for name, equals, called in pairs:
        if name not in COLUMNS or not equals or not called:
            hint = did_you_mean(name, COLUMNS)
            raise argparse.ArgumentTypeError(
                f"must be pairs such as candidate=model,score=test_f1 with the names {', '.join(COLUMNS)}, but got "
                f"'{text}'.{hint}"
            )
    return {name: called for name, _, called in pairs}


def done_option(group: str) -> Any:
    """Return the option `--done`, below this heading; without a heading, it is not on the command line."""
    return option(
        (),
        "candidates that get no further runs, such as a published model; they take part with their existing scores",
        group=group,
        metavar="A,B,...",
        parse=separated,
    )


def done_note(done: Sequence[str]) -> Tuple[str, ...]:
    """Say of candidates that get no further runs how they take part."""
    if not done:
        return ()
    verb = "gets no further runs and takes" if len(done) == 1 else "get no further runs and take"
    return (f"{', '.join(done)} {verb} part with the existing scores, so P(best) rests on these.",)


def columns_option(group: str) -> Any:
    return option(
        None,
        "a CSV file's names for the columns, such as candidate=model,score=test_f1,seed=seed. Without a column split, "
        "all runs share one official split",
        group=group,
        metavar="NAME=COLUMN,...",
        parse=columns_of,
    )


def minimise_option(group: str) -> Any:
    return option(
        False,
        "lower scores of a table are better; in a CSV file, -NAME in the column `metric` has the same effect",
        group=group,
        can_be_undone=False,
    )


def blocks_option(group: str) -> Any:
    return option(
        None,
        "in a JSON file, this number of consecutive scores of each candidate shares a split (default 1)",
        group=group,
        metavar="N",
        least=1,
    )


def seed_option() -> Any:
    return option(
        None,
        "master random seed, which repeats the simulation (default: random, recorded)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )


@dataclass(frozen=True)
class ReplaySettings(ChoiceSettings):
    """The settings of `fiesta replay`. `scores` is a file or a preset; empty `candidates` are all of it."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES, CHOOSING, RESOURCES)

    scores: str = option(
        "",
        "a JSON file {candidate: [scores]}; a CSV file with the columns candidate, split, seed, score; the directory "
        "of a selection that has a report; or a preset of normal scores: tdsa-8, tdsa-12, tie, noisy",
        metavar="SCORES.json|SCORES.csv|DIR|PRESET",
    )
    candidates: Tuple[str, ...] = option(
        (),
        "use only these candidates; put a name with a comma between double quotes",
        group=SCORES,
        metavar="A,B,...",
        parse=separated,
    )
    evaluations_per_split: Optional[int] = blocks_option(SCORES)
    columns: Optional[Mapping[str, str]] = columns_option(SCORES)
    minimise: bool = minimise_option(SCORES)
    splits: str = splits_option(SCORES)
    with_replacement: bool = option(
        False, "draw scores of the table with replacement", group=SCORES, can_be_undone=False
    )
    done: Tuple[str, ...] = done_option("")
    repetitions: int = option(500, "number of selections to simulate (default 500)", group=RESOURCES, least=1)
    batch_size: int = option(
        1,
        "runs per round; a round begins when the last one has finished (default 1)",
        group=RESOURCES,
        least=1,
    )
    processes: Optional[int] = option(None, "number of processes (default: one per core)", group=RESOURCES, least=1)
    seed: Optional[int] = seed_option()

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def num_processes(self) -> int:
        return self.processes or os.cpu_count() or 1


@dataclass(frozen=True)
class NextSettings(ChoiceSettings):
    """The settings of `fiesta next`. `scores` is empty for rows of Python, and `candidates` may have no row yet."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES, CHOOSING, RESOURCES)

    scores: str = option(
        "",
        "a CSV file with the columns candidate, score and seed, and split if runs have random splits. Leave the score "
        "empty while a run has not finished; write `failed` if it gave none",
        metavar="SCORES.csv",
    )
    candidates: Tuple[str, ...] = option(
        (),
        "candidates that have no row yet; put a name with a comma between double quotes",
        group=SCORES,
        metavar="A,B,...",
        parse=separated,
    )
    columns: Optional[Mapping[str, str]] = columns_option(SCORES)
    done: Tuple[str, ...] = done_option(SCORES)
    minimise: bool = minimise_option(SCORES)
    splits: Optional[str] = splits_option(SCORES, default=None)
    workers: int = option(1, "number of runs to name (default 1)", group=RESOURCES, least=1)
    max_failures: int = option(
        3, "drop a candidate after this number of failed runs (default 3)", group=RESOURCES, least=1
    )
    seed: int = option(
        0,
        "seed of the random choices; the same table and seed give the same answer (default 0)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scores and Path(self.scores).suffix != ".csv":
            raise ConfigError(
                f"'{self.scores}' is not a CSV file. Pass the table to which each run adds a row. An empty table has "
                "only the line candidate,split,seed,score; name its candidates with --candidates."
            )

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL


PROBLEM = "Problem"

OF_NUMBERS = ("gap", "sd", "split_sd", "candidates")
"""The settings that describe a problem without a pilot."""

OF_PILOT = ("done", "minimise", "evaluations_per_split", "columns")


@dataclass(frozen=True)
class PlanSettings(ChoiceSettings):
    """The settings of `fiesta plan`. What the selection in `source` was started with stands below what is given
    here."""

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
    evaluations_per_split: Optional[int] = blocks_option(PROBLEM)
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
    seed: Optional[int] = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gap", "sd", "split_sd", "seconds", "margin"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ConfigError(f"{flag(name)} must be a finite number but got {value}.")
        given = [name for name in OF_NUMBERS if getattr(self, name) is not None]
        if self.source is not None and given:
            raise ConfigError(
                f"{flag(given[0])} cannot be combined with {self.source}, which already gives it. Use only one."
            )
        if self.source is None and (self.gap is None or self.sd is None):
            raise ConfigError(
                "pass the directory of a selection or a table of scores; or --gap and --sd, such as --gap 0.01 "
                "--sd 0.03 --candidates 4."
            )
        of_pilot = next((name for name in OF_PILOT if getattr(self, name)), None)
        if self.source is None and of_pilot is not None:
            raise ConfigError(f"{flag(of_pilot)} is for a table of scores or a selection. Give one, or leave it out.")
        if self.split_sd and self.splits == OFFICIAL:
            raise ConfigError(
                f"--split-sd {self.split_sd:g} cannot be combined with --splits official, where all runs share one "
                "split. Leave one of them out."
            )
