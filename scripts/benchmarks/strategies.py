"""How many trainings each strategy needs on the FIESTA paper's released scores, beside its figures, as Markdown.

    python scripts/benchmarks/strategies.py --only "ttts|default" --repetitions 100

`SECTIONS` is all that is measured. A family of synthetic problems is one more section, of rows with a `source` in place
of the released scores.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from common import EVALUATIONS_PER_SPLIT, MODELS_8, MODELS_12, RELEASED, make_parser, print_table, share_text

from fiesta_allennlp import replay
from fiesta_allennlp.reports.simulation import SimulationResult
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.sources import ScoreSource

SEED = 20190801
"""The same for all rows, so that every strategy meets the same scores."""

UNLIMITED = {"with_replacement": True, "max_evaluations": 10_000}
"""The paper's runs have no limit (its longest takes 1552 evaluations), and 500 scores of a candidate can run out."""

HEADINGS = (
    "strategy",
    "belief",
    "splits",
    "batch",
    "confidence or budget",
    "paper",
    "mean evaluations",
    "5-95 %",
    "rounds",
    "correct (95 % interval)",
    "undecided",
    "seconds",
)


@dataclass(frozen=True)
class ReplayRow:
    """One replay, of the released scores or of `source`.

    `paper` is the paper's mean number of evaluations, where it has one. `options` are `ReplaySettings`; what they leave
    out is the package's default.
    """

    options: Mapping[str, Any]
    paper: str = "-"
    candidates: Tuple[str, ...] = MODELS_8
    source: Optional[ScoreSource] = None

    def all_options(self, repetitions: int) -> Dict[str, Any]:
        """What a replay of this row is told, save the scores."""
        released = {"candidates": self.candidates, "evaluations_per_split": EVALUATIONS_PER_SPLIT}
        score_options = released if self.source is None else {}
        return {**score_options, "repetitions": repetitions, "seed": SEED, **self.options}

    def settings(self, repetitions: int) -> ReplaySettings:
        return ReplaySettings(**self.all_options(repetitions))

    def run(self, repetitions: int, scores: Path = RELEASED, **replay_options: Any) -> SimulationResult:
        """Replay the row, of these scores where it has no source."""
        result = replay(self.source or scores, **self.all_options(repetitions), **replay_options)
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    @property
    def label(self) -> str:
        """What `--only` is matched with: strategy, belief, splits, batch, confidence or budget, and `default_row`."""
        settings = self.settings(1)
        params = settings.strategy_params()
        parts = [params["type"], params["belief"]["type"], settings.splits, f"batch {settings.batch_size}"]
        limit = f"confidence {settings.confidence}" if settings.budget is None else f"budget {settings.budget}"
        return " ".join([*parts, limit, *([] if self.options.keys() & {"strategy", "belief"} else ["default"])])

    def cells(self, repetitions: int) -> Tuple[str, ...]:
        """Run it. One text for each of `HEADINGS`."""
        result = self.run(repetitions)
        outlook, settings = result.default, self.settings(repetitions)
        strategy = settings.strategy_params()
        return (
            strategy["type"],
            strategy["belief"]["type"],
            settings.splits,
            str(settings.batch_size),
            f"{settings.budget or settings.confidence}",
            self.paper,
            f"{outlook.runs.mean:.1f}",
            f"{outlook.runs.low:.0f}-{outlook.runs.high:.0f}",
            f"{outlook.mean_rounds:.1f}",
            share_text(outlook.correct, outlook.correct_interval),
            f"{outlook.inconclusive:.3f}",
            f"{result.seconds:.0f}",
        )


def paper_row(strategy: Any, confidence: float, paper: str, *, batch_size: int = 1) -> ReplayRow:
    """A row of the paper's tables 2 and 3, by the paper's procedure."""
    options = {"strategy": strategy, "belief": "student_t", "splits": "independent", "stop": "bayesian"}
    return ReplayRow({**options, "confidence": confidence, "batch_size": batch_size, **UNLIMITED}, paper)


def plain_loop_row(confidence: float) -> ReplayRow:
    """Every candidate equally often, with the default's posterior, splits and stopping rule: the sampling rule is all
    that the default has beyond this."""
    return ReplayRow({"strategy": "non_adaptive_fc", "confidence": confidence})


def default_row(confidence: float, *, batch_size: int = 1) -> ReplayRow:
    """What a user gets who gives nothing else."""
    return ReplayRow({"confidence": confidence, "batch_size": batch_size})


def fixed_budget_row(strategy: str, budget: int, splits: str) -> ReplayRow:
    """A point of the paper's figure 4."""
    return ReplayRow({"strategy": strategy, "budget": budget, "splits": splits}, "figure 4", MODELS_12)


SECTIONS: Dict[str, List[ReplayRow]] = {
    "Fixed confidence, 8 candidates": [
        *(paper_row("non_adaptive_fc", p, paper) for p, paper in ((0.95, "281"), (0.90, "206"), (0.80, "128"))),
        *(plain_loop_row(p) for p in (0.95, 0.90, 0.80)),
        *(paper_row("ttts", p, paper) for p, paper in ((0.95, "130"), (0.90, "96"), (0.80, "65"))),
        *(paper_row("bts", 0.95, paper, batch_size=size) for size, paper in ((4, "282"), (8, "315"))),
        *(default_row(p) for p in (0.95, 0.90, 0.80)),
        *(default_row(0.95, batch_size=size) for size in (4, 8)),
    ],
    "Fixed budget, 12 candidates": [
        fixed_budget_row(strategy, budget, splits)
        for splits in ("independent", "shared")
        for strategy in ("non_adaptive_fb", "sequential_halving")
        for budget in (48, 96, 192)
    ],
}


def main() -> None:
    args = make_parser(__doc__, repetitions=500, only="rows whose label").parse_args()
    for title, rows in SECTIONS.items():
        selected_rows = [row for row in rows if re.search(args.only, row.label)]
        if selected_rows:
            print_table(HEADINGS, (row.cells(args.repetitions) for row in selected_rows), title=title)


if __name__ == "__main__":
    main()
