"""Describes the result of a selection, a table of scores, two candidates, a replay or a dry run in sentences and tables
on the terminal."""

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.core.errors import full_command
from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS, PEAK_MEMORY, Evaluation, Outcome
from fiesta_allennlp.documents.result import DocumentsResult, SystemResult
from fiesta_allennlp.reports.formats import MISSING_TEXT, TerminalLines, join_pairs, render_paragraphs
from fiesta_allennlp.selection.metrics import Metric, scale_notes
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.progress import Columns, build_table, candidate_table, number_table
from fiesta_allennlp.selection.result import CandidateResult, Result
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.summary import (
    count_text,
    describe_collapsed_runs,
    duration_text,
    loss_text,
    number_text,
    probability_text,
)

if TYPE_CHECKING:
    from fiesta_allennlp.reports.source_data import SourceFacts, Words


def selection_table(result: Result, pending: Mapping[str, int] = {}, *, heading: str = "") -> Table:
    """Show the candidates of a selection in the given order. `pending` are the numbers of unfinished runs, below
    `heading`."""
    if isinstance(result, DocumentsResult):
        return system_table(result)
    columns: Columns[CandidateResult] = ((heading, lambda c: str(pending.get(c.name) or "")),)
    return candidate_table(result.candidates, title=result.metric_text, extra_columns=columns if pending else ())


def system_table(result: DocumentsResult) -> Table:
    columns: Columns[SystemResult] = (
        ("system", lambda s: s.name),
        ("documents", lambda s: str(s.num_documents)),
        ("failed", lambda s: str(s.failures or "")),
        (result.metric, lambda s: number_text(s.measure)),
        ("P(best)", lambda s: s.standing),
        ("queries", lambda s: str(s.num_queries)),
        ("cost", lambda s: f"{s.cost:g}"),
        ("seconds", lambda s: f"{s.seconds:.0f}"),
    )
    num_documents_text = count_text(result.documents["num_documents"], "document")
    unknown_texts = [f"{s.name} {s.unknown_text}" for s in result.candidates if s.num_unknown]
    unknown_text = f"; answers that are no gold label: {'; '.join(unknown_texts)}" if unknown_texts else ""
    title = f"{result.metric}, {num_documents_text} available{unknown_text}"
    return build_table(columns, result.candidates, title=title)


GPU_PEAK_METRIC = re.compile(r"peak_gpu_\d+_memory_MB")
"""The metric of AllenNLP's trainer for the peak memory of a run's tensors."""


def trial_table(outcomes: Sequence[Outcome], metric: str) -> Table:
    """Show the score, the seconds and the memory of each run of a trial, on a GPU too where one was used."""
    gpu_peaks_gib = [_gpu_peak_gib(outcome) for outcome in outcomes]
    gpu_columns = ("GPU memory (GiB)",) if any(gpu_peaks_gib) else ()
    table = number_table("candidate", (metric, "seconds", "memory (GiB)", *gpu_columns))
    for outcome, gpu_peak_gib in zip(outcomes, gpu_peaks_gib, strict=True):
        score, memory = "failed", MISSING_TEXT
        if isinstance(outcome, Evaluation):
            score, memory = number_text(outcome.score), number_text(outcome.metrics[PEAK_MEMORY], 2)
        gpu_cells = (number_text(gpu_peak_gib, 2),) if gpu_columns else ()
        table.add_row(escape(outcome.request.candidate), score, number_text(outcome.seconds, 1), memory, *gpu_cells)
    return table


def _gpu_peak_gib(outcome: Outcome) -> Optional[float]:
    metrics = outcome.metrics if isinstance(outcome, Evaluation) else {}
    return max((metrics[name] / 1024 for name in metrics if GPU_PEAK_METRIC.fullmatch(name)), default=None)


def show_training_plan(plan: Any) -> TerminalLines:
    """Return what a dry run found: candidates, pool, split sizes, strategy, and the least and most runs."""
    prepared = plan.prepared
    has_vectors = any(preparation.coverage for preparation in prepared.preparations.values())
    table = number_table("candidate", ("parameters", *(["tokens with a vector"] if has_vectors else [])))
    table.add_column("metrics it reports", overflow="fold")
    for name, preparation in prepared.preparations.items():
        coverage_cells = [", ".join(f"{share:.1%}" for share in preparation.coverage)] if has_vectors else []
        parameters_text = MISSING_TEXT if preparation.num_parameters is None else f"{preparation.num_parameters:,}"
        metrics_text = "known after a run" if preparation.metrics is None else ", ".join(preparation.metrics)
        table.add_row(escape(name), parameters_text, *coverage_cells, metrics_text)
    return _show_plan(table, plan, prepared.settings.strategy_params())


def show_documents_plan(plan: Any) -> TerminalLines:
    """Return the systems, documents and strategy that a dry run found, and the least and most evaluations."""
    prepared = plan.prepared
    table = number_table("system", ())
    table.add_column("type")
    for column in ("cost of a query", "answers kept"):
        table.add_column(column, justify="right")
    for name, system in prepared.systems.items():
        num_kept_answers = plan.num_kept_answers.get(name, 0)
        system_type = prepared.candidate_by_name[name].config["type"]
        table.add_row(escape(name), system_type, f"{system.cost:g}", str(num_kept_answers or ""))
    return _show_plan(table, plan, prepared.setup.strategy_params, prepared=prepared)


def _show_plan(table: Table, plan: Any, strategy_params: Mapping[str, Any], *, prepared: Any = None) -> TerminalLines:
    options = {key: value for key, value in strategy_params.items() if key not in ("type", "belief")}
    if "stop" in options:
        options["stop"] = options["stop"]["type"]
    commands = {name: line.replace(sys.executable, "python") for name, line in getattr(plan, "commands", {}).items()}
    template_values = {"strategy": strategy_params, "plan_command": full_command("plan")}
    template_values["options"] = join_pairs(options) or "defaults"
    return [table, *render_paragraphs("dry_run.j2", plan=plan, prepared=prepared, commands=commands, **template_values)]


def selection_in_words(result: Result, *, running: bool = False) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it spent, sentence by sentence."""
    decision_text = running_in_words(result) if running else ended_in_words(result)
    cost_text = queries_in_words(result) if isinstance(result, DocumentsResult) else spent_in_words(result)
    means = {candidate.name: [candidate.mean] for candidate in result.candidates if candidate.mean}
    scale_sentences = scale_notes(means, Metric.parse(result.metric).name)
    doubt_sentences = (*scale_sentences, *collapsed_in_words(result))
    return tuple(filter(None, (decision_text, *doubt_sentences, result.scored_on, scope_in_words(result), cost_text)))


def collapsed_in_words(result: Result) -> Tuple[str, ...]:
    """Describe runs far from their candidate's others."""
    minimise = Metric.parse(result.metric).minimise
    return tuple(describe_collapsed_runs(entry, minimise=minimise) for entry in result.collapsed)


def scope_in_words(result: Result) -> str:
    """Describe the limits of scores on official splits or on the validation set."""
    sentences = []
    if result.splits == OFFICIAL:
        sentences.append("P(best) is about new seeds on this one split, not about new data.")
    if result.score == "validation":
        sentences.append(
            "The scores are on the validation set, which a run may also use to choose its epoch or settings, so they "
            "tend to be better than scores on unseen data."
        )
    return " ".join(sentences)


def failures_in_words(result: Result) -> List[str]:
    """Name every failure, by reason, and every candidate that takes no part."""
    sentences: List[str] = []
    for candidate in result.candidates:
        runs_by_reason: Dict[str, List[str]] = {}
        for failed_run in candidate.failed_runs:
            if failed_run.kind != "score":
                runs_by_reason.setdefault(failed_run.reason, []).append(failed_run.run)
        sentences += [f"failed: {', '.join(run_names)} {reason}" for reason, run_names in runs_by_reason.items()]
        if candidate.num_missed:
            sentences.append(
                f"{candidate.name}: {candidate.missed_text} runs missed --min-score and are not in its mean: "
                f"{candidate.missed_runs}"
            )
        if candidate.withdrawn:
            status_text = "removed" if candidate.removed else "dropped out"
            sentences.append(f"{status_text}: {candidate.name}: {candidate.withdrawn_because}")
    return sentences


def limit_in_words(result: Result, source: "SourceFacts") -> str:
    """Name the runs that `--min-score` removes from a table, or from a selection that ran without this limit."""
    if source.min_score is None or not source.limit_is_late:
        return ""
    removed_runs = [f"{c.missed_text} runs of {c.name} ({c.missed_runs})" for c in result.candidates if c.num_missed]
    is_table = not source.strategy
    limit_age = "a table does not record whether the limit is older than the runs" if is_table else "set after the runs"
    runs_text = ", ".join(removed_runs) or "no run"
    return f"--min-score {source.min_score:g} ({limit_age}) removes {runs_text}. {source.without_limit}"


def ended_in_words(result: Result) -> str:
    leading, stopped_by, work_text = result.leading, result.stopped_by, _work_text(result)
    if stopped_by == "documents" and isinstance(result, DocumentsResult):
        return _all_answered_text(result)
    if stopped_by == "interrupted":
        saved_text = "no answer is lost" if isinstance(result, DocumentsResult) else "nothing that finished is lost"
        return f"Interrupted after {work_text}; {saved_text}. {leading_two_in_words(result)}".strip()
    if stopped_by == "failures":
        survivor = next((f"only {candidate.name} is" for candidate in result.active), "no candidate is")
        reason = "The others failed too often; see the reasons for each."
        return f"No comparison: after {work_text}, {survivor} left. {reason}"
    if stopped_by in INCONCLUSIVE_REASONS:
        limit = "is the limit" if stopped_by == "max_hours" else "leaves too few runs to decide"
        return (
            f"Inconclusive after {work_text}: {flag(str(stopped_by))} {limit}. {leading_two_in_words(result)}".strip()
        )
    confidence = result.confidence
    if not result.is_decided:
        chance_text = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        work_text += f".{_lead_text(result)}{_unspent_text(result)}"
        return f"{leading} leads{chance_text}, by {result.metric_text}, after {work_text}"
    best_text = f" within {result.margin:g} of the best" if result.margin else " the best"
    chance_text = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if result.margin and result.leader is not None and confidence is not None:
        chance_text += f" (the very best with {probability_text(result.leader.prob_best)})"
    return f"{leading} is{best_text}{chance_text}, by {result.metric_text}, after {work_text}.{_lead_text(result)}"


def running_in_words(result: Result) -> str:
    leading, confidence, work_text = result.leading, result.confidence, _work_text(result)
    if leading is None or confidence is None:
        return f"The selection is running. After {work_text}, P(best) is not available yet."
    lead_text = f"is within {result.margin:g} of the best" if result.margin else "leads"
    return (
        f"The selection is running. After {work_text}, {leading} {lead_text} with probability "
        f"{probability_text(confidence)}, by {result.metric_text}.{_loss_text(result)}{_needed_runs_text(result)}"
    )


def changes_in_words(changes: Sequence[Mapping[str, Any]], words: "Words") -> Tuple[str, ...]:
    """Describe the changes of options that choose runs or stop the selection."""
    return tuple(
        f"{flag(change['option'])} was changed from {_option_text(change, 'before')} to {_option_text(change, 'now')} "
        f"after {change['num_done']} {words.evaluation_noun(change['num_done'])}."
        for change in changes
    )


def _option_text(change: Mapping[str, Any], key: str) -> str:
    value = change[key]
    if value is None:
        return "its default" if change["option"] == "max_evaluations" else "none"
    return value["type"] if isinstance(value, dict) and list(value) == ["type"] else json.dumps(value)


def _work_text(result: Result) -> str:
    """Count the work, as in `4 runs of 3 candidates and 1 failed run`."""
    if isinstance(result, DocumentsResult):
        num_answered = sum(system.num_documents for system in result.candidates)
        text = f"{count_text(num_answered, 'answered document')} of {len(result.candidates)} systems"
    else:
        text = f"{count_text(result.num_evaluations, 'run')} of {len(result.candidates)} candidates"
    return f"{text} and {count_text(result.num_failures, 'failed run')}" if result.num_failures else text


def leading_two_in_words(result: Result) -> str:
    """Name the two candidates that lead and the margin that would have decided; empty without P(best)."""
    candidates = [c for c in result.candidates if c.prob_best is not None]
    leading_two = sorted(candidates, key=lambda c: (c.name != result.leading, -(c.prob_best or 0.0)))[:2]
    if len(leading_two) < 2:
        return ""
    leader_text, rival_text = (f"{c.name} (P(best) {probability_text(c.prob_best)})" for c in leading_two)
    margin = result.credible_margin
    margin_text = ""
    if margin is not None:
        margin_text = (
            f" --margin {margin['margin']:g} would have selected {margin['best']}, but a margin chosen after seeing "
            "the scores voids the target."
        )
    return f"Leading: {leader_text}, then {rival_text}.{_loss_text(result)}{_needed_runs_text(result)}{margin_text}"


def _loss_text(result: Result) -> str:
    """State what choosing the leader now costs."""
    text = loss_text(result.leading, result.expected_loss)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _needed_runs_text(result: Result) -> str:
    """Name the runs that a probable winner still needs."""
    needs = [f"{name} needs at least {count_text(num_runs, 'more run')}" for name, num_runs in result.lacking.items()]
    return f" That is enough, but before {result.leading} can win, {' and '.join(needs)}." if needs else ""


def _lead_text(result: Result) -> str:
    """State the lead of the winner on shared splits, which the means do not show."""
    lead = result.ahead_on_shared_splits
    if lead is None:
        return _mean_lead_text(result)
    splits, gap = f"the {lead['num_splits']} splits that both ran on", f"{lead['difference']:.2g}"
    if not lead["has_better_mean"]:
        return f" It is ahead of {lead['of']} by {gap} on {splits}."
    better = "lower" if Metric.parse(result.metric).minimise else "higher"
    return f" {lead['of']} has a {better} mean, but on other splits. On {splits}, {result.leading} is ahead by {gap}."


def _mean_lead_text(result: Result) -> str:
    """State the lead of the winner where runs share no splits; empty if it does not lead."""
    sign = Metric.parse(result.metric).sign
    means = {candidate.name: sign * candidate.mean for candidate in result.active if candidate.mean is not None}
    best_mean = means.pop(str(result.leading), None)
    rival = max(means, key=means.__getitem__, default=None)
    if isinstance(result, DocumentsResult) or best_mean is None or rival is None or best_mean <= means[rival]:
        return ""
    return f" Its mean is {best_mean - means[rival]:.2g} ahead of {rival}."


def _unspent_text(result: Result) -> str:
    """Say why a budget was not spent whole; empty if it was, or if candidates dropped out."""
    num_unspent = result.strategy.get("budget", 0) - result.num_evaluations
    if num_unspent <= 0 or result.stopped_by != "budget" or len(result.active) < len(result.candidates):
        return ""
    verb = "was" if num_unspent == 1 else "were"
    runs_text = count_text(num_unspent, "run")
    return f" {runs_text} of the budget {verb} left, because a round gives its candidates equally many."


def spent_in_words(result: Result) -> str:
    """State the time of all runs and, if it is decided, the runs of a plain loop; empty if neither is known."""
    time_text = f"The runs took {duration_text(result.seconds)} across all workers." if result.seconds else ""
    plain_loop = result.plain_loop
    if plain_loop is None:
        return time_text
    low, high, limit_note = plain_loop["low"], plain_loop["high"], " (the limit)" if plain_loop["is_limited"] else ""
    num_runs = f"{low} to {high}" if low < high else f"{low}"
    return f"{time_text} Running all candidates equally often would take about {num_runs} runs{limit_note}.".strip()


def queries_in_words(result: DocumentsResult) -> str:
    """State the number of queries and their cost; empty if they are unknown."""
    if result.num_queries is None:
        return ""
    verb = "was" if result.num_queries == 1 else "were"
    return f"{count_text(result.num_queries, 'query')} {verb} made, at a total cost of {result.cost:g}."


def _all_answered_text(result: DocumentsResult) -> str:
    leading, num_documents = result.leading, result.documents["num_documents"]
    leader, batch_size = result.leader, result.documents["batch_size"]
    active_systems = [system for system in result.candidates if not system.withdrawn]
    incomplete_names = [s.name for s in active_systems if s.num_documents + s.failures * batch_size < num_documents]
    best_score = (leader.measure, leader.num_documents)
    tied_names = [s.name for s in active_systems if (s.measure, s.num_documents) == best_score and s != leader]
    lead_text = f"The systems answered all {num_documents} documents: {leading} is the best on this file"
    probability_sentence = ""
    if leader.prob_best is not None:
        chance = probability_text(leader.prob_best)
        probability_sentence = f" It is the best on other documents like these with probability {chance}."
    if leading in incomplete_names:
        lead_text = f"No documents are left for the next step of the plan: {leading} leads"
    elif incomplete_names:
        lead_text = f"{leading} is the best of the systems that answered all {num_documents} documents"
        reason_text = "" if "budget" in result.strategy else " because they were unlikely to be the best"
        probability_sentence += f" {' and '.join(incomplete_names)} answered fewer{reason_text}."
    tie_text = f", level with {' and '.join(tied_names)}" if tied_names else ""
    score_text = f"{result.metric} {number_text(leader.measure)}"
    return f"{lead_text}, with {score_text}{tie_text}, after {_work_text(result)}.{probability_sentence}"


def scores_in_words(result: Result, **template_values: Any) -> List[str]:
    """Describe the decision about a table of scores, or about the two candidates of the comparison `pair`."""
    scores_values = {"pair": None, "target": None, "needs": _needed_runs_text(result), **template_values}
    return render_paragraphs("scores.j2", result=result, **scores_values)
