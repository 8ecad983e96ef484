"""What becomes of runs and wrong winners with half and twice of every number that decides, as Markdown.

    python scripts/benchmarks/sensitivity.py --selections 4 --repetitions 300

The columns are the real problems of `real_problems.py`, the released scores and the three hard families of
`families.py`. All rows have the same seed, which is drawn and printed. A process for each core computes the rows.
"""

import re
import secrets
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
from calibration import CONFIDENCE, RELEASED_SET, problems
from common import make_parser, print_table, show
from families import HARD_FAMILIES
from procedures import DEFAULT
from published_scores import TIE, read_problems
from real_problems import group_problems, select_all
from real_results import SETS, TUNED

HEADINGS = ("number", "real problems", "released scores", "second noisy", "best noisy", "second fails")


@dataclass(frozen=True)
class Constant:
    """A constant of a module, or one place of a constant that is a tuple, and its other values."""

    label: str
    module: str
    name: str
    values: Tuple[float, ...]
    position: Optional[int] = None

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Replace the number for a while."""
        module = import_module(f"fiesta_allennlp.{self.module}")
        before = getattr(module, self.name)
        replaced: Any = value
        if self.position is not None:
            replaced = tuple(value if place == self.position else other for place, other in enumerate(before))
        setattr(module, self.name, replaced)
        try:
            yield
        finally:
            setattr(module, self.name, before)


CONSTANTS = (
    Constant("degrees of freedom, outlying", "probability.noise", "PRIOR_DF_BY_CLASS", (1.0, 4.0), 0),
    Constant("degrees of freedom, ordinary", "probability.noise", "PRIOR_DF_BY_CLASS", (128.0, 512.0), 1),
    Constant("highest rate of failures", "strategies.stopping_rules", "MAX_COLLAPSE_RATE", (0.125, 0.5)),
    Constant("hopeless below", "strategies.stopping_rules", "MIN_POWER", (0.15, 0.6)),
    Constant("runs per winner", "strategies.stopping_rules", "MAX_RUNS_PER_WINNER", (250, 1000)),
    Constant("level of correlation", "probability.split_effects", "CORRELATION_LEVEL", (1e-4, 1e-2)),
    Constant("collapsed from", "probability.collapsed", "LIMIT_SDS", (3.0, 12.0)),
    Constant("starting runs", "strategies.stopping_rules", "NUM_STARTS", (2, 6)),
)


def on_real_problems(num_selections: int, seed: int) -> str:
    """Return mean and median runs and the share of wrong winners of the default."""
    results = [
        outcome
        for group in group_problems(read_problems(SETS[TUNED].scores), num_selections, seed)
        for outcome in select_all(DEFAULT, group, num_selections)
    ]
    runs, wrong = [each.num_runs for each in results], [each.is_named and each.loss > TIE for each in results]
    return f"{np.mean(runs):.1f}, {np.median(runs):.0f}, {np.mean(wrong):.3f}"


def row(constant: Optional[Constant], value: float, *, seed: int, repetitions: int, selections: int) -> Tuple[str, ...]:
    """Return the label, then mean runs and the share of wrong winners for each column."""
    label = "as it is" if constant is None else f"{constant.label}: {value:g}"
    hard = [problem for problem in problems("tuning") if problem.name in HARD_FAMILIES]
    options: Dict[str, Any] = {"confidence": CONFIDENCE, "stop": DEFAULT, "seed": seed}
    cells: List[str] = []
    with nullcontext() if constant is None else constant.set_to(value):
        cells.append(on_real_problems(selections, seed))
        for problem in (problems(RELEASED_SET)[0], *hard):
            line = problem.count("", problem.simulate(range(repetitions), **options), rule="", **options)
            cells.append(f"{line.mean_runs:.0f}, {line.wrong / repetitions:.3f}")
    return label, *cells


def main() -> None:
    parser = make_parser(__doc__, repetitions=300, only="numbers whose label")
    parser.add_argument("--selections", type=int, default=4, help="selections of each real problem")
    args = parser.parse_args()
    seed = secrets.randbits(32)
    show(f"seed {seed}; runs, wrong winners")
    constants = [constant for constant in CONSTANTS if re.search(args.only, constant.label)]
    settings = [(None, 0.0), *((number, value) for number in constants for value in number.values)]
    with ProcessPoolExecutor() as pool:
        futures = [
            pool.submit(row, *setting, seed=seed, repetitions=args.repetitions, selections=args.selections)
            for setting in settings
        ]
        print_table(HEADINGS, (future.result() for future in futures))


if __name__ == "__main__":
    main()
