"""Shows the result of `fiesta plan` and `fiesta replay`: tables and sentences, plain data, and a record for Python."""

from typing import List, Optional, Tuple

from rich.console import Console

from fiesta_allennlp.choosing.strategy import Margin
from fiesta_allennlp.core.console import repetition_bar
from fiesta_allennlp.core.errors import full_command
from fiesta_allennlp.core.texts import number_text
from fiesta_allennlp.reports.latex_and_html import MISSING_TEXT, render_paragraphs
from fiesta_allennlp.reports.words import time_forecast_text
from fiesta_allennlp.selecting.results.candidate_table import Table, TerminalLines, show
from fiesta_allennlp.tables.simulation.outlook import Outlook
from fiesta_allennlp.tables.simulation.planning import Simulation, plan, replay
from fiesta_allennlp.tables.simulation.score_sources import ScoreSource
from fiesta_allennlp.tables.table_settings import MIN_REPEATS, PlanSettings, ReplaySettings


@show.register
def _(simulation: Simulation) -> TerminalLines:
    is_of_numbers = simulation.is_of_numbers
    tables = [outlook_table(simulation)] if is_of_numbers else [candidates_table(simulation), outlook_table(simulation)]
    sentences = render_paragraphs(
        "simulation.j2",
        simulation=simulation,
        plan=full_command("plan"),
        time=simulation.time_forecast and time_forecast_text(simulation.time_forecast),
    )
    return [*tables, *sentences]


def plan_with_bar(settings: PlanSettings, console: Console) -> Simulation:
    """Simulate a selection to plan it, with a bar on a terminal."""
    with repetition_bar(console, MIN_REPEATS) as advance:
        return plan(settings, on_repetitions=advance)


def replay_with_bar(settings: ReplaySettings, console: Console, source: Optional[ScoreSource] = None) -> Simulation:
    """Simulate a selection over existing scores, with a bar on a terminal."""
    with repetition_bar(console, settings.repetitions) as advance:
        return replay(settings, source=source, on_repetitions=advance)


def candidates_table(result: Simulation) -> Table:
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
    own_margin = result.simulator.margin
    rows: List[Tuple[str, float, Optional[Outlook]]] = [(label, own_margin, result.default)]
    rows += [(f"  margin {margin:g}", margin, outlook) for margin, outlook in result.margins.items()]
    rows.append(("equal allocation", own_margin, result.equal))
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
                    f"{outlook.open:.0%}" if outlook.open else "",
                ]
            )
    return Table(headings, table_rows)
