"""Shows the answers of `fiesta plan` and `fiesta next`: a table and sentences, plain data, and a record for Python."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Tuple

from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import number_table, remaining_text
from fiesta_allennlp.replays.next_runs import NextRuns
from fiesta_allennlp.replays.planning import Forecast
from fiesta_allennlp.reports.formats import Shown, render_paragraphs
from fiesta_allennlp.selection.summary import number_text, summarise_candidate


@dataclass(frozen=True, repr=False)
class PlanResult(Shown, Forecast):
    """A `Forecast` that prints as a table, on a terminal and in a notebook."""

    @classmethod
    def of(cls, forecast: Forecast) -> "PlanResult":
        return cls(**vars(forecast))

    def _shown(self) -> Tuple[Table, List[str]]:
        return outlook_table(self), plan_in_words(self)


def plan_content(forecast: Forecast) -> Dict[str, Any]:
    choice, problem = forecast.problem.choice, forecast.problem
    return {
        "source": forecast.settings.source,
        "candidates": problem.source.true_means(),
        "minimise": problem.source.minimise,
        "sd": problem.noise_sd,
        "scale": problem.scale,
        "num_done": problem.num_done,
        "max_evaluations": forecast.limit,
        "default": asdict(forecast.default),
        "margins": [{"margin": margin, **asdict(outlook)} for margin, outlook in forecast.margins.items()],
        "equal": forecast.equal and asdict(forecast.equal),
        "budget": forecast.budget,
        "halving": forecast.halving and asdict(forecast.halving),
        "strategy": choice.strategy_params(),
        "splits": choice.splits,
        "workers": forecast.settings.workers,
        "interrupted": forecast.interrupted,
        "seed": str(forecast.settings.seed),
        "seconds": forecast.seconds,
    }


def outlook_table(forecast: Forecast) -> Table:
    more = "hours more" if forecast.problem.num_done else "hours"
    hours = (more,) if forecast.problem.knows_seconds else ()
    table = number_table("way to choose", ("runs", "median", "5-95%", *hours, "right", "inconclusive"))
    params = forecast.problem.choice.strategy_params()
    margin = f", margin {params['margin']:g}" if params.get("margin") else ""
    larger = {f"  margin {value:g}": outlook for value, outlook in forecast.margins.items()}
    others = {"equal allocation": forecast.equal, f"budget of {forecast.budget}": forecast.halving}
    for name, outlook in {params["type"] + margin: forecast.default, **larger, **others}.items():
        if outlook is not None:
            table.add_row(
                name,
                f"{outlook.mean_runs:.0f}",
                f"{outlook.runs.median:.0f}",
                f"{outlook.runs.low:.0f} to {outlook.runs.high:.0f}",
                *((f"{outlook.mean_seconds / 3600:.1f}",) if hours else ()),
                f"{outlook.correct:.0%}",
                f"{outlook.inconclusive:.0%}" if outlook.inconclusive else "",
            )
    return table


def plan_in_words(forecast: Forecast) -> List[str]:
    return render_paragraphs("plan.j2", forecast=forecast)


def next_content(found: NextRuns) -> Dict[str, Any]:
    """Return the answer as plain data; `stopped_by` is null while runs are needed."""
    decision, remaining = found.decision, found.remaining
    return {
        "leading": decision.best,
        "stopped_by": decision.stopped_by,
        "prob_best": dict(decision.prob_best),
        "num_runs": len(found.history.evaluations),
        "num_pending": len(found.history.pending),
        "splits": found.splits,
        "notes": list(found.notes),
        "remaining": None if remaining is None else {"low": remaining.low, "high": remaining.high},
        "next": [{"candidate": run.candidate, "split": run.split, "seed": run.seed} for run in found.runs],
    }


def next_table(found: NextRuns) -> Table:
    table = number_table("candidate", ("runs", "pending", "failed", "mean", "sd", "P(best)"))
    for name in found.history.candidates:
        each = summarise_candidate(found.history, found.decision, name)
        counts = (each.num_evaluations, found.history.num_pending(name), each.failures)
        table.add_row(escape(name), *map(str, counts), number_text(each.mean), number_text(each.sd), each.standing)
    return table


def next_in_words(found: NextRuns) -> List[str]:
    """Describe who leads and the runs to make. The last sentence of a selection without further runs is its ending."""
    prob_best = None if found.decision.best is None else found.decision.prob_best.get(found.decision.best)
    return render_paragraphs("next.j2", found=found, prob_best=prob_best, remaining=remaining_text(found.remaining))
