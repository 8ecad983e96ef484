"""Shows runs that are yet to come: what a dry run plans, the answer of `fiesta next`, and the simulated selections of
`fiesta plan` and `fiesta replay`."""

from dataclasses import asdict
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from rich.console import Console

from fiesta_allennlp.choosing.strategy import Margin
from fiesta_allennlp.core.console import repetition_bar
from fiesta_allennlp.core.errors import full_command, join_some
from fiesta_allennlp.core.records import Evaluation, Outcome
from fiesta_allennlp.core.texts import count_text, number_text
from fiesta_allennlp.reports import words
from fiesta_allennlp.selecting.results.candidate_table import Columns, Table, TerminalLines, candidate_table, show
from fiesta_allennlp.selecting.results.facts import NEXT, fact_sentences, fact_values
from fiesta_allennlp.selecting.results.verdict import task_table
from fiesta_allennlp.tables.next_runs import NextRuns
from fiesta_allennlp.tables.simulation.planning import Simulation, plan, replay
from fiesta_allennlp.tables.simulation.score_sources import ScoreSource
from fiesta_allennlp.tables.table_settings import MIN_REPEATS, PlanSettings, ReplaySettings


def trial_table(outcomes: Sequence[Outcome], metric: str) -> Table:
    """Show the score and the seconds of each run of a trial."""
    columns: Columns = {
        "candidate": lambda outcome: outcome.request.candidate,
        metric: lambda outcome: number_text(outcome.score) if isinstance(outcome, Evaluation) else "failed",
        "seconds": lambda outcome: number_text(outcome.seconds, 1),
    }
    return Table.of(columns, outcomes)


def show_training_plan(prepared: Any) -> TerminalLines:
    """Return what a dry run found: candidates, pool, split sizes, strategy, and the least and most runs."""
    preparations, metrics_heading = prepared.preparations.items(), "metrics it reports"
    columns: Dict[str, Any] = {
        "candidate": lambda item: item[0],
        "parameters": lambda item: f"{item[1].num_parameters:,}" if item[1].num_parameters else words.MISSING_TEXT,
        metrics_heading: lambda item: "known after a run" if item[1].metrics is None else join_some(item[1].metrics),
    }
    table = Table.of(columns, list(preparations), wrapped=(metrics_heading,))
    division = prepared.candidate_set.division
    scored_on = words.describe_scored_data(
        prepared.pool.official, is_official=division.is_official, scored=division.scored
    )
    bounds = prepared.strategy.bounds(len(prepared.candidate_set.active))
    notes = [] if prepared.brought is None else [f"Note: {sentence}" for sentence in prepared.brought.sentences]
    sentences = _plan_sentences(prepared, bounds, prepared.settings.strategy_params(), scored_on=scored_on)
    return [f"Would train {prepared.executor.describe()}.", *notes, table, *sentences]


def show_documents_plan(prepared: Any) -> TerminalLines:
    """Return the systems, documents and strategy that a dry run found, and the least and most evaluations."""
    columns: Columns = {
        "system": lambda item: item[0],
        "type": lambda item: prepared.candidate_by_name[item[0]].config["type"],
        "cost of a query": lambda item: f"{item[1].cost:g}",
    }
    table = Table.of(columns, list(prepared.systems.items()), wrapped=("type",))
    bounds = prepared.setup.strategy.bounds(len(prepared.systems))
    return [table, *_plan_sentences(prepared, bounds, prepared.setup.strategy_params)]


def _plan_sentences(
    prepared: Any, bounds: Tuple[int, int], params: Mapping[str, Any], *, scored_on: str = ""
) -> Sequence[str]:
    """Return the sentences of a dry run of a prepared selection. `bounds` are the least and most runs."""
    options = {key: value for key, value in params.items() if key not in ("type", "belief")}
    if "stop" in options:
        options["stop"] = options["stop"]["type"]
    return words.render_paragraphs(
        "dry_run.j2",
        bounds=bounds,
        prepared=prepared,
        strategy=params,
        options=words.join_pairs(options) or "defaults",
        plan_command=full_command("plan"),
        scored_on=scored_on,
    )


def next_runs_data(answer: NextRuns) -> Dict[str, Any]:
    """Return the answer as plain data; `stopped_by` is null while runs are needed."""
    result = answer.result
    return {
        "metric": result.metric,
        **fact_values(result),
        "prob_best": dict(answer.decision.prob_best),
        "num_pending": len(answer.history.pending),
        "splits": result.splits,
        "table": answer.table.data,
        "notes": list(answer.notes),
        "num_missed": {c.name: c.num_missed for c in result.candidates if c.num_missed},
        "next": [asdict(run) for run in answer.runs],
    }


@show.register
def _(answer: NextRuns) -> TerminalLines:
    """Tell who leads, and the runs to make. The last sentence of a selection without further runs is its ending."""
    result = answer.result
    after = f"after {count_text(result.num_evaluations, 'run')} of {len(result.candidates)} candidates"
    missing = [f"{count_text(number, 'run')} of {name}" for name, number in answer.num_missing.items()]
    sentences = words.render_paragraphs(
        "next.j2",
        next_runs=answer,
        result=result,
        missing=join_some(missing),
        facts=fact_sentences(result, NEXT),
        verdict=words.verdict_in_words(result, after) if result.stopped_by not in (None, "failures") else "",
    )
    tasks = [task_table(result)] if result.tasks else []
    return [candidate_table(result, title=answer.metric.display_name), *tasks, *sentences]


@show.register
def _(simulation: Simulation) -> TerminalLines:
    time = simulation.time_forecast
    sentences = words.render_paragraphs(
        "simulation.j2", simulation=simulation, plan=full_command("plan"), time=time and words.time_forecast_text(time)
    )
    rows = [
        (c.name, number_text(c.true_mean), f"{c.recommended:.1%}" if c.recommended else "")
        for c in simulation.candidates
    ]
    candidates = Table(("candidate", "mean", "picked"), rows, title=simulation.source.metric.display_name)
    return [*([] if simulation.is_of_numbers else [candidates]), outlook_table(simulation), *sentences]


def outlook_table(result: Simulation) -> Table:
    """Return a row for each way to choose: its label, its margin, and what comes of it."""
    params, own_margin = result.settings.strategy_params(), result.simulator.margin
    margin = Margin.parse(params.get("margin", 0.0))
    label = params["type"] + (f", margin {margin.text}" if margin.size else "")
    ways = [(label, own_margin, result.default)]
    ways += [(f"  margin {size:g}", size, outlook) for size, outlook in result.margins.items()]

    def share_text(share: float, margin: float) -> str:
        return f"{share:.0%}" if result.has_wrong_answers(margin) else words.MISSING_TEXT

    columns: Dict[str, Any] = {
        "way to choose": lambda way: way[0],
        "mean\nruns": lambda way: f"{way[2].runs.mean:.0f}",
        "median": lambda way: f"{way[2].runs.median:.0f}",
        "5-95%": lambda way: f"{way[2].runs.low:.0f} to {way[2].runs.high:.0f}",
    }
    if result.source.knows_seconds:
        heading = "hours\nmore" if result.simulator.num_done else "hours"
        columns[heading] = lambda way: f"{way[2].seconds.mean / result.settings.batch_size / 3600:.1f}"
    if result.max_hours is not None:
        columns[f"decided\nin {result.max_hours:g} h"] = lambda way: f"{way[2].prob_decided:.0%}"
    columns["picked\nbest"] = lambda way: share_text(way[2].picked, way[1])
    columns["wrong\nwinner"] = lambda way: share_text(way[2].wrong, way[1])
    columns["no\nwinner"] = lambda way: f"{way[2].open:.0%}" if way[2].open else ""
    return Table.of(columns, ways)


def simulate(
    settings: Union[PlanSettings, ReplaySettings], console: Console, source: Optional[ScoreSource] = None
) -> Simulation:
    """Simulate a selection to plan it, or over existing scores, with a bar on a terminal."""
    with repetition_bar(console, settings.repetitions or MIN_REPEATS) as advance:
        if isinstance(settings, PlanSettings):
            return plan(settings, on_repetitions=advance)
        return replay(settings, source=source, on_repetitions=advance)
