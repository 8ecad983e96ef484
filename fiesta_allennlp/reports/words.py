"""Describes the result of a selection, of a table of scores, or of two candidates in sentences."""

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.core.errors import MAX_SHOWN, join_some
from fiesta_allennlp.core.settings.options import flag
from fiesta_allennlp.core.texts import (
    count_text,
    duration_text,
    interval_text,
    names_text,
    number_text,
    probability_text,
)
from fiesta_allennlp.documents.documents_result import DocumentsResult
from fiesta_allennlp.reports.comparisons import Comparison
from fiesta_allennlp.reports.latex_and_html import (
    reason_text,
    withdrawn_text,
)
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.candidate_table import TerminalLines, candidate_table, num_decimals, show
from fiesta_allennlp.selecting.results.facts import NOTES, STATE, fact_sentences
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.result_words import Words, describe_scored_data, missed_runs_text, missed_text


def selection_in_words(result: Result) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it spent, sentence by sentence."""
    cost_text = queries_in_words(result) if isinstance(result, DocumentsResult) else spent_in_words(result)
    return (*decision_in_words(result), *filter(None, [cost_text]))


def decision_in_words(result: Result) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it rests on."""
    state_text = running_in_words(result) if result.running else ended_in_words(result)
    state_text = " ".join((state_text, *fact_sentences(result, STATE)))
    notes = (*fact_sentences(result, NOTES), scored_on_text(result))
    return tuple(filter(None, (state_text, *notes)))


def scores_in_words(result: Result, strategy: Strategy, *, pair: Optional[Comparison] = None) -> Tuple[str, ...]:
    """Describe the decision about a table of scores, or about the two candidates of `pair`."""
    leading, confidence, metric = result.leading, result.confidence, result.metric_text
    after = f"after {count_text(result.num_evaluations, 'score')} of {len(result.candidates)} candidates"
    chance = probability_text(confidence)
    if pair is not None:
        rival = pair.second if leading == pair.first else pair.first
        lead = "" if confidence is None else f"{leading} is better than {rival} with probability {chance}, by {metric}."
        collapsed = fact_sentences(result, NOTES)
        return (lead, _difference_in_words(pair, num_decimals(result.candidates)), *collapsed, scored_on_text(result))
    if confidence is None:
        needed = count_text(strategy.belief.min_evaluations, "score")
        belief = result.belief["type"]
        lead = f"P(best) is not available {after}: the posterior {belief} needs {needed} from every candidate."
    elif result.stopped_by is not None:
        lead = verdict_in_words(result, after)
    else:
        lead = f"{leading} leads{result.average_text} with P(best) {chance}, by {metric}, {after}. It is not decided."
    state_text = " ".join((lead, *fact_sentences(result, STATE)))
    return (state_text, *fact_sentences(result, NOTES), scored_on_text(result))


def _difference_in_words(pair: Comparison, decimals: int) -> str:
    if pair.mean_difference is None:
        return f"{pair.first} and {pair.second} cannot be compared because one has no scores."
    interval = f" (95% interval {interval_text(pair.interval, decimals)})" if pair.interval else ""
    runs = count_text(pair.num_pairs, "shared split") if pair.paired else "unpaired runs"
    difference = number_text(pair.mean_difference, decimals, sign="+")
    return f"{pair.first} minus {pair.second} is {difference}{interval}, over {runs}."


def scored_on_text(result: Result) -> str:
    """Describe what the runs are scored on; empty if that is unknown."""
    if result.sets is None:
        return ""
    return describe_scored_data(result.sets, is_official=result.on_official_splits, scored=result.score)


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
        if num_rest := candidate.failures - candidate.num_missed - sum(len(names) for _, names in shown_reasons):
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


def min_score_in_words(result: Result) -> str:
    """Name the runs that `--min-score` removes; empty without such a limit."""
    if result.min_score is None:
        return ""
    removed = [f"{missed_text(c)} runs of {c.name} ({missed_runs_text(c)})" for c in result.candidates if c.num_missed]
    return f"--min-score {result.min_score:g} removes {join_some(removed) or 'no run'}."


def single_runs_in_words(result: Result) -> str:
    """State how often single runs would have named another candidate than `leading`; empty if that is unknown."""
    if result.single_runs_wrong is None:
        return ""
    return (
        f"One run of each would have named another {result.words.candidate} in {result.single_runs_wrong:.0%} of cases."
    )


def ended_in_words(result: Result) -> str:
    stopped_by, work_text = result.stopped_by, _work_text(result)
    if stopped_by == "documents" and isinstance(result, DocumentsResult):
        return _all_answered_text(result)
    if stopped_by == "interrupted":
        saved_text = "no answer is lost" if isinstance(result, DocumentsResult) else "nothing that finished is lost"
        return f"Interrupted after {work_text}; {saved_text}."
    if stopped_by == "failures":
        survivor = next((f"only {candidate.name} is" for candidate in result.active), "no candidate is")
        reason = "The reasons are listed for each candidate."
        return f"No comparison: after {work_text}, {survivor} left. {reason}"
    return verdict_in_words(result, f"after {work_text}")


def verdict_in_words(result: Result, after: str) -> str:
    """State the verdict: who is the best, who are equal, or what is open. `after` names the work that it rests on."""
    leading, confidence, about = result.leading, result.confidence, f"by {result.metric_text}, {after}"
    if result.verdict == "equal":
        chance = probability_text(result.prob_equal)
        return (
            f"{names_text(result.best_set)} are equal within half a run-to-run sd, with probability {chance}, {about}."
        )
    if not result.decided:
        return f"Open {after}: {_open_in_words(result)}."
    missing = _missing_in_words(result)
    if not result.is_decided:
        chance_text = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        return f"{leading} leads{result.average_text}{chance_text}, {about}{missing}."
    best_text = f"within {result.margin:g} of the best" if result.margin else "the best"
    best_text += result.average_text
    chance_text = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if result.margin and result.leader is not None and confidence is not None:
        chance_text += f" (P(best) {probability_text(result.leader.prob_best)})"
    return f"{leading} is {best_text}{chance_text}, {about}{missing}."


def _open_in_words(result: Result) -> str:
    """Say what keeps a selection without a winner open."""
    if result.stopped_by == "questions":
        return "the scores raise a question"
    if result.stopped_by == "no_variation":
        return "all runs of each candidate are equal"
    if result.stopped_by != "unresolved":
        limit = "leaves too few runs to decide" if result.gave_up else "was reached"
        return f"{flag(str(result.stopped_by))} {limit}"
    means = {c.name: result.parsed_metric.sign * c.mean for c in result.candidates if c.mean is not None}
    extreme = "lowest" if result.minimise else "highest"
    facts = {
        name: f"has the {extreme} mean" if means[name] == max(means.values()) else "may be better" for name in means
    }
    left = {c.name: "was removed" if c.removed else "dropped out" for c in result.candidates}
    return ", and ".join(f"{name}, which {facts[name]}, {left[name]}" for name in result.unresolved)


def _missing_in_words(result: Result) -> str:
    """Name the candidates that left without enough scores to be compared."""
    missing = [c for c in result.candidates if c.withdrawn and c.prob_best is None]
    if not missing:
        return ""
    facts = [f"{c.name} {_fate_in_words(c)}" for c in missing]
    return f", of the {len(result.candidates) - len(missing)} that ran; {join_some(facts)}"


def _fate_in_words(candidate: CandidateResult) -> str:
    if candidate.removed:
        return "was removed"
    num_failed = len({run.run for run in candidate.failed_runs})
    return f"failed in {num_failed} of {num_failed + candidate.num_evaluations} runs"


def running_in_words(result: Result) -> str:
    leading, confidence, work_text = result.leading, result.confidence, _work_text(result)
    if leading is None or confidence is None:
        return f"The selection is running. After {work_text}, P(best) is not available yet."
    lead_text = f"is within {result.margin:g} of the best" if result.margin else "leads"
    return (
        f"The selection is running. After {work_text}, {leading} {lead_text} with probability "
        f"{probability_text(confidence)}, by {result.metric_text}."
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


def spent_in_words(result: Result) -> str:
    """State the time of all runs; empty if it is unknown."""
    return f"The runs took {duration_text(result.seconds)} across all workers." if result.seconds else ""


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


@show.register
def _(result: Result) -> TerminalLines:
    table = candidate_table(result, title=result.metric_text)
    return [table, *selection_in_words(result), f"Everything is in {result.directory}."]
