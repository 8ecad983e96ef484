"""Shows the result of `fiesta plan` and `fiesta replay`: tables and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, List, Mapping, Optional, Tuple

from rich.console import Console

from fiesta_allennlp.core.errors import full_command
from fiesta_allennlp.reports.formats import MISSING_TEXT, Printable, TerminalLines, render_paragraphs
from fiesta_allennlp.selection.candidate_table import Table
from fiesta_allennlp.selection.progress import repetition_bar
from fiesta_allennlp.selection.texts import number_text, time_forecast_text
from fiesta_allennlp.strategies.base import Margin
from fiesta_allennlp.tables.planning import Simulation, plan, replay
from fiesta_allennlp.tables.settings import MIN_REPEATS, PlanSettings, ReplaySettings
from fiesta_allennlp.tables.simulator import Outlook
from fiesta_allennlp.tables.sources import ScoreSource


@dataclass(frozen=True)
class SimulatedCandidate:
    """One candidate of a simulation. `recommended` is the share of the repetitions that ended with this candidate."""

    name: str
    true_mean: float
    recommended: float


@dataclass(frozen=True, repr=False)
class SimulationResult(Printable, Simulation):
    """A `Simulation` that prints as tables, on a terminal and in a notebook. `summary` is the content of `--output`."""

    @property
    def candidates(self) -> Tuple[SimulatedCandidate, ...]:
        recommended = self.default.recommended
        return tuple(
            SimulatedCandidate(name, mean, recommended.get(name, 0.0))
            for name, mean in self.simulator.true_means.items()
        )

    @property
    def fewest_scores(self) -> Optional[int]:
        """The number of splits or scores of a candidate that are taken for the truth; None if they never run out."""
        return self.source.fewest_scores(self.simulator.sampling)

    @property
    def summary(self) -> Mapping[str, Any]:
        settings, source = self.settings, self.source
        return {
            "scores": settings.scores,
            "metric": source.metric.option_text,
            "minimise": self.simulator.minimise,
            "min_score": settings.min_score,
            "best": self.best,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "sd": source.noise_sd,
            "scale": "logit" if source.takes_logits else "score",
            "num_done": self.simulator.num_done,
            "fewest_scores": self.fewest_scores,
            "strategy": settings.strategy_params(),
            "splits": settings.splits,
            "evaluations_per_split": settings.evaluations_per_split,
            "batch_size": settings.batch_size,
            "max_evaluations": self.limit,
            "default": asdict(self.default),
            "margins": [{"margin": margin, **asdict(outlook)} for margin, outlook in self.margins.items()],
            "equal": self.equal and asdict(self.equal),
            "budget": self.budget,
            "time": self.time_forecast and asdict(self.time_forecast),
            "halving": self.halving and asdict(self.halving),
            "confirmation": self.confirmation and asdict(self.confirmation),
            "table": source.read_back and source.read_back.data,
            "notes": list(source.notes),
            "interrupted": self.interrupted,
            "seed": str(settings.seed),
            "seconds": self.seconds,
        }

    def shown(self) -> TerminalLines:
        tables = [outlook_table(self)] if self.is_of_numbers else [candidates_table(self), outlook_table(self)]
        sentences = render_paragraphs(
            "simulation.j2",
            simulation=self,
            plan=full_command("plan"),
            time=self.time_forecast and time_forecast_text(self.time_forecast),
        )
        return [*tables, *sentences]

    @property
    def is_of_numbers(self) -> bool:
        """Whether --gap and --sd describe the problem."""
        return self.budget is not None and self.source.start is None


def plan_with_bar(settings: PlanSettings, console: Console) -> SimulationResult:
    """Simulate a selection to plan it, with a bar on a terminal."""
    with repetition_bar(console, MIN_REPEATS) as advance:
        return SimulationResult(**vars(plan(settings, on_repetitions=advance)))


def replay_with_bar(
    settings: ReplaySettings, console: Console, source: Optional[ScoreSource] = None
) -> SimulationResult:
    """Simulate a selection over existing scores, with a bar on a terminal."""
    with repetition_bar(console, settings.repetitions) as advance:
        return SimulationResult(**vars(replay(settings, source=source, on_repetitions=advance)))


def candidates_table(result: SimulationResult) -> Table:
    rows = [
        (c.name, number_text(c.true_mean), f"{c.recommended:.1%}" if c.recommended else "") for c in result.candidates
    ]
    return Table(("candidate", "mean", "picked"), rows, title=result.source.metric.display_name)


def outlook_table(result: Simulation) -> Table:
    hours_heading = "hours\nmore" if result.simulator.num_done else "hours"
    hours_columns: Tuple[str, ...] = (hours_heading,) if result.source.knows_seconds else ()
    hours_columns += (f"decided\nin {result.max_hours:g} h",) if result.max_hours is not None else ()
    share_headings = ("picked\nbest", "wrong\nwinner", "no\nwinner")
    headings = ("way to choose", "mean\nruns", "median", "5-95%", *hours_columns, *share_headings)
    table_rows: List[List[str]] = []
    params = result.settings.strategy_params()
    margin = Margin.parse(params.get("margin", 0.0))
    label = params["type"] + (f", margin {margin.text}" if margin.size else "")
    rows: List[Tuple[str, float, Optional[Outlook]]] = [(label, result.margin, result.default)]
    rows += [(f"  margin {margin:g}", margin, outlook) for margin, outlook in result.margins.items()]
    rows += [
        ("equal allocation", result.margin, result.equal),
        (f"budget of {result.budget}", result.margin, result.halving),
    ]
    for row_label, row_margin, outlook in rows:
        if outlook is not None:
            runs, has_shares = outlook.runs, result.has_wrong_answers(row_margin)
            table_rows.append(
                [
                    row_label,
                    f"{runs.mean:.0f}",
                    f"{runs.median:.0f}",
                    f"{runs.low:.0f} to {runs.high:.0f}",
                    *((f"{outlook.seconds.mean / result.settings.batch_size / 3600:.1f}",) if hours_columns else ()),
                    *((f"{outlook.prob_decided:.0%}",) if outlook.prob_decided is not None else ()),
                    *(f"{share:.0%}" if has_shares else MISSING_TEXT for share in (outlook.picked, outlook.wrong)),
                    f"{outlook.inconclusive:.0%}" if outlook.inconclusive else "",
                ]
            )
    return Table(headings, table_rows)
