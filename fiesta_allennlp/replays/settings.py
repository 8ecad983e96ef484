"""The options of a replay as one record."""

import os
from dataclasses import dataclass
from typing import Optional, Tuple

from fiesta_allennlp.selection.settings import SPLITS, ChoiceSettings, check_choices, check_kinds, check_least

COUNTS = {"repetitions": 1, "evaluations_per_split": 1, "batch_size": 1, "processes": 1, "entropy": 0}
"""Settings that are whole numbers, with the least they may be."""


@dataclass(frozen=True)
class ReplaySettings(ChoiceSettings):
    """What `allennlp fiesta-replay` can be told. Names and defaults are those of the command's options.

    `scores` is a file or a preset. `candidates` are those to take from it, all where it is empty.
    """

    scores: str = ""
    candidates: Tuple[str, ...] = ()
    repetitions: int = 500
    evaluations_per_split: Optional[int] = None
    splits: str = "shared"
    batch_size: int = 1
    with_replacement: bool = False
    processes: Optional[int] = None
    entropy: Optional[int] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self, {**dict.fromkeys(COUNTS, (int,)), "candidates": (tuple,)})
        check_choices(self, {"splits": SPLITS})
        check_least(self, COUNTS)

    @property
    def num_processes(self) -> int:
        """`processes`, by default one for each core."""
        return self.processes or os.cpu_count() or 1
