"""What it is worth to screen many configs once and to repeat only the best few, on released runs, as Markdown.

    python scripts/benchmarks/search_then_decide.py --data reimers_gurevych/hyperparameter_results.csv.gz
    python scripts/benchmarks/search_then_decide.py --data FILE --pool 1000 --searchers random gp_ei

The file has the runs of Reimers and Gurevych (2017). A config is what is equal in all but the results. Its truth is the
mean of its test F1. The noise is normal, with the pooled standard deviation of the configs that ran repeatedly.
A repetition draws `--pool` configs. The loss is the truth of the best of them minus that of the config chosen. The
optimism is the score that is reported for the config chosen minus its truth.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np
from common import make_parser, print_table

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.searches.search_settings import allocate_runs
from fiesta_allennlp.searches.searchers import Points, SearchHistory
from fiesta_allennlp.searches.searchers.base import build_searcher
from fiesta_allennlp.selection.settings import to_config

SEED = 2017
TASKS = {"chunking": "conll2000_chunking.pkl", "entities": "ace.pkl", "events": "tempeval3.pkl"}
RESULT_COLUMNS = ("ID", "Backend", "Epochs", "OptimalEpoch", "Dev_F1", "Test_F1", "Max_Test_F1")
CATEGORIES = ("Embeddings", "TaggingScheme", "Decoder", "DropoutType", "VariationalDropoutType", "Optimizer")
OTHER_CATEGORIES = ("CharEmbeddings", "clipvalue", "clipnorm")
NUMBERS = ("LSTM-Layers", "LSTM-Neurons", "miniBatchSize:log", "EarlyStopping")
NUM_DRAWS = 25
"""Second stages of each repetition."""

Row = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Surface:
    """The configs of one task. Shape of `truth`: `(num_configs,)`."""

    name: str
    points: Points
    truth: np.ndarray
    noise_sd: float

    def draw(self, number: int, rng: np.random.Generator) -> "Surface":
        rows = rng.permutation(len(self.truth))[:number]
        return replace(self, points=Points(self.points.inputs[rows]), truth=self.truth[rows])


def read_surface(path: Path, name: str) -> Surface:
    """The configs of a task, with all runs of one task alone."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file, delimiter="\t")
            if row["Dataset"] == TASKS[name] and row["Setting"] == "SingleTask"
        ]
    configs: Dict[Tuple[str, ...], List[Row]] = defaultdict(list)
    for row in rows:
        row["Decoder"] = row["Decoder"].strip("[]'")
        configs[tuple(value for key, value in row.items() if key not in RESULT_COLUMNS)].append(row)
    scores = [np.array([float(row["Test_F1"]) for row in runs]) for runs in configs.values()]
    repeated = [runs for runs in scores if len(runs) > 1]
    variance = sum(runs.var() * len(runs) for runs in repeated) / sum(len(runs) - 1 for runs in repeated)
    inputs = inputs_of([runs[0] for runs in configs.values()])
    return Surface(name, Points(inputs), np.array([runs.mean() for runs in scores]), float(np.sqrt(variance)))


def inputs_of(rows: Sequence[Row]) -> np.ndarray:
    """Shape: `(num_rows, num_inputs)`."""
    columns = [
        *(scaled_input([f"_{row[name]}" for row in rows], name) for name in (*CATEGORIES, *OTHER_CATEGORIES)),
        *(scaled_input([row[name.removesuffix(":log")] for row in rows], name) for name in NUMBERS),
    ]
    dropout = [[float(part) for part in row["Dropout"].strip("[]").split(",")] for row in rows]
    return np.concatenate([*columns, np.array([(parts[0], parts[-1]) for parts in dropout])], axis=1)


def scaled_input(cells: Sequence[str], name: str) -> np.ndarray:
    """Scale an input of several configs.

    Numbers go to [0, 1]; `NAME:log` takes the logarithm first. Any other input has
    a dimension for each text, so that two different texts have the distance 1. Shape: `(num_cells, num_dimensions)`.
    """
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        kinds = sorted(set(cells))
        return np.array([[cell == kind for kind in kinds] for cell in cells]) / np.sqrt(2)
    numbers = np.log(numbers) if name.endswith(":log") else numbers
    return ((numbers - numbers.min()) / (np.ptp(numbers) or 1))[:, None]


@dataclass(frozen=True, eq=False)
class Screening:
    """The first stages of all repetitions, in the order of their runs: a column is one config that ran `repeats` times.

    Shapes of `truth` and `scores`: `(num_repetitions, num_configs)`; of `best`, the truth of the best in the pool:
    `(num_repetitions,)`.
    """

    truth: np.ndarray
    scores: np.ndarray
    best: np.ndarray
    noise_sd: float

    def first(self, number: int) -> "Screening":
        return replace(self, truth=self.truth[:, :number], scores=self.scores[:, :number])


def screen(
    surface: Surface, searcher: Mapping[str, Any], *, configs: int, repeats: int, repetitions: int, pool: int
) -> Screening:
    """Searches for `configs` configs, whose scores are means of `repeats` runs."""
    rows: List[Tuple[np.ndarray, np.ndarray, float]] = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([SEED, repetition])
        pool_surface = surface.draw(pool, rng)
        noisy = pool_surface.truth + rng.normal(0, surface.noise_sd / np.sqrt(repeats), len(pool_surface.truth))
        order = search(pool_surface.points, noisy, searcher, configs, rng)
        rows.append((pool_surface.truth[order], noisy[order], float(pool_surface.truth.max())))
    truth, scores, best = (np.array(column) for column in zip(*rows, strict=True))
    return Screening(truth, scores, best, surface.noise_sd)


def search(
    points: Points, scores: np.ndarray, searcher: Mapping[str, Any], configs: int, rng: np.random.Generator
) -> List[int]:
    """The rows that a searcher runs, one after the other."""
    built = build_searcher(searcher)
    if searcher["type"] == "random":
        return rng.permutation(len(points))[:configs].tolist()
    history = SearchHistory(points)
    while len(history.seen) < configs:
        seen = (*history.seen, *built.propose(history, 1, rng))
        history = replace(history, seen=seen, scores=scores[list(seen), None])
    return list(history.seen)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Loss and optimism of every repetition. Shapes: `(num_repetitions,)` or `(num_repetitions * DRAWS,)`."""

    loss: np.ndarray
    optimism: np.ndarray


def choose_best_score(screening: Screening) -> Outcome:
    """The config with the highest score of the first stage wins and is reported with that score."""
    rows, chosen = np.arange(len(screening.best)), screening.scores.argmax(axis=1)
    truth = screening.truth[rows, chosen]
    return Outcome(screening.best - truth, screening.scores[rows, chosen] - truth)


def halve_finalists(screening: Screening, *, finalists: int, runs: int) -> Outcome:
    """Sequential halving among the finalists, by fresh scores alone."""
    rng = np.random.default_rng(SEED)
    names = np.argsort(-screening.scores, axis=1)[:, :finalists]
    truth = np.repeat(np.take_along_axis(screening.truth, names, axis=1), NUM_DRAWS, axis=0)
    means = halve(truth, runs, lambda shape: rng.normal(0, screening.noise_sd, shape))
    rows, chosen = np.arange(len(truth)), means.argmax(axis=1)
    return Outcome(
        np.repeat(screening.best, NUM_DRAWS) - truth[rows, chosen], means[rows, chosen] - truth[rows, chosen]
    )


def halve(truth: np.ndarray, runs: int, noise: Callable[[Tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """The mean scores at the end of sequential halving, -inf for who dropped out: `strategies/fixed_budget.py`
    for many repetitions at once. Shapes: `(num_repetitions, num_finalists)`."""
    size = truth.shape[1]
    num_rounds = (size - 1).bit_length()
    sums, counts = np.zeros_like(truth), np.zeros_like(truth)
    contends = np.ones(truth.shape, dtype=bool)
    for _ in range(num_rounds):
        new = runs // (size * num_rounds)
        if new == 0:
            raise ValueError(f"{runs} runs are too few for {truth.shape[1]} finalists.")
        scores = truth[:, :, None] + noise((*truth.shape, new))
        sums, counts = sums + scores.sum(axis=2) * contends, counts + new * contends
        means = np.where(contends, sums / counts, -np.inf)
        size = (size + 1) // 2
        ranks = np.argsort(np.argsort(-means, axis=1, kind="stable"), axis=1)
        contends = ranks < size
    return np.asarray(means)


# Tables.


def policies(
    surface: Surface, searcher: Mapping[str, Any], args: argparse.Namespace
) -> "Iterator[Tuple[str, Outcome]]":
    """Every way to spend the runs, with what it comes to."""
    options = {"repetitions": args.repetitions, "pool": args.pool}
    once = screen(surface, searcher, configs=args.runs, repeats=1, **options)
    yield f"{args.runs} configs once", choose_best_score(once)
    for repeats in args.repeats:
        screening = screen(surface, searcher, configs=args.runs // repeats, repeats=repeats, **options)
        yield f"{args.runs // repeats} configs {repeats} times", choose_best_score(screening)
    shares = [tuple(map(int, text.split(":"))) for text in args.shares]
    default = allocate_runs(args.runs)
    for configs, finalists in dict.fromkeys([*shares, (default.num_configs, default.num_finalists)]):
        outcome = halve_finalists(once.first(configs), finalists=finalists, runs=args.runs - configs)
        is_default = (configs, finalists) == (default.num_configs, default.num_finalists)
        yield f"{configs} once, {args.runs - configs} on the best {finalists}{', default' * is_default}", outcome


def cells(outcomes: Sequence[Outcome], repetitions: int) -> Iterator[str]:
    """Mean loss with its standard error, and mean optimism, of every task, in points of F1."""
    for outcome in outcomes:
        by_repetition = outcome.loss.reshape(repetitions, -1).mean(axis=1)
        error = by_repetition.std(ddof=1) / np.sqrt(repetitions) if repetitions > 1 else np.nan
        yield f"{100 * by_repetition.mean():.3f} ± {100 * error:.3f}"
        yield f"{100 * outcome.optimism.mean():+.3f}"


def parse() -> argparse.Namespace:
    parser = make_parser(__doc__, repetitions=400)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE.csv.gz")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--searchers", nargs="*", default=["random"], metavar="NAME|JSON")
    parser.add_argument("--runs", type=int, default=240, help="in all")
    parser.add_argument("--pool", type=int, default=240, help="configs to search among")
    parser.add_argument("--repeats", nargs="*", type=int, default=[2, 3])
    parser.add_argument(
        "--shares", nargs="*", default=["120:8", "160:8", "160:16", "200:8", "220:4"], metavar="CONFIGS:FINALISTS"
    )
    return parser.parse_args()


Outcomes = Mapping[str, Sequence[Outcome]]
"""By the way to spend the runs; an outcome for each task."""


def measure_policies(searcher: Mapping[str, Any], surfaces: Sequence[Surface], args: argparse.Namespace) -> Outcomes:
    outcomes: Dict[str, List[Outcome]] = defaultdict(list)
    for surface in surfaces:
        for policy, outcome in policies(surface, searcher, args):
            outcomes[policy].append(outcome)
    return outcomes


def main() -> None:
    args = parse()
    surfaces = [read_surface(args.data, name) for name in args.tasks]
    headings = ["way to spend the runs", *(f"{task} {key}" for task in args.tasks for key in ("loss", "optimism"))]
    for name in args.searchers:
        searcher = to_config(name, "--searchers")
        title = f"{searcher['type']}, {args.runs} runs among {args.pool} configs, points of F1"
        measured = measure_policies(searcher, surfaces, args)
        rows = [(policy, *cells(outcomes, args.repetitions)) for policy, outcomes in measured.items()]
        print_table(headings, rows, title=title)


if __name__ == "__main__":
    main()
