"""What becomes of runs and wrong winners with half and twice of every number that decides, as Markdown.

    python scripts/benchmarks/sensitivity.py --repetitions 300

The columns are the released scores and the three hard families of `families.py`. All rows have the same seed, which is
drawn and printed.
"""

import re
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Iterator, Optional, Tuple

from calibration import CONFIDENCE, RELEASED_SET, problems
from common import make_parser, print_table, show
from families import HARD

from fiesta_allennlp.probability import noise, split_effects
from fiesta_allennlp.strategies import stopping_rules

HEADINGS = ("number", "released scores", "second noisy", "best noisy", "second fails")


@dataclass(frozen=True)
class Number:
    """A constant of a module, or one place of a constant that is a tuple, and its other values."""

    label: str
    module: ModuleType
    name: str
    values: Tuple[float, ...]
    place: Optional[int] = None

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Replace the number for a while."""
        before = getattr(self.module, self.name)
        replaced: Any = value
        if self.place is not None:
            replaced = tuple(value if place == self.place else other for place, other in enumerate(before))
        setattr(self.module, self.name, replaced)
        try:
            yield
        finally:
            setattr(self.module, self.name, before)


NUMBERS = (
    Number("degrees of freedom, odd", noise, "SIMILARITY", (1.0, 4.0), 0),
    Number("degrees of freedom, ordinary", noise, "SIMILARITY", (128.0, 512.0), 1),
    Number("observations of the prior of tau²", split_effects, "SPLIT_PRIOR", (2.0, 8.0), 0),
    Number("ratio of tau² to s²", split_effects, "SPLIT_PRIOR", (0.5, 2.0), 1),
    Number("cost of a failure", stopping_rules, "FAILURE_COST", (1.7, 6.8)),
    Number("highest rate of failures", stopping_rules, "HIGHEST_RATE", (0.15, 0.6)),
    Number("starting runs", stopping_rules, "STARTS", (2, 6)),
)


def measured(seed: int, repetitions: int) -> Iterator[str]:
    """Mean runs and the share of wrong winners for each column."""
    names = (RELEASED_SET, "tuning")
    for problem in [problems(names[0])[0], *(each for each in problems(names[1]) if each.name in HARD)]:
        settings = {"seed": seed, "repetitions": repetitions, "processes": 1}
        line = problem.measure("", rule="", confidence=CONFIDENCE, **settings)
        yield f"{line.mean_runs:.0f}, {line.wrong / repetitions:.3f}"


def main() -> None:
    args = make_parser(__doc__, repetitions=300, only="numbers whose label").parse_args()
    seed = secrets.randbits(32)
    show(f"seed {seed}; mean runs, wrong winners of {args.repetitions} selections")

    def rows() -> Iterator[Tuple[str, ...]]:
        yield ("as it is", *measured(seed, args.repetitions))
        for number in (each for each in NUMBERS if re.search(args.only, each.label)):
            for value in number.values:
                with number.set_to(value):
                    yield (f"{number.label}: {value:g}", *measured(seed, args.repetitions))

    print_table(HEADINGS, rows())


if __name__ == "__main__":
    main()
