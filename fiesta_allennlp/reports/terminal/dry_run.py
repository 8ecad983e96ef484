"""Shows what a dry run found, and the runs of a trial."""

import sys
from typing import Any, Mapping, Sequence

from fiesta_allennlp.core.errors import full_command, join_some
from fiesta_allennlp.core.records import Evaluation, Outcome
from fiesta_allennlp.core.texts import number_text
from fiesta_allennlp.reports.latex_and_html import MISSING_TEXT, join_pairs, render_paragraphs
from fiesta_allennlp.reports.words import describe_scored_data
from fiesta_allennlp.selecting.results.candidate_table import Table, TerminalLines


def trial_table(outcomes: Sequence[Outcome], metric: str) -> Table:
    """Show the score and the seconds of each run of a trial."""
    rows = []
    for outcome in outcomes:
        score = number_text(outcome.score) if isinstance(outcome, Evaluation) else "failed"
        rows.append([outcome.request.candidate, score, number_text(outcome.seconds, 1)])
    return Table(["candidate", metric, "seconds"], rows)


def show_training_plan(plan: Any) -> TerminalLines:
    """Return what a dry run found: candidates, pool, split sizes, strategy, and the least and most runs."""
    prepared = plan.prepared
    has_vectors = any(preparation.coverage for preparation in prepared.preparations.values())
    vector_headings, metrics_heading = ["tokens with a vector"] if has_vectors else [], "metrics it reports"
    rows = []
    for name, preparation in prepared.preparations.items():
        coverage_cells = [", ".join(f"{share:.1%}" for share in preparation.coverage)] if has_vectors else []
        parameters_text = MISSING_TEXT if preparation.num_parameters is None else f"{preparation.num_parameters:,}"
        metrics_text = "known after a run" if preparation.metrics is None else join_some(preparation.metrics)
        rows.append([name, parameters_text, *coverage_cells, metrics_text])
    headings = ["candidate", "parameters", *vector_headings, metrics_heading]
    division, table = prepared.candidate_set.division, Table(headings, rows, wrapped=(metrics_heading,))
    scored_on = describe_scored_data(prepared.pool.official, is_official=division.is_official, scored=division.scored)
    return _show_plan(table, plan, prepared.settings.strategy_params(), scored_on=scored_on)


def show_documents_plan(plan: Any) -> TerminalLines:
    """Return the systems, documents and strategy that a dry run found, and the least and most evaluations."""
    prepared = plan.prepared
    rows = []
    for name, system in prepared.systems.items():
        system_type = prepared.candidate_by_name[name].config["type"]
        rows.append([name, system_type, f"{system.cost:g}"])
    table = Table(("system", "type", "cost of a query"), rows, wrapped=("type",))
    return _show_plan(table, plan, prepared.setup.strategy_params, prepared=prepared)


def _show_plan(
    table: Table, plan: Any, strategy_params: Mapping[str, Any], *, prepared: Any = None, scored_on: str = ""
) -> TerminalLines:
    options = {key: value for key, value in strategy_params.items() if key not in ("type", "belief")}
    if "stop" in options:
        options["stop"] = options["stop"]["type"]
    commands = {name: line.replace(sys.executable, "python") for name, line in getattr(plan, "commands", {}).items()}
    template_values = {"strategy": strategy_params, "plan_command": full_command("plan"), "scored_on": scored_on}
    template_values["options"] = join_pairs(options) or "defaults"
    return [table, *render_paragraphs("dry_run.j2", plan=plan, prepared=prepared, commands=commands, **template_values)]
