"""The options of a replay as one record."""

import argparse
import csv
import os
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.errors import did_you_mean
from fiesta_allennlp.selection.options import option
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
    """Return the option `--columns`, below this heading."""
    return option(
        None,
        "a CSV file's names for the columns, such as candidate=model,score=test_f1,seed=seed. Without a column split, "
        "all runs share one official split",
        group=group,
        metavar="NAME=COLUMN,...",
        parse=columns_of,
    )


def minimise_option(group: str) -> Any:
    """Return the option `--minimise`, below this heading."""
    return option(
        False,
        "lower scores of a table are better; in a CSV file, -NAME in the column `metric` has the same effect",
        group=group,
        can_be_undone=False,
    )


@dataclass(frozen=True)
class ReplaySettings(ChoiceSettings):
    """The settings of `fiesta replay`. Names and defaults are those of the command's options.

    `scores` is a file or a preset. `candidates` are those to take from it, all where it is empty.
    """

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
    evaluations_per_split: Optional[int] = option(
        None,
        "in a JSON file, this number of consecutive scores of each candidate shares a split (default 1)",
        group=SCORES,
        metavar="N",
        least=1,
    )
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
    seed: Optional[int] = option(
        None,
        "master random seed, which repeats the simulation (default: random, recorded)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def num_processes(self) -> int:
        """`processes`, by default one for each core."""
        return self.processes or os.cpu_count() or 1
