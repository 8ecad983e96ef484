"""What half, twice and the absence of every number that decides does to runs, winners and errors, as Markdown.

    OMP_NUM_THREADS=1 python scripts/benchmarks/ablation.py --selections 8 --repetitions 400

The columns are the 306 real problems of `real_problems.py` that the rule was chosen on, the released scores, and
families of two candidates, equal or half a run-to-run sd apart, and of unequal noise. All rows have the same draws, by
a seed that is printed.
"""

import re
import secrets
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Iterator, List, Optional, Sequence, Tuple

import numpy as np
from calibration import CONFIDENCE, RELEASED_SET, Problem, problems
from common import make_parser, print_table, show
from families import LEAD_OF_7, Family, means_at_gaps, noisier
from procedures import DEFAULT
from published_scores import TIE, read_problems
from real_problems import group_problems, select_all
from real_results import SETS, TUNED

FAMILIES = (
    Family("two equal", means_at_gaps(0, 0)),
    Family("half a sd apart", means_at_gaps(0, 0.5)),
    Family("best of 7 noisy", means_at_gaps(*LEAD_OF_7), noisier(5, "a")),
    Family("second of 7 noisy", means_at_gaps(*LEAD_OF_7), noisier(5, "b")),
)
HEADINGS = ("number", "306 problems: runs, named, wrong", "released: runs", *(family.name for family in FAMILIES))


@dataclass(frozen=True)
class Constant:
    """A constant of a module of the package, and its other values. The last one switches it off."""

    label: str
    module: str
    name: str
    values: Tuple[float, ...]

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Replace the number for a while."""
        module = import_module(f"fiesta_allennlp.{self.module}")
        before = getattr(module, self.name)
        setattr(module, self.name, value)
        try:
            yield
        finally:
            setattr(module, self.name, before)


CONSTANTS = (
    Constant("degrees of freedom of the pooled noise", "choosing.probability.leads", "PRIOR_DF", (2.0, 8.0, 0.0)),
    Constant(
        "least variance, as a share of the mean", "choosing.probability.leads", "MIN_VARIANCE_SHARE", (5e-4, 2e-3, 1e-9)
    ),
    Constant("most that units explain", "choosing.probability.leads", "MAX_UNIT_SHARE", (0.49, 0.99, 0.0)),
    Constant("units from which the target is enough", "choosing.probability.rules", "FLOOR_UNITS", (8.0, 32.0, 1e-9)),
    Constant("probability below which it gives up", "choosing.probability.rules", "MIN_POWER", (0.175, 0.7, 0.0)),
    Constant(
        "runs per winner above which it does",
        "choosing.probability.rules",
        "MAX_RUNS_PER_WINNER",
        (250.0, 1000.0, 1e-9),
    ),
    Constant("starting units", "choosing.stopping_rules", "NUM_STARTS", (2.0, 6.0)),
)


def on_real_problems(num_selections: int, seed: int) -> str:
    """Return mean runs, the share that names a winner, and the share of wrong ones of these, of the default."""
    outcomes = [
        outcome
        for group in group_problems(read_problems(SETS[TUNED].scores), num_selections, seed)
        for outcome in select_all(DEFAULT, group, num_selections)
    ]
    named = [outcome for outcome in outcomes if outcome.is_named]
    wrong = np.mean([outcome.loss > TIE for outcome in named])
    return f"{np.mean([o.num_runs for o in outcomes]):.1f}, {len(named) / len(outcomes):.3f}, {wrong:.3f}"


def on_family(problem: Problem, repetitions: int, seed: int) -> str:
    """Return the share that names a winner and the share of wrong ones of these; for released scores the mean runs."""
    options = {"confidence": CONFIDENCE, "stop": DEFAULT, "seed": seed}
    ends = problem.simulate(range(repetitions), **options)
    if problem.source is None or problem.name.startswith("released"):
        return f"{np.mean([end.num_evaluations for end in ends]):.0f}"
    named = [end for end in ends if end.is_named]
    if len(set(problem.source.true_means().values())) == 1:
        return f"named {len(named) / len(ends):.2f}"
    return f"named {len(named) / len(ends):.2f}, wrong {np.mean([not end.correct for end in named]):.2f}"


def row(constant: Optional[Constant], value: float, *, seed: int, repetitions: int, selections: int) -> Tuple[str, ...]:
    """Return the label, then what each column has."""
    label = "as it is" if constant is None else f"{constant.label}: {value:g}"
    columns = [
        problems(RELEASED_SET)[0],
        *(Problem(family.name, {"scores": "", "batch_size": 1}, family) for family in FAMILIES),
    ]
    with nullcontext() if constant is None else constant.set_to(value):
        real = on_real_problems(selections, seed)
        return label, real, *(on_family(problem, repetitions, seed) for problem in columns)


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__, repetitions=400, only="numbers whose label")
    parser.add_argument("--selections", type=int, default=8, help="selections of each real problem")
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    parser.add_argument("--seed", type=int, help="repeat a call, instead of a new seed")
    args = parser.parse_args(arguments)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    show(f"seed {seed}")
    constants = [constant for constant in CONSTANTS if re.search(args.only, constant.label)]
    settings: List[Tuple[Optional[Constant], float]] = [(None, 0.0)]
    settings += [(constant, value) for constant in constants for value in constant.values]
    with ProcessPoolExecutor(args.processes) as pool:
        futures = [
            pool.submit(row, *setting, seed=seed, repetitions=args.repetitions, selections=args.selections)
            for setting in settings
        ]
        print_table(HEADINGS, (future.result() for future in futures))


if __name__ == "__main__":
    main()
