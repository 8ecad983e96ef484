"""The options of `fiesta replay`, `fiesta next` and `fiesta plan`, each as one record."""

import argparse
import csv
import os
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.selection.options import flag, option
from fiesta_allennlp.selection.settings import (
    CHOOSING,
    OFFICIAL,
    RESOURCES,
    ChoiceSettings,
    min_score_option,
    splits_option,
)

SCORES = "Scores"


COLUMNS = ("candidate", "split", "seed", "score", "metric")


def separated(text: str) -> Tuple[str, ...]:
    names = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(name.strip() for name in names)


def columns_of(text: str) -> Dict[str, str]:
    """Read `candidate=model,score=test_f1`: the names of columns in a file."""
    pairs = [pair.partition("=") for pair in separated(text)]
    for name, _, called in pairs:
        if name not in COLUMNS or not called:
            raise argparse.ArgumentTypeError(
                f"must be pairs such as candidate=model,score=test_f1, with names from {', '.join(COLUMNS)}, but got "
                f"'{text}'.{did_you_mean(name, COLUMNS)}"
            )
    return {name: called for name, _, called in pairs}


def candidates_option(help: str) -> Any:
    typed = f"{help}; put a name that contains a comma in double quotes"
    return option((), typed, group=SCORES, metavar="A,B,...", parse=separated)


def done_option(group: str) -> Any:
    """Return the option `--done`, below this heading; without a heading, it is not on the command line."""
    return option(
        (),
        "candidates that get no more runs, such as a published model; only their existing scores count",
        group=group,
        metavar="A,B,...",
        parse=separated,
    )


def done_note(done: Sequence[str]) -> Tuple[str, ...]:
    """Note which candidates get no further runs."""
    verb = "gets" if len(done) == 1 else "get"
    return (f"{', '.join(done)} {verb} no further runs, so P(best) rests on the existing scores.",) if done else ()


def columns_option(group: str) -> Any:
    return option(
        None,
        "column names in a CSV file, such as candidate=model,score=test_f1,seed=seed. Without a split column, all runs "
        "share one official split",
        group=group,
        metavar="NAME=COLUMN,...",
        parse=columns_of,
    )


def minimise_option(group: str) -> Any:
    typed = "lower scores of a table are better; in a CSV file, -NAME in the metric column does the same"
    return option(False, typed, group=group, can_be_undone=False)


def blocks_option(group: str) -> Any:
    typed = "in a JSON file, number of consecutive scores of each candidate that share a split (default 1)"
    return option(None, typed, group=group, metavar="N", least=1)


def seed_option() -> Any:
    typed = "master random seed, to repeat the simulation (default: random, recorded)"
    return option(None, typed, group=RESOURCES, metavar="N", least=0)


@dataclass(frozen=True)
class ReplaySettings(ChoiceSettings):
    """The settings of `fiesta replay`. `scores` is a file or a preset; empty `candidates` means all of them."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES, CHOOSING, RESOURCES)

    scores: str = option(
        "",
        "a JSON file {candidate: [scores]}; a CSV file with the columns candidate, split, seed, score; the directory "
        "of a selection; or a preset of normally distributed scores: tdsa-8, tdsa-12, tie, noisy",
        metavar="SCORES.json|SCORES.csv|DIR|PRESET",
    )
    candidates: Tuple[str, ...] = candidates_option("use only these candidates")
    evaluations_per_split: Optional[int] = blocks_option(SCORES)
    columns: Optional[Mapping[str, str]] = columns_option(SCORES)
    minimise: bool = minimise_option(SCORES)
    min_score: Optional[float] = min_score_option(SCORES)
    splits: str = splits_option(SCORES)
    with_replacement: bool = option(
        False, "draw scores of the table with replacement", group=SCORES, can_be_undone=False
    )
    done: Tuple[str, ...] = done_option("")
    repetitions: int = option(500, "number of selections to simulate (default 500)", group=RESOURCES, least=1)
    batch_size: int = option(
        1, "runs per round; each round starts when the previous one has finished (default 1)", group=RESOURCES, least=1
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
    """The settings of `fiesta next`. `scores` is empty for rows from Python; `candidates` adds names without a row."""

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES, CHOOSING, RESOURCES)

    scores: str = option(
        "",
        "a CSV file with the columns candidate, score and seed, plus split if runs use random splits. Leave the score "
        "empty until a run has finished; write `failed` if it ends without one",
        metavar="SCORES.csv",
    )
    candidates: Tuple[str, ...] = candidates_option("candidates without a row yet")
    columns: Optional[Mapping[str, str]] = columns_option(SCORES)
    done: Tuple[str, ...] = done_option(SCORES)
    minimise: bool = minimise_option(SCORES)
    min_score: Optional[float] = min_score_option(SCORES)
    splits: Optional[str] = splits_option(SCORES, default=None)
    workers: int = option(1, "number of runs to name (default 1)", group=RESOURCES, least=1)
    max_failures: int = option(
        3, "drop a candidate after this number of failed runs (default 3)", group=RESOURCES, least=1
    )
    seed: int = option(
        0,
        "random seed; the same table and seed give the same answer (default 0)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL


PROBLEM = "Problem"

OF_NUMBERS = ("gap", "sd", "split_sd", "candidates")
"""The settings that describe a problem without a pilot."""

OF_PILOT = ("done", "minimise", "min_score", "evaluations_per_split", "columns")


@dataclass(frozen=True)
class PlanSettings(ChoiceSettings):
    """The settings of `fiesta plan`. They override those that the selection in `source` was started with."""

    GROUPS: ClassVar[Tuple[str, ...]] = (PROBLEM, CHOOSING, RESOURCES)

    source: Optional[str] = option(
        None,
        "a pilot: the directory of a selection, or a table of scores. Omit it with --gap",
        metavar="DIR|SCORES.json|SCORES.csv",
    )
    gap: Optional[float] = option(
        None, "gap between the best mean and all others, in units of the score", group=PROBLEM, least=0
    )
    sd: Optional[float] = option(
        None, "run-to-run standard deviation of a candidate's scores on one split", group=PROBLEM, above=0
    )
    split_sd: Optional[float] = option(
        None, "standard deviation between splits, in addition to --sd (default 0)", group=PROBLEM, least=0
    )
    candidates: Optional[int] = option(None, "number of candidates (default 2)", group=PROBLEM, least=2)
    minimise: bool = minimise_option(PROBLEM)
    min_score: Optional[float] = min_score_option(PROBLEM)
    seconds: Optional[float] = option(
        None, "duration of a run (default: the pilot's)", group=PROBLEM, metavar="SECONDS", above=0
    )
    belief: Any = option(None, "model of the scores, as in a selection", group=CHOOSING, metavar="NAME|JSON")
    budget: Optional[int] = option(
        None, "fixed budget for comparison (default: the mean number of runs)", group=CHOOSING, least=1
    )
    splits: Optional[str] = splits_option(PROBLEM, default=None)
    evaluations_per_split: Optional[int] = blocks_option(PROBLEM)
    columns: Optional[Mapping[str, str]] = columns_option(PROBLEM)
    done: Tuple[str, ...] = done_option(PROBLEM)
    workers: int = option(1, "number of parallel runs (default 1)", group=RESOURCES, least=1)
    repetitions: Optional[int] = option(
        None, "number of selections to simulate (default: 20 to 200, in 5 to 10 seconds)", group=RESOURCES, least=1
    )
    processes: int = option(1, "number of processes (default 1)", group=RESOURCES, least=1)
    seed: Optional[int] = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        given = next((flag(name) for name in OF_NUMBERS if getattr(self, name) is not None), None)
        if self.source is not None and given is not None:
            raise ConfigError(f"{given} cannot be combined with {self.source}, which already defines it. Use only one.")
        if self.source is None and (self.gap is None or self.sd is None):
            raise ConfigError(
                "pass the directory of a selection, a table of scores, or --gap and --sd, such as --gap 0.01 --sd 0.03 "
                "--candidates 4."
            )
        of_pilot = next((flag(name) for name in OF_PILOT if getattr(self, name) not in (None, False, ())), None)
        if self.source is None and of_pilot is not None:
            raise ConfigError(f"{of_pilot} needs a table of scores or a selection. Pass one, or remove {of_pilot}.")
        if self.split_sd and self.splits == OFFICIAL:
            raise ConfigError(
                f"--split-sd {self.split_sd:g} cannot be combined with --splits official, where all runs share one "
                "split. Use only one."
            )
