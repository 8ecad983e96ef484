"""What becomes of runs and wrong winners with half and twice of every number that decides, as Markdown.

    python scripts/benchmarks/sensitivity.py --repetitions 300

The columns are the released scores and the three hard families of `families.py`. All rows have the same seed, which is
drawn and printed. A process for each core computes the rows.
"""

import re
import secrets
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Dict, Iterator, Optional, Tuple

from calibration import CONFIDENCE, RELEASED_SET, problems
from common import make_parser, print_table, show
from families import HARD

HEADINGS = ("number", "released scores", "second noisy", "best noisy", "second fails")


@dataclass(frozen=True)
class Number:
    """A constant of a module, or one place of a constant that is a tuple, and its other values."""

    label: str
    module: str
    name: str
    values: Tuple[float, ...]
    place: Optional[int] = None

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Replace the number for a while."""
        module = import_module(f"fiesta_allennlp.{self.module}")
        before = getattr(module, self.name)
        replaced: Any = value
        if self.place is not None:
            replaced = tuple(value if place == self.place else other for place, other in enumerate(before))
        setattr(module, self.name, replaced)
        try:
            yield
        finally:
            setattr(module, self.name, before)


NUMBERS = (
    Number("degrees of freedom, odd", "probability.noise", "SIMILARITY", (0.5, 2.0), 0),
    Number("degrees of freedom, ordinary", "probability.noise", "SIMILARITY", (128.0, 512.0), 1),
    Number("highest rate of failures", "strategies.stopping_rules", "HIGHEST_RATE", (0.125, 0.5)),
    Number("starting runs", "strategies.stopping_rules", "STARTS", (2, 6)),
)


def row(number: Optional[Number], value: float, *, seed: int, repetitions: int) -> Tuple[str, ...]:
    """Return the label, then mean runs and the share of wrong winners for each column."""
    label = "as it is" if number is None else f"{number.label}: {value:g}"
    hard = [problem for problem in problems("tuning") if problem.name in HARD]
    about: Dict[str, Any] = {"confidence": CONFIDENCE, "seed": seed}
    cells = []
    with nullcontext() if number is None else number.set_to(value):
        for problem in (problems(RELEASED_SET)[0], *hard):
            line = problem.line("", problem.repeat(range(repetitions), **about), rule="", **about)
            cells.append(f"{line.mean_runs:.0f}, {line.wrong / repetitions:.3f}")
    return label, *cells


def main() -> None:
    args = make_parser(__doc__, repetitions=300, only="numbers whose label").parse_args()
    seed = secrets.randbits(32)
    show(f"seed {seed}; mean runs, wrong winners of {args.repetitions} selections")
    chosen = [number for number in NUMBERS if re.search(args.only, number.label)]
    tried = [(None, 0.0), *((number, value) for number in chosen for value in number.values)]
    with ProcessPoolExecutor() as pool:
        begun = [pool.submit(row, *each, seed=seed, repetitions=args.repetitions) for each in tried]
        print_table(HEADINGS, (future.result() for future in begun))


if __name__ == "__main__":
    main()
