"""Shows the answers of `fiesta plan` and `fiesta next`: a table and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.core.records import UNDECIDED
from fiesta_allennlp.listeners.progress import number_table, remaining_text, repetition_bar
from fiesta_allennlp.reports.formats import MISSING, Lines, Shown, render_paragraphs
from fiesta_allennlp.selection.result import decimals_of
from fiesta_allennlp.selection.summary import loss_text, number_text
from fiesta_allennlp.strategies.margins import Margin
from fiesta_allennlp.tables.next_runs import NextRuns
from fiesta_allennlp.tables.planning import FEWEST, Forecast, Outlook, forecast
from fiesta_allennlp.tables.settings import PlanSettings


@dataclass(frozen=True, repr=False)
class PlanResult(Shown, Forecast):
    """A `Forecast` that prints as a table, on a terminal and in a notebook. `summary` is the content of
    `fiesta plan --output`."""

    @classmethod
    def of(cls, settings: PlanSettings, console: Console) -> "PlanResult":
        """Make the forecast, with a bar on a terminal."""
        with repetition_bar(console, FEWEST) as told:
            return cls(**vars(forecast(settings, on_repetitions=told)))

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

    def shown(self) -> Lines:
        return [outlook_table(self), *render_paragraphs("plan.j2", forecast=self)]


def outlook_table(found: Forecast) -> Table:
    more = "hours\nmore" if found.problem.num_done else "hours"
    hours = (more,) if found.problem.knows_seconds else ()
    shares = ("picked\nbest", "wrong\nwinner", "no\nwinner")
    table = number_table("way to choose", ("mean\nruns", "median", "5-95%", *hours, *shares))
    params = found.problem.choice.strategy_params()
    asked = Margin.of(params.get("margin", 0.0))
    margin = f", margin {asked.text}" if asked.is_above_0 else ""
    rows: List[Tuple[str, float, Optional[Outlook]]] = [(params["type"] + margin, found.margin, found.default)]
    rows += [(f"  margin {value:g}", value, outlook) for value, outlook in found.margins.items()]
    rows += [
        ("equal allocation", found.margin, found.equal),
        (f"budget of {found.budget}", found.margin, found.halving),
    ]
    for name, within, outlook in rows:
        if outlook is not None:
            told = found.has_wrong_answers(within)
            table.add_row(
                name,
                f"{outlook.mean_runs:.0f}",
                f"{outlook.runs.median:.0f}",
                f"{outlook.runs.low:.0f} to {outlook.runs.high:.0f}",
                *((f"{outlook.mean_seconds / 3600:.1f}",) if hours else ()),
                *(f"{share:.0%}" if told else MISSING for share in (outlook.picked, outlook.wrong)),
                f"{outlook.inconclusive:.0%}" if outlook.inconclusive else "",
            )
    return table


@dataclass(frozen=True, repr=False)
class ShownNextRuns(Shown, NextRuns):
    """`NextRuns` that print as a table and sentences, on a terminal and in a notebook."""

    def shown(self) -> Lines:
        return [next_table(self), *next_in_words(self)]


def next_content(found: NextRuns) -> Dict[str, Any]:
    """Return the answer as plain data; `stopped_by` is null while runs are needed."""
    result, remaining = found.result, found.remaining
    return {
        "leading": result.leading,
        "stopped_by": result.stopped_by,
        "prob_best": dict(found.decision.prob_best),
        "expected_loss": result.expected_loss,
        "margin": result.margin,
        "num_runs": result.num_evaluations,
        "num_pending": len(found.history.pending),
        "splits": found.splits,
        "notes": list(found.notes),
        "collapsed": result.collapsed,
        "num_missed": {each.name: each.num_missed for each in result.candidates if each.num_missed},
        "remaining": None if remaining is None else {"low": remaining.low, "high": remaining.high},
        "next": [{"candidate": run.candidate, "split": run.split, "seed": run.seed} for run in found.runs],
    }


def next_table(found: NextRuns) -> Table:
    table = number_table("candidate", ("runs", "pending", "failed", "mean", "sd", "P(best)"))
    digits = decimals_of(found.result.candidates)
    for each in found.result.candidates:
        counts = (each.num_evaluations, found.history.num_pending(each.name), each.failures_text or 0)
        numbers = number_text(each.mean, digits), number_text(each.sd, digits)
        table.add_row(escape(each.name), *map(str, counts), *numbers, each.standing)
    return table


def next_in_words(found: NextRuns) -> List[str]:
    """Describe who leads and the runs to make. The last sentence of a selection without further runs is its ending."""
    result = found.result
    loss = loss_text(result.leading, result.expected_loss) if result.stopped_by in (None, *UNDECIDED) else ""
    about = {"result": result, "remaining": remaining_text(found.remaining), "loss": loss}
    return render_paragraphs("next.j2", found=found, **about)
