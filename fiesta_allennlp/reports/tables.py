"""The tables of results and dry runs on the terminal."""

import re
import sys
from typing import Any, Mapping, Optional, Sequence

from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.core.errors import command
from fiesta_allennlp.core.records import Evaluation, Outcome
from fiesta_allennlp.documents.result import DocumentsResult
from fiesta_allennlp.listeners.progress import PEAK_MEMORY, add_candidate, candidate_table, number_table
from fiesta_allennlp.reports.formats import MISSING, Lines, join_pairs, render_paragraphs
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.result import Result, decimals_of
from fiesta_allennlp.selection.summary import count_text, number_text


def selection_table(result: Result, pending: Mapping[str, int] = {}, *, heading: str = "") -> Table:
    """Show the candidates of a selection in the given order. `pending` are the numbers of unfinished runs, below
    `heading`."""
    if isinstance(result, DocumentsResult):
        return documents_table(result)
    table = candidate_table(result.metric_text, extra_columns=(heading,) if pending else ())
    digits = decimals_of(result.candidates)
    for candidate in result.candidates:
        add_candidate(table, candidate, digits, extra_numbers=(pending.get(candidate.name, 0),) if pending else ())
    return table


def documents_table(result: DocumentsResult) -> Table:
    metric, num_documents = result.metric, result.documents["num_documents"]
    columns = ("documents", "failed", metric, "P(best)", "queries", "cost", "seconds")
    table = number_table("system", columns, title=f"{metric}, {count_text(num_documents, 'document')} available")
    for system in result.candidates:
        table.add_row(
            escape(system.name),
            str(system.num_documents),
            str(system.failures or ""),
            number_text(system.measure),
            system.standing,
            str(system.num_queries),
            f"{system.cost:g}",
            f"{system.seconds:.0f}",
        )
    return table


def replay_table(summary: Mapping[str, Any]) -> Table:
    table = number_table("candidate", ("true mean", "picked"), title=Metric.of(summary["metric"]).text)
    for candidate in summary["candidates"]:
        share = f"{candidate['recommended']:.1%}" if candidate["recommended"] else ""
        table.add_row(escape(candidate["name"]), number_text(candidate["true_mean"]), share)
    return table


PEAK_ON_GPU = re.compile(r"peak_gpu_\d+_memory_MB")
"""The metric of AllenNLP's trainer for the peak memory of a run's tensors."""


def trial_table(outcomes: Sequence[Outcome], metric: str) -> Table:
    """Show the score, the seconds and the memory of each run of a trial, on a GPU too where one was used."""
    gpu_peaks_gib = [_gpu_peak_gib(outcome) for outcome in outcomes]
    gpu_columns = ("GPU memory (GiB)",) if any(gpu_peaks_gib) else ()
    table = number_table("candidate", (metric, "seconds", "memory (GiB)", *gpu_columns))
    for outcome, gpu_peak_gib in zip(outcomes, gpu_peaks_gib, strict=True):
        score, memory = "failed", MISSING
        if isinstance(outcome, Evaluation):
            score, memory = number_text(outcome.score), number_text(outcome.metrics[PEAK_MEMORY], 2)
        gpu_cells = (number_text(gpu_peak_gib, 2),) if gpu_columns else ()
        table.add_row(escape(outcome.request.candidate), score, number_text(outcome.seconds, 1), memory, *gpu_cells)
    return table


def _gpu_peak_gib(outcome: Outcome) -> Optional[float]:
    metrics = outcome.metrics if isinstance(outcome, Evaluation) else {}
    return max((metrics[name] / 1024 for name in metrics if PEAK_ON_GPU.fullmatch(name)), default=None)


def plan_shown(plan: Any) -> Lines:
    """Return what a dry run found: candidates, pool, split sizes, strategy, and the least and most runs."""
    prepared = plan.prepared
    has_vectors = any(preparation.coverage for preparation in prepared.preparations.values())
    table = number_table("candidate", ("parameters", *(["tokens with a vector"] if has_vectors else [])))
    table.add_column("metrics it reports", overflow="fold")
    for name, preparation in prepared.preparations.items():
        shares = [", ".join(f"{share:.1%}" for share in preparation.coverage)] if has_vectors else []
        parameters = MISSING if preparation.num_parameters is None else f"{preparation.num_parameters:,}"
        metrics = "known after a run" if preparation.metrics is None else ", ".join(preparation.metrics)
        table.add_row(escape(name), parameters, *shares, metrics)
    return _plan_shown(table, plan, prepared.settings.strategy_params())


def documents_plan_shown(plan: Any) -> Lines:
    """Return the systems, documents and strategy that a dry run found, and the least and most evaluations."""
    prepared = plan.prepared
    table = number_table("system", ())
    table.add_column("type")
    for column in ("cost of a query", "answers kept"):
        table.add_column(column, justify="right")
    for name, system in prepared.systems.items():
        num_kept = plan.kept.get(name, 0)
        table.add_row(escape(name), prepared.given[name].config["type"], f"{system.cost:g}", str(num_kept or ""))
    return _plan_shown(table, plan, prepared.choice.strategy_params, prepared=prepared)


def _plan_shown(table: Table, plan: Any, strategy: Mapping[str, Any], *, prepared: Optional[Any] = None) -> Lines:
    stop = {"stop": strategy["stop"]["type"]} if "stop" in strategy else {}
    options = join_pairs({key: value for key, value in {**strategy, **stop}.items() if key not in ("type", "belief")})
    commands = {name: line.replace(sys.executable, "python") for name, line in getattr(plan, "commands", {}).items()}
    values = {"strategy": strategy, "options": options or "defaults", "plan_command": command("plan")}
    return [table, *render_paragraphs("dry_run.j2", plan=plan, prepared=prepared, commands=commands, **values)]
