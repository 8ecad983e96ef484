"""Shows the answers of `fiesta plan` and `fiesta next`: a table and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from rich.console import Console
from rich.table import Table

from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS
from fiesta_allennlp.reports.formats import MISSING_TEXT, Printable, TerminalLines, render_paragraphs
from fiesta_allennlp.selection.progress import Columns, build_table, number_table, remaining_text, repetition_bar
from fiesta_allennlp.selection.result import CandidateResult, num_decimals
from fiesta_allennlp.selection.summary import loss_text, number_text
from fiesta_allennlp.strategies.base import Margin
from fiesta_allennlp.tables.next_runs import NextRuns
from fiesta_allennlp.tables.planning import Forecast, Outlook, forecast
from fiesta_allennlp.tables.settings import MIN_REPEATS, PlanSettings


@dataclass(frozen=True, repr=False)
class PlanResult(Printable, Forecast):
    """A `Forecast` that prints as a table, on a terminal and in a notebook. `summary` is the content of
    `fiesta plan --output`."""

    @classmethod
    def of(cls, settings: PlanSettings, console: Console) -> "PlanResult":
        """Make the forecast, with a bar on a terminal."""
        with repetition_bar(console, MIN_REPEATS) as advance:
            return cls(**vars(forecast(settings, on_repetitions=advance)))

    @property
    def summary(self) -> Mapping[str, Any]:
        choice, problem = self.problem.choice, self.problem
        return {
            "source": self.settings.source,
            "candidates": problem.source.true_means(),
            "minimise": problem.source.minimise,
            "sd": problem.noise_sd,
            "scale": problem.scale,
            "num_done": problem.num_done,
            "max_evaluations": self.limit,
            "default": asdict(self.default),
            "margins": [{"margin": margin, **asdict(outlook)} for margin, outlook in self.margins.items()],
            "equal": self.equal and asdict(self.equal),
            "budget": self.budget,
            "halving": self.halving and asdict(self.halving),
            "strategy": choice.strategy_params(),
            "splits": choice.splits,
            "workers": self.settings.workers,
            "interrupted": self.interrupted,
            "seed": str(self.settings.seed),
            "seconds": self.seconds,
        }

    def shown(self) -> TerminalLines:
        return [outlook_table(self), *render_paragraphs("plan.j2", forecast=self)]


def outlook_table(forecast: Forecast) -> Table:
    hours_heading = "hours\nmore" if forecast.problem.num_done else "hours"
    hours_columns = (hours_heading,) if forecast.problem.knows_seconds else ()
    share_headings = ("picked\nbest", "wrong\nwinner", "no\nwinner")
    table = number_table("way to choose", ("mean\nruns", "median", "5-95%", *hours_columns, *share_headings))
    params = forecast.problem.choice.strategy_params()
    strategy_margin = Margin.parse(params.get("margin", 0.0))
    strategy_label = params["type"] + (f", margin {strategy_margin.text}" if strategy_margin.is_above_0 else "")
    rows: List[Tuple[str, float, Optional[Outlook]]] = [(strategy_label, forecast.margin, forecast.default)]
    rows += [(f"  margin {margin:g}", margin, outlook) for margin, outlook in forecast.margins.items()]
    rows += [
        ("equal allocation", forecast.margin, forecast.equal),
        (f"budget of {forecast.budget}", forecast.margin, forecast.halving),
    ]
    for row_label, row_margin, outlook in rows:
        if outlook is not None:
            has_shares = forecast.has_wrong_answers(row_margin)
            table.add_row(
                row_label,
                f"{outlook.mean_runs:.0f}",
                f"{outlook.runs.median:.0f}",
                f"{outlook.runs.low:.0f} to {outlook.runs.high:.0f}",
                *((f"{outlook.mean_seconds / 3600:.1f}",) if hours_columns else ()),
                *(f"{share:.0%}" if has_shares else MISSING_TEXT for share in (outlook.picked, outlook.wrong)),
                f"{outlook.inconclusive:.0%}" if outlook.inconclusive else "",
            )
    return table


@dataclass(frozen=True, repr=False)
class PrintableNextRuns(Printable, NextRuns):
    """`NextRuns` that print as a table and sentences, on a terminal and in a notebook."""

    def shown(self) -> TerminalLines:
        return [next_runs_table(self), *next_runs_in_words(self)]


def next_runs_data(next_runs: NextRuns) -> Dict[str, Any]:
    """Return the answer as plain data; `stopped_by` is null while runs are needed."""
    result, remaining = next_runs.result, next_runs.remaining
    return {
        "metric": result.metric,
        "leading": result.leading,
        "stopped_by": result.stopped_by,
        "prob_best": dict(next_runs.decision.prob_best),
        "expected_loss": result.expected_loss,
        "margin": result.margin,
        "num_runs": result.num_evaluations,
        "num_pending": len(next_runs.history.pending),
        "splits": next_runs.splits,
        "notes": list(next_runs.notes),
        "collapsed": result.collapsed,
        "num_missed": {candidate.name: candidate.num_missed for candidate in result.candidates if candidate.num_missed},
        "remaining": None if remaining is None else {"low": remaining.low, "high": remaining.high},
        "next": [{"candidate": run.candidate, "split": run.split, "seed": run.seed} for run in next_runs.runs],
    }


def next_runs_table(next_runs: NextRuns) -> Table:
    candidates, num_pending = next_runs.result.candidates, next_runs.history.num_pending
    digits = num_decimals(candidates)
    columns: Columns[CandidateResult] = (
        ("candidate", lambda c: c.name),
        ("runs", lambda c: str(c.num_evaluations)),
        ("pending", lambda c: str(num_pending(c.name))),
        ("failed", lambda c: c.failures_text or "0"),
        ("mean", lambda c: number_text(c.mean, digits)),
        ("sd", lambda c: number_text(c.sd, digits)),
        ("P(best)", lambda c: c.standing),
    )
    return build_table(columns, candidates, title=next_runs.metric.display_name)


def next_runs_in_words(next_runs: NextRuns) -> List[str]:
    """Describe who leads and the runs to make. The last sentence of a selection without further runs is its ending."""
    result = next_runs.result
    is_final = result.stopped_by not in (None, *INCONCLUSIVE_REASONS)
    loss_note = "" if is_final else loss_text(result.leading, result.expected_loss)
    template_values = {"result": result, "remaining": remaining_text(next_runs.remaining), "loss": loss_note}
    return render_paragraphs("next.j2", next_runs=next_runs, **template_values)
