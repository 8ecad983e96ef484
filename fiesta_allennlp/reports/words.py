"""Describes the result of a selection, a table of scores, two candidates, a replay or a dry run in sentences and tables
on the terminal."""

import json
import re
import sys
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import MAX_SHOWN, full_command, join_some
from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS, PEAK_MEMORY, Evaluation, Outcome
from fiesta_allennlp.documents.result import DocumentsResult
from fiesta_allennlp.reports.comparisons import Comparison
from fiesta_allennlp.reports.formats import (
    MISSING_TEXT,
    TerminalLines,
    join_pairs,
    reason_text,
    render_paragraphs,
    withdrawn_text,
)
from fiesta_allennlp.selection.candidate_table import Table, num_decimals
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.texts import (
    Words,
    count_text,
    describe_collapsed_runs,
    duration_text,
    interval_text,
    loss_text,
    missed_runs_text,
    missed_text,
    number_text,
    pair_text,
    probability_text,
)
from fiesta_allennlp.strategies import Strategy

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


def selection_in_words(result: Result) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it spent, sentence by sentence."""
    decision_text = running_in_words(result) if result.running else ended_in_words(result)
    cost_text = queries_in_words(result) if isinstance(result, DocumentsResult) else spent_in_words(result)
    notes = pair_in_words(result), *collapsed_in_words(result), scored_on_text(result), cost_text
    return tuple(filter(None, (decision_text, *notes)))


def scores_in_words(result: Result, strategy: Strategy, *, pair: Optional[Comparison] = None) -> Tuple[str, ...]:
    """Describe the decision about a table of scores, or about the two candidates of `pair`."""
    leading, confidence, metric = result.leading, result.confidence, result.metric_text
    after = f"after {count_text(result.num_evaluations, 'score')} of {len(result.candidates)} candidates"
    chance = probability_text(confidence)
    sentences = [*collapsed_in_words(result), scored_on_text(result)]
    if pair is not None:
        rival = pair.second if leading == pair.first else pair.first
        lead = "" if confidence is None else f"{leading} is better than {rival} with probability {chance}, by {metric}."
        return (lead, _difference_in_words(pair, num_decimals(result.candidates)), *sentences)
    if confidence is None:
        needed = count_text(strategy.belief.min_evaluations, "score")
        belief = result.belief["type"]
        lead = f"P(best) is not available {after}: the posterior {belief} needs {needed} from every candidate."
    elif result.decided:
        lead = f"{leading} is the best with probability {chance}, by {metric}, {after}."
    else:
        target = strategy.confidence or 0.0
        needs = _needed_runs_text(result) if confidence >= target else ""
        reason = undecided_in_words(result) or f"The target is {target:g}."
        texts = (f"{leading} leads with P(best) {chance}, by {metric}, {after}.", best_set_in_words(result))
        lead = " ".join(filter(None, (*texts, f"It is not decided. {reason}{needs}")))
    return (lead, *filter(None, [pair_in_words(result)]), *sentences)


def _difference_in_words(pair: Comparison, decimals: int) -> str:
    if pair.mean_difference is None:
        return f"{pair.first} and {pair.second} cannot be compared because one has no scores."
    interval = f" (95% interval {interval_text(pair.interval, decimals)})" if pair.interval else ""
    runs = count_text(pair.num_pairs, "shared split") if pair.paired else "unpaired runs"
    difference = number_text(pair.mean_difference, decimals, sign="+")
    return f"{pair.first} minus {pair.second} is {difference}{interval}, over {runs}."


def scored_on_text(result: Result) -> str:
    """Describe what the runs are scored on; empty if that is unknown."""
    is_official = result.on_official_splits
    return (
        "" if result.sets is None else describe_scored_data(result.sets, is_official=is_official, scored=result.score)
    )


VALIDATION_CAUTION = (
    "A run may choose its epoch or settings on the validation set, so scores on unseen data tend to be worse."
)


def describe_scored_data(sets: Collection[str], *, is_official: bool, scored: str) -> str:
    """Describe what the runs of a selection are scored on. `sets` are empty if only the programs know."""
    if not sets:
        split_text = "Only seeds vary" if is_official else "Candidates split their data themselves, by the split seed"
        text = f"{split_text}. Each program loads its own data, which cannot be checked."
    elif is_official:
        text = f"Runs are scored on the official {scored} set; only seeds vary."
    elif scored == "validation":
        text = "Runs are scored on the validation sets of random splits; no run sees the official test set."
    else:
        test_set_text = ", official test set included" if "test" in sets else ""
        text = f"Runs are scored on the test sets of random splits of all the data{test_set_text}."
    return f"{text} {VALIDATION_CAUTION}" if scored == "validation" else text


def collapsed_in_words(result: Result) -> Tuple[str, ...]:
    """Describe runs far from their candidate's others."""
    return tuple(describe_collapsed_runs(entry, minimise=result.minimise) for entry in result.collapsed)


def failures_in_words(result: Result) -> List[str]:
    """Name every failure, by reason, and every candidate that takes no part."""
    sentences: List[str] = []
    for candidate in result.candidates:
        runs_by_reason: Dict[str, List[str]] = {}
        for failed_run in candidate.failed_runs:
            if failed_run.kind != "score":
                runs_by_reason.setdefault(reason_text(failed_run, result), []).append(failed_run.run)
        shown_reasons = list(runs_by_reason.items())[:MAX_SHOWN]
        sentences += [f"failed: {join_some(run_names)} {reason}" for reason, run_names in shown_reasons]
        num_shown = sum(len(run_names) for _, run_names in shown_reasons)
        if num_rest := candidate.failures - candidate.num_missed - num_shown:
            sentences.append(f"failed: {count_text(num_rest, 'more run')} of {candidate.name}")
        if candidate.num_missed:
            sentences.append(
                f"{candidate.name}: {missed_text(candidate)} runs missed --min-score and are not in its mean: "
                f"{missed_runs_text(candidate)}"
            )
        if candidate.withdrawn:
            status_text = "removed" if candidate.removed else "dropped out"
            sentences.append(f"{status_text}: {candidate.name}: {withdrawn_text(candidate)}")
    return sentences


def limit_in_words(result: Result, own_result: Optional[Result]) -> str:
    """Name the runs that `--min-score` removes from a table, or from a selection with another limit of its own, and the
    decision without it."""
    removed_runs = [
        f"{missed_text(c)} runs of {c.name} ({missed_runs_text(c)})" for c in result.candidates if c.num_missed
    ]
    age = "a table does not record whether it was set before the runs" if own_result is None else "set after the runs"
    text = f"--min-score {result.min_score:g} ({age}) removes {join_some(removed_runs) or 'no run'}."
    return f"{text} {own_limit_in_words(own_result)}".strip()


def own_limit_in_words(own_result: Optional[Result]) -> str:
    """Describe who leads by the selection's own `--min-score`; empty if nobody does."""
    if own_result is None or own_result.confidence is None:
        return ""
    limit = own_result.min_score
    condition = "Without it" if limit is None else f"With the selection's own --min-score {limit:g}"
    return f"{condition}, {own_result.leading} leads with P(best) {probability_text(own_result.confidence)}."


def ended_in_words(result: Result) -> str:
    leading, stopped_by, work_text = result.leading, result.stopped_by, _work_text(result)
    if stopped_by == "documents" and isinstance(result, DocumentsResult):
        return _all_answered_text(result)
    if stopped_by == "interrupted":
        saved_text = "no answer is lost" if isinstance(result, DocumentsResult) else "nothing that finished is lost"
        return f"Interrupted after {work_text}; {saved_text}. {leading_two_in_words(result)}".strip()
    if stopped_by == "failures":
        survivor = next((f"only {candidate.name} is" for candidate in result.active), "no candidate is")
        reason = "The reasons are listed for each candidate."
        return f"No comparison: after {work_text}, {survivor} left. {reason}"
    if stopped_by in INCONCLUSIVE_REASONS:
        gave_up = result.undecided is not None and result.undecided["gave_up"]
        limit = "leaves too few runs to decide" if gave_up else "was reached"
        return (
            f"Inconclusive after {work_text}: {flag(str(stopped_by))} {limit}. {leading_two_in_words(result)}".strip()
        )
    confidence = result.confidence
    if not result.is_decided:
        chance_text = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        work_text += f".{_lead_text(result)}"
        return f"{leading} leads{chance_text}, by {result.metric_text}, after {work_text}"
    best_text = f" within {result.margin:g} of the best" if result.margin else " the best"
    chance_text = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if result.margin and result.leader is not None and confidence is not None:
        chance_text += f" (P(best) {probability_text(result.leader.prob_best)})"
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


def changes_in_words(changes: Sequence[Mapping[str, Any]], words: Words) -> Tuple[str, ...]:
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
    """Offer the candidates that could be the best, and the margin that would have decided. Then name the two that lead
    and what is not met. Without P(best), name the candidates without a finished run."""
    candidates = [c for c in result.candidates if c.prob_best is not None]
    leading_two = sorted(candidates, key=lambda c: (c.name != result.leading, -(c.prob_best or 0.0)))[:2]
    if len(leading_two) < 2:
        missing = join_some(result.without_runs)
        return missing and f"Without a finished {result.words.evaluation}: {missing}."
    leader_text, rival_text = (f"{c.name} (P(best) {probability_text(c.prob_best)})" for c in leading_two)
    offers = (best_set_in_words(result), margin_in_words(result))
    lead_text = f"Leading: {leader_text}, then {rival_text}."
    sentences = " ".join(filter(None, (*offers, lead_text, undecided_in_words(result))))
    return f"{sentences}{_loss_text(result)}{_needed_runs_text(result)}"


def margin_in_words(result: Result) -> str:
    """Offer the margin that would have decided; empty if there is none."""
    if result.credible_margin is None:
        return ""
    margin, best = f"{result.credible_margin['margin']:g}", result.credible_margin["best"]
    return (
        f"{best} is within {margin} of the best with the target probability: take it if such a difference does not "
        f"matter to you. Next time, set --margin {margin} before the first run; set afterwards, it voids the target."
    )


def best_set_in_words(result: Result) -> str:
    """Name the candidates that could still be the best; empty if that is one or all of them, or unknown."""
    names = result.best_set
    if not 1 < len(names) < len(result.active):
        return ""
    together = sum(c.prob_best or 0.0 for c in result.active if c.name in names)
    return f"{join_some(names, ' or ')} is the best with probability {probability_text(together)}."


def undecided_in_words(result: Result) -> str:
    """Name the condition of the stopping rule that is not met, and what would change it; empty if it is unknown."""
    if result.undecided is None:
        return ""
    target, required = (result.undecided[name] for name in ("target", "required"))
    text = {
        "starting runs": "Some candidates have not finished their starting runs yet",
        "probability": f"P(best) is below the target {target:g}: a margin or more runs can change that",
        "few runs": f"With few runs, the stopping rule requires {probability_text(required)}; with more, "
        f"only the target {target:g}",
        "collapsed runs": "Runs may collapse, so the leading two need more; --min-score counts such runs as failed",
        "evidence": f"The evidence does not reach the target {target:g}: more runs can change that",
    }[result.undecided["unmet"]]
    gave_up_text = " The remaining runs would probably not have decided it." if result.undecided["gave_up"] else ""
    return f"{text}.{gave_up_text}"


def _loss_text(result: Result) -> str:
    """State what choosing the leader now costs."""
    text = _sentence(loss_text(result.leading, result.expected_loss, num_decimals(result.candidates)))
    return text and f" {text}"


def pair_in_words(result: Result) -> str:
    """State P(best) of the leader against its runner-up alone, where it decides otherwise; empty elsewhere."""
    return _sentence(pair_text(result.leading, result.pair_alone))


def _sentence(text: str) -> str:
    return text and f"{text[0].upper()}{text[1:]}."


def _needed_runs_text(result: Result) -> str:
    """Name the runs that a probable winner still needs."""
    needs = [f"{name} needs at least {count_text(num_runs, 'more run')}" for name, num_runs in result.lacking.items()]
    return f" The target is reached, but before {result.leading} can win, {join_some(needs, ' and ')}." if needs else ""


def _lead_text(result: Result) -> str:
    """State the lead of the winner on shared splits, which the means do not show."""
    lead = result.ahead_on_shared_splits
    if lead is None:
        return _mean_lead_text(result)
    splits, gap = f"the {lead['num_splits']} splits that both ran on", f"{lead['difference']:.2g}"
    if not lead["has_better_mean"]:
        return f" It is ahead of {lead['of']} by {gap} on {splits}."
    better = "lower" if result.minimise else "higher"
    return f" {lead['of']} has a {better} mean, but on other splits. On {splits}, {result.leading} is ahead by {gap}."


def _mean_lead_text(result: Result) -> str:
    """State the lead of the winner where runs share no splits; empty if it does not lead."""
    sign = result.parsed_metric.sign
    means = {candidate.name: sign * candidate.mean for candidate in result.active if candidate.mean is not None}
    best_mean = means.pop(str(result.leading), None)
    rival = max(means, key=means.__getitem__, default=None)
    if isinstance(result, DocumentsResult) or best_mean is None or rival is None or best_mean <= means[rival]:
        return ""
    return f" Its mean is {best_mean - means[rival]:.2g} ahead of {rival}."


def spent_in_words(result: Result) -> str:
    """State the time of all runs and, if it is decided, the runs of a plain loop if they are clearly fewer or more;
    empty if neither is known."""
    time_text = f"The runs took {duration_text(result.seconds)} across all workers." if result.seconds else ""
    plain_loop = result.plain_loop
    if plain_loop is None:
        return time_text
    if plain_loop["low"] <= result.num_evaluations <= plain_loop["high"]:  # it would not have differed
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
        probability_sentence += f" {join_some(incomplete_names, ' and ')} answered fewer{reason_text}."
    tie_text = f", level with {join_some(tied_names, ' and ')}" if tied_names else ""
    score_text = f"{result.metric} {number_text(leader.measure)}"
    return f"{lead_text}, with {score_text}{tie_text}, after {_work_text(result)}.{probability_sentence}"
