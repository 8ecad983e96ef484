"""Shows what a dry run found, and the runs of a trial."""

import re
import sys
from typing import Any, Mapping, Optional, Sequence

from fiesta_allennlp.core.errors import full_command, join_some
from fiesta_allennlp.core.records import PEAK_MEMORY, Evaluation, Outcome
from fiesta_allennlp.reports.formats import MISSING_TEXT, join_pairs, render_paragraphs
from fiesta_allennlp.selection.candidate_table import Table
from fiesta_allennlp.selection.showing import TerminalLines
from fiesta_allennlp.selection.texts import describe_scored_data, number_text

GPU_PEAK_METRIC = re.compile(r"peak_gpu_\d+_memory_MB")
"""The metric of AllenNLP's trainer for the peak memory of a run's tensors."""


def trial_table(outcomes: Sequence[Outcome], metric: str) -> Table:
    """Show the score, the seconds and the memory of each run of a trial, on a GPU too where one was used."""
    headings, rows = ["candidate", metric, "seconds", "memory (GiB)", "GPU memory (GiB)"], []
    for outcome in outcomes:
        score, memory = "failed", MISSING_TEXT
        if isinstance(outcome, Evaluation):
            score, memory = number_text(outcome.score), number_text(outcome.metrics[PEAK_MEMORY], 2)
        gpu_memory = number_text(_gpu_peak_gib(outcome), 2)
        rows.append([outcome.request.candidate, score, number_text(outcome.seconds, 1), memory, gpu_memory])
    num_columns = len(headings) if any(map(_gpu_peak_gib, outcomes)) else len(headings) - 1
    return Table(headings[:num_columns], [row[:num_columns] for row in rows])


def _gpu_peak_gib(outcome: Outcome) -> Optional[float]:
    metrics = outcome.metrics if isinstance(outcome, Evaluation) else {}
    return max((metrics[name] / 1024 for name in metrics if GPU_PEAK_METRIC.fullmatch(name)), default=None)


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
        rows.append([name, system_type, f"{system.cost:g}", str(plan.num_kept_answers.get(name) or "")])
    table = Table(("system", "type", "cost of a query", "answers kept"), rows, wrapped=("type",))
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
