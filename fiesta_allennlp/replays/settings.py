"""The options of a replay as one record."""

import csv
import os
from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

from fiesta_allennlp.selection.options import option
from fiesta_allennlp.selection.settings import CHOOSING, OFFICIAL, ChoiceSettings, splits_option

SCORES = "which scores"
WORKING = "how to work"


def _separated(text: str) -> Tuple[str, ...]:
    names = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(name.strip() for name in names)


@dataclass(frozen=True)
class ReplaySettings(ChoiceSettings):
    """What `allennlp fiesta-replay` can be told. Names and defaults are those of the command's options.

    `scores` is a file or a preset. `candidates` are those to take from it, all where it is empty.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES, CHOOSING, WORKING)

    scores: str = option(
        "",
        "{candidate: [scores]} as JSON; CSV with the columns candidate, split, seed, score; the directory of a "
        "selection with a report; or a preset that draws normal scores: tdsa-8, tdsa-12, tie, noisy",
        metavar="SCORES.json|SCORES.csv|DIR|PRESET",
    )
    candidates: Tuple[str, ...] = option(
        (),
        "take only these, by name and separated by commas; a name with a comma goes between double quotes",
        group=SCORES,
        metavar="A,B,...",
        parse=_separated,
    )
    evaluations_per_split: Optional[int] = option(
        None,
        "JSON: so many consecutive scores of every candidate share a split (default 1)",
        group=SCORES,
        metavar="N",
        least=1,
    )
    minimise: bool = option(
        False,
        "lower scores are better, as of an error or a loss; a CSV file says so itself with -NAME in a column `metric`",
        group=SCORES,
        can_be_undone=False,
    )
    splits: str = splits_option(SCORES)
    with_replacement: bool = option(False, "let a score of the table be drawn again", group=SCORES, can_be_undone=False)
    repetitions: int = option(500, "how many selections (default 500)", group=WORKING, least=1)
    batch_size: int = option(
        1, "evaluations at once, the next when all have finished (default 1)", group=WORKING, least=1
    )
    processes: Optional[int] = option(None, "how many at once (default: one for each core)", group=WORKING, least=1)
    entropy: Optional[int] = option(
        None, "the root of all chance, to repeat a replay; by default fresh and recorded", group=WORKING, least=0
    )

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def num_processes(self) -> int:
        """`processes`, by default one for each core."""
        return self.processes or os.cpu_count() or 1
