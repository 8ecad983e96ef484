"""What a plan came to: a table and sentences, its JSON content, and the record of the Python call."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from rich.table import Table

from fiesta_allennlp.listeners.progress import number_table
from fiesta_allennlp.replays.planning import Forecast, Outlook
from fiesta_allennlp.reports.formats import Shown
from fiesta_allennlp.reports.words import LOWEST
from fiesta_allennlp.selection.summary import count_text, duration_text

MANY_INCONCLUSIVE = 0.1
"""A larger share of inconclusive selections is explained."""


@dataclass(frozen=True, repr=False)
class PlanResult(Shown, Forecast):
    """A `Forecast` that prints as a table, on a terminal and in a notebook."""

    @classmethod
    def of(cls, forecast: Forecast) -> "PlanResult":
        return cls(**vars(forecast))

    def _shown(self) -> Tuple[Table, List[str]]:
        return outlook_table(self), plan_in_words(self)


def plan_content(forecast: Forecast) -> Dict[str, Any]:
    """Return the content of `fiesta-plan --output`."""
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
    """Return a table with one row for each way to choose."""
    more = "hours more" if forecast.problem.num_done else "hours"
    hours = (more,) if forecast.problem.knows_seconds else ()
    table = number_table("way to choose", ("runs", "median", "5-95 %", *hours, "right", "inconclusive"))
    for name, outlook in _rows(forecast):
        runs = outlook.runs
        of_time = (f"{outlook.mean_seconds / 3600:.1f}",) if hours else ()
        table.add_row(
            name,
            f"{outlook.mean_runs:.0f}",
            f"{runs.median:.0f}",
            f"{runs.low:.0f} to {runs.high:.0f}",
            *of_time,
            f"{outlook.correct:.0%}",
            f"{outlook.inconclusive:.0%}" if outlook.inconclusive else "",
        )
    return table


def _rows(forecast: Forecast) -> Iterator[Tuple[str, Outlook]]:
    params = forecast.problem.choice.strategy_params()
    margin = params.get("margin", 0.0)
    yield params["type"] + (f", margin {margin:g}" if margin else ""), forecast.default
    for larger, outlook in forecast.margins.items():
        yield f"  margin {larger:g}", outlook
    if forecast.equal is not None:
        yield "equal allocation", forecast.equal
    if forecast.halving is not None:
        yield f"budget of {forecast.budget}", forecast.halving


def plan_in_words(forecast: Forecast) -> List[str]:
    """Return the answer, then the assumptions behind it."""
    lowest = LOWEST if forecast.problem.source.minimise else None
    lines = [_answer(forecast), _basis(forecast), lowest, _limit(forecast)]
    lines += forecast.problem.notes
    if forecast.interrupted:
        lines.append("Interrupted: this is what had finished.")
    return [line for line in lines if line]


def _answer(forecast: Forecast) -> str:
    default, done = forecast.default, forecast.problem.num_done
    runs = default.runs
    low, high = default.correct_interval
    text = f"Expect {default.mean_runs:.0f} runs on average (5-95 % {runs.low:.0f} to {runs.high:.0f})."
    if done:
        text += (
            f" {done} of them have finished, so {round(default.mean_runs) - done} more are expected "
            f"(5-95 % {runs.low - done:.0f} to {runs.high - done:.0f})."
        )
    if forecast.problem.knows_seconds:
        workers = forecast.settings.workers
        by = "one worker" if workers == 1 else f"{workers} workers"
        low_time, high_time = (duration_text(time) for time in (default.seconds.low, default.seconds.high))
        more = " more" if done else ""
        text += f" That is {duration_text(default.mean_seconds)}{more} by {by} (5-95 % {low_time} to {high_time})."
    return f"{text} Right in {default.correct:.0%} (95 % interval {low:.0%} to {high:.0%})."


def _basis(forecast: Forecast) -> str:
    settings, repetitions = forecast.settings, count_text(forecast.default.repetitions, "simulated selection")
    seed = f"--seed {settings.seed} repeats it"
    if settings.source is not None:
        return (
            f"From {repetitions}, each with true means and sds of its own, drawn from what {settings.source} leaves "
            f"open; {seed}."
        )
    return (
        f"From {repetitions} in which all other candidates lie {settings.gap:g} below the best one, the hardest case "
        f"with that gap; {seed}."
    )


def _limit(forecast: Forecast) -> Optional[str]:
    settings, share = forecast.settings, forecast.default.inconclusive
    is_tie = settings.source is None and not settings.gap and not settings.margin
    if not is_tie and share <= MANY_INCONCLUSIVE:
        return None
    text = "No number of runs separates equal candidates"
    why = " and here any answer is right" if is_tie else ""
    return (
        f"{text}{why}: {share:.0%} end inconclusive at {forecast.limit} runs (--max-evaluations). Give the difference "
        "that you would not care about as --margin."
    )
