"""Tables with random scores: honest ones, whose rows differ only by candidate, split and seed, and mixtures, whose rows
also differ in something that must be placed."""

from itertools import product
from typing import Any, Callable, Dict, List, Mapping, Tuple

from numpy.random import Generator

Rows = List[Dict[str, Any]]
Table = Tuple[Rows, Dict[str, Any]]
"""The rows, and the options of the command that reads them."""

MODELS = ("bert", "roberta", "cnn")


def score(rng: Generator, model: str, effect: float, digits: int = 16, sd: float = 0.01) -> float:
    return round(float(0.8 + effect * MODELS.index(model) + rng.normal(0, sd)), digits)


def runs(rng: Generator, effect: float, *, num_seeds: int = 0, digits: int = 16) -> Rows:
    """Rows of three models with numbered seeds."""
    num_seeds = num_seeds or int(rng.integers(3, 9))
    return [
        {"model": model, "seed": seed, "f1": score(rng, model, effect, digits)}
        for model, seed in product(MODELS, range(num_seeds))
    ]


HONEST: Dict[str, Callable[[Generator, float], Table]] = {}


def honest(score: str = "f1", **columns: str) -> Callable[[Callable[[Generator, float], Rows]], None]:
    """Register a maker of rows with the options of the command that reads them."""

    def register(make: Callable[[Generator, float], Rows]) -> None:
        HONEST[make.__name__] = lambda rng, effect: (make(rng, effect), {"columns": columns, "score": score})

    return register


@honest(candidate="model")
def tracker_export(rng: Generator, effect: float) -> Rows:
    return [
        {
            "Name": f"sun-{number}",
            "State": "finished",
            "Created": f"2026-11-{1 + number // 7:02d}T10:00:00Z",
            "Runtime": round(float(rng.normal(2400, 60)), 2),
            **row,
            "eval/loss": float(rng.normal(0.5, 0.02)),
            "output_dir": f"out/{row['model']}-{row['seed']}",
        }
        for number, row in enumerate(runs(rng, effect))
    ]


@honest(candidate="model")
def rounded_metrics(rng: Generator, effect: float) -> Rows:
    names = ("accuracy", "precision", "recall")
    rows = runs(rng, effect, digits=2)
    return [{**row, **{name: score(rng, row["model"], effect, 2, 0.02) for name in names}} for row in rows]


@honest(candidate="model")
def unseeded(rng: Generator, effect: float) -> Rows:
    return [
        {"run_id": f"{rng.integers(2**30):x}", "model": row["model"], "f1": row["f1"], "loss": rng.normal(0.5, 0.1)}
        for row in runs(rng, effect)
    ]


@honest("correct", candidate="model", split="doc_id")
def items(rng: Generator, effect: float) -> Rows:
    subjects = rng.choice(["law", "history", "physics"], 60)
    return [
        {
            "model": model,
            "doc_id": item,
            "doc": {"subject": subjects[item]},
            "resps": [["A"]],
            "correct": bool(rng.random() < 0.6 + 5 * effect * MODELS.index(model)),
        }
        for model, item in product(MODELS, range(60))
    ]


@honest("value", candidate="params_model", seed="params_seed")
def trials(rng: Generator, effect: float) -> Rows:
    return [
        {
            "number": number,
            "value": row["f1"],
            "datetime_start": f"2026-11-01 10:{number:02d}:00",
            "duration": f"0 days 00:0{rng.integers(3, 5)}:00",
            "params_model": row["model"],
            "params_seed": row["seed"],
            "state": "COMPLETE",
        }
        for number, row in enumerate(runs(rng, effect))
    ]


@honest("split{split}_test_score", candidate="params")
def wide_folds(rng: Generator, effect: float) -> Rows:
    rows = []
    for model in MODELS:
        scores = [score(rng, model, effect) for _ in range(5)]
        named = {f"split{fold}_test_score": value for fold, value in enumerate(scores)}
        rows.append({"params": model, "mean_fit_time": 1.0, **named, "mean_test_score": sum(scores) / 5, "rank": 1})
    return rows


def mixture(
    column: str, values: Tuple[Any, ...], *, num_seeds: int = 0, is_seeded: bool = False, missing: float = 0.0
) -> Callable[[Generator, float], Table]:
    """Return the maker of a table in which a column with these values changes the score: with `num_seeds` runs of each
    value, which have seeds of their own if `is_seeded`, and of which a share is missing."""

    def make(rng: Generator, effect: float) -> Table:
        rows = [
            {
                "model": model,
                **({"seed": number * num_seeds + seed} if is_seeded else {}),
                "f1": score(rng, model, effect) - 0.05 * number,
                column: value,
                "loss": float(rng.normal(0.5, 0.1)),
            }
            for model, (number, value), seed in product(MODELS, enumerate(values), range(num_seeds))
        ]
        kept = [row for row in rows if rng.random() >= missing]
        return kept, {"columns": {"candidate": "model"}, "score": "f1"}

    return make


def searched_rates(rng: Generator, effect: float) -> Table:
    """Learning rates that a random search drew, each with three seeds."""
    rows = [
        {"model": model, "seed": seed, "lr": lr, "f1": score(rng, model, effect)}
        for model in MODELS
        for lr in 10 ** rng.uniform(-5, -2, 4)
        for seed in range(3)
    ]
    return rows, {"columns": {"candidate": "model"}, "score": "f1"}


MIXED: Mapping[str, Callable[[Generator, float], Table]] = {
    "data sets": mixture("dataset", ("sst2", "cola"), num_seeds=3),
    "data sets by number": mixture("dataset_id", (31, 37, 54), num_seeds=2, is_seeded=True),
    "learning rates": mixture("lr", (0.1, 0.01, 0.001), num_seeds=3),
    "one run of each learning rate": mixture("lr", (1e-5, 2e-5, 3e-5, 5e-5), num_seeds=1),
    "thresholds": mixture("threshold", tuple(k / 20 for k in range(1, 12)), num_seeds=1),
    "crashed settings": mixture("momentum", (0.85, 0.95), num_seeds=4, missing=0.2),
    "a random search": searched_rates,
}
