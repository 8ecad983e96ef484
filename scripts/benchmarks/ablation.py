"""What half, twice and the absence of every number that decides does to runs, winners and errors, as Markdown.

    OMP_NUM_THREADS=1 python scripts/benchmarks/ablation.py --selections 8 --repetitions 400

The columns are the 306 real problems of `real_problems.py` that the rule was chosen on, the released scores, and
families of two candidates, equal or half a run-to-run sd apart, and of unequal noise. A cell has the mean runs, the
share that names a winner and the share of wrong ones among these. All rows have the same draws, by a seed that is
printed.
"""

import re
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Iterator, List, Optional, Sequence, Tuple

import numpy as np
from calibration import RELEASED_SET, Problem, problems
from common import make_parser, print_table, start_call
from families import LEAD_OF_7, Family, means_at_gaps, noisier
from procedures import DEFAULT
from published_scores import TIE, read_problems
from real_problems import group_problems, select_all
from real_results import SETS, TUNED

from fiesta_allennlp.choosing import stopping_rules
from fiesta_allennlp.choosing.probability import batch, leads

FAMILIES = (
    Family("two equal", means_at_gaps(0, 0)),
    Family("half a sd apart", means_at_gaps(0, 0.5)),
    Family("best of 7 noisy", means_at_gaps(*LEAD_OF_7), noisier(5, "a")),
    Family("second of 7 noisy", means_at_gaps(*LEAD_OF_7), noisier(5, "b")),
    Family("two of 4 constant", means_at_gaps(0, 0.5, 2, 3), noisier(0, "c", "d")),
)
HEADINGS = ("number", "306 problems", "released scores", *(family.name for family in FAMILIES))


@dataclass(frozen=True)
class Constant:
    """A constant of a module of the package, and its other values. The last one switches it off, where one does."""

    module: ModuleType
    name: str
    values: Tuple[float, ...]

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Replace the number for a while."""
        before = getattr(self.module, self.name)
        setattr(self.module, self.name, value)
        try:
            yield
        finally:
            setattr(self.module, self.name, before)


CONSTANTS = {
    "degrees of freedom of the pooled noise": Constant(leads, "PRIOR_DF", (2.0, 8.0, 0.0)),
    "least variance, as a share of the mean": Constant(leads, "MIN_VARIANCE_SHARE", (5e-4, 2e-3, 1e-9)),
    "most that units explain": Constant(leads, "MAX_UNIT_SHARE", (0.49, 0.999, 0.0)),
    "units from which the target is enough": Constant(batch, "FLOOR_UNITS", (8.0, 32.0, 1e-9)),
    "probability below which it gives up": Constant(batch, "MIN_POWER", (0.175, 0.7, 0.0)),
    "runs per winner above which it does": Constant(batch, "MAX_RUNS_PER_WINNER", (250.0, 1000.0, 1e-9)),
    "starting units": Constant(stopping_rules, "NUM_STARTS", (2.0, 6.0)),
}


def on_real_problems(num_selections: int, seed: int) -> str:
    """Return the cell of the default on the real problems."""
    groups = group_problems(read_problems(SETS[TUNED].scores), num_selections, seed)
    outcomes = [outcome for group in groups for outcome in select_all(DEFAULT, group, num_selections)]
    wrong = [outcome.loss > TIE for outcome in outcomes if outcome.is_named]
    return cell([outcome.num_runs for outcome in outcomes], wrong)


def on_family(problem: Problem, repetitions: int, seed: int) -> str:
    """Return the cell of the default on a family, or on the released scores."""
    ends = problem.simulate(range(repetitions), seed)
    return cell([end.num_evaluations for end in ends], [not end.correct for end in ends if end.is_named])


def cell(num_runs: Sequence[int], wrong: Sequence[bool]) -> str:
    """Return mean runs, the share of named winners, and of wrong ones among these. `wrong` has a value for each."""
    return f"{np.mean(num_runs):.1f}, {len(wrong) / len(num_runs):.3f}, {np.mean(wrong) if wrong else 0:.3f}"


def row(label: Optional[str], value: float, *, seed: int, repetitions: int, selections: int) -> Tuple[str, ...]:
    """Return a label, then what each column has with this value of the constant with that label."""
    columns = [
        problems(RELEASED_SET)[0],
        *(Problem(family.name, family, {"batch_size": 1}) for family in FAMILIES),
    ]
    with nullcontext() if label is None else CONSTANTS[label].set_to(value):
        title = "as it is" if label is None else f"{label}: {value:g}"
        others = (on_family(problem, repetitions, seed) for problem in columns)
        return (title, on_real_problems(selections, seed), *others)


def main() -> None:
    parser = make_parser(__doc__, repetitions=400, only="numbers whose label")
    parser.add_argument("--selections", type=int, default=8, help="selections of each real problem")
    parser.add_argument("--seed", type=int, help="repeat a call, instead of a new seed")
    args = parser.parse_args()
    simulate = partial(row, seed=start_call(args.seed), repetitions=args.repetitions, selections=args.selections)
    settings: List[Tuple[Optional[str], float]] = [(None, 0.0)]
    for label, constant in CONSTANTS.items():
        settings += [(label, value) for value in constant.values if re.search(args.only, label)]
    with ProcessPoolExecutor() as pool:
        print_table(HEADINGS, pool.map(simulate, *zip(*settings, strict=True)))


if __name__ == "__main__":
    main()
