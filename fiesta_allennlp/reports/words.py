"""Describes the result of a selection, of a table of scores, or of two candidates in sentences, some by templates."""

import json
import re
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Collection, Dict, Iterator, List, Mapping, Optional, Tuple

from fiesta_allennlp.choosing.beliefs import Belief
from fiesta_allennlp.choosing.forecast import TimeForecast
from fiesta_allennlp.core.errors import MAX_SHOWN, escape_invisible, join_some
from fiesta_allennlp.core.options import flag
from fiesta_allennlp.core.texts import chance_text, count_text, duration_text, names_text, number_text, probability_text
from fiesta_allennlp.selecting.provenance import changed_code
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, missed_text
from fiesta_allennlp.selecting.results.candidate_table import TerminalLines, candidate_table, show
from fiesta_allennlp.selecting.results.facts import NOTES, STATE, fact_sentences
from fiesta_allennlp.selecting.results.result import Result, Words
from fiesta_allennlp.selecting.store import Meta

if TYPE_CHECKING:
    from jinja2 import Environment

MISSING_TEXT = "-"

TEMPLATES_DIRECTORY = Path(__file__).parent / "templates"

VALIDATION_CAUTION = (
    "A run may choose its epoch or settings on the validation set, so scores on unseen data tend to be worse."
)


def selection_in_words(result: Any) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it spent, sentence by sentence."""
    spent = f"The runs took {duration_text(result.seconds)} across all workers." if result.seconds else ""
    if result.by_documents:
        queries, verb = result.num_queries, "was" if result.num_queries == 1 else "were"
        made = f"{count_text(queries or 0, 'query')} {verb} made"
        spent = "" if queries is None else f"{made}, at a total cost of {result.cost:g}."
    return (*decision_in_words(result), *filter(None, [spent]))


def decision_in_words(result: Result, *, pair: str = "") -> Tuple[str, ...]:
    """Describe the decision or the state of a selection or a table, and what it rests on. `pair` is the difference
    between two candidates, if the result is about these alone."""
    if pair:
        rival = next((c.name for c in result.candidates if c.name != result.leading), "")
        chance = f"with probability {probability_text(result.confidence)}"
        lead = f"{result.leading} is better than {rival} {chance}, by {result.metric_text}."
        sentences = ["" if result.confidence is None else lead, pair]
    else:
        sentences = [" ".join((state_in_words(result), *fact_sentences(result, STATE)))]
    scored_on = ""
    if result.sets is not None:
        scored_on = describe_scored_data(result.sets, is_official=result.on_official_splits, scored=result.score)
    return tuple(filter(None, (*sentences, *fact_sentences(result, NOTES), scored_on)))


def state_in_words(result: Result) -> str:
    """State the decision about a selection or a table, or how far it is."""
    after, leading, chance = f"after {_work_text(result)}", result.leading, probability_text(result.confidence)
    if result.running:
        state = "The selection is running. A" + after[1:]
        if leading is None or result.confidence is None:
            return f"{state}, P(best) is not available yet."
        lead_text = f"is within {result.margin:g} of the best" if result.margin else "leads"
        return f"{state}, {leading} {lead_text} with probability {chance}, by {result.metric_text}."
    if result.stopped_by == "interrupted":
        return f"Interrupted {after}; nothing that finished is lost."
    if result.stopped_by == "failures":
        survivor = next((f"only {candidate.name} is" for candidate in result.active), "no candidate is")
        return f"No comparison: {after}, {survivor} left. The reasons are listed for each candidate."
    if result.stopped_by is not None:
        return verdict_in_words(result, after)
    if result.confidence is None:
        belief = result.belief["type"]
        needed = count_text(Belief.by_name(belief).min_evaluations, "score")
        return f"P(best) is not available {after}: the posterior {belief} needs {needed} from every candidate."
    lead_text = f"{leading} leads{result.average_text} with P(best) {chance}"
    return f"{lead_text}, by {result.metric_text}, {after}. It is not decided."


def _work_text(result: Result) -> str:
    """Count the work, as in `4 runs of 3 candidates and 1 failed run`."""
    words, number = result.words, result.num_evaluations
    noun = f"answered {words.evaluation_noun(number)}" if result.by_documents else words.evaluation_noun(number)
    text = f"{number} {noun} of {len(result.candidates)} {words.candidates}"
    text += f" and {count_text(result.num_failures, 'failed run')}" if result.num_failures else ""
    return f"{text}, and no document is left" if result.stopped_by == "documents" else text


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
    missing = [c for c in result.candidates if c.withdrawn and c.prob_best is None]
    if missing:
        fates = [_fate_in_words(candidate) for candidate in missing]
        about += f", of the {len(result.candidates) - len(missing)} that ran; {join_some(fates)}"
    if not result.is_decided:
        chance_text = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        return f"{leading} leads{result.average_text}{chance_text}, {about}."
    best_text = f"within {result.margin:g} of the best" if result.margin else "the best"
    chance_text = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if result.margin and result.leader is not None and confidence is not None:
        chance_text += f" (P(best) {probability_text(result.leader.prob_best)})"
    return f"{leading} is {best_text}{result.average_text}{chance_text}, {about}."


def _fate_in_words(candidate: CandidateResult) -> str:
    """State why a candidate left without enough scores to be compared."""
    if candidate.removed:
        return f"{candidate.name} was removed"
    num_failed = len({run.run for run in candidate.failed_runs})
    return f"{candidate.name} failed in {num_failed} of {num_failed + candidate.num_evaluations} runs"


def _open_in_words(result: Result) -> str:
    """Say what keeps a selection without a winner open."""
    if result.stopped_by == "questions":
        return "the scores raise a question"
    if result.stopped_by == "no_variation":
        return "all runs of each candidate are equal"
    if result.stopped_by == "documents":
        return f"P(best) has not reached {result.target:g}"
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


def failures_in_words(result: Result) -> Iterator[str]:
    """Name every failure, by reason, and every candidate that takes no part."""
    for candidate in result.candidates:
        runs_by_reason: Dict[str, List[str]] = {}
        for failed_run in candidate.failed_runs:
            if failed_run.kind != "score":
                place = f"on {failed_run.machine}: " if failed_run.machine and len(result.machines) > 1 else ""
                reason = f"{place}{failed_run.kind}: {failed_run.error}"
                runs_by_reason.setdefault(reason, []).append(failed_run.run)
        num_rest = candidate.failures - candidate.num_missed
        for reason, run_names in list(runs_by_reason.items())[:MAX_SHOWN]:
            yield f"failed: {join_some(run_names)} {reason}"
            num_rest -= len(run_names)
        if num_rest:
            yield f"failed: {count_text(num_rest, 'more run')} of {candidate.name}"
        if candidate.num_missed:
            missed = f"{missed_text(candidate)} runs missed --min-score and are not in its mean"
            yield f"{candidate.name}: {missed}: {missed_runs_text(candidate)}"
        if candidate.withdrawn:
            status_text = "removed" if candidate.removed else "dropped out"
            yield f"{status_text}: {candidate.name}: {_withdrawn_text(candidate)}"


def _withdrawn_text(candidate: CandidateResult) -> str:
    """Give the reason for which a candidate does not take part."""
    num_missed, num_runs = candidate.num_missed, candidate.num_missed + candidate.num_evaluations
    failures = count_text(candidate.num_counted_failures, "failure")
    return {
        None: "you removed it with --allow removed; its runs are kept but do not count",
        "unfit": "its runs lack memory or another resource that the runs of other candidates have",
        "min_score": f"{num_missed} of {num_runs} runs missed --min-score",
        "max_failures": f"{failures}, as many as --max-failures allows",
    }[candidate.failed_because]


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
    share = f"{result.single_runs_wrong:.0%} of cases"
    return f"One run of each would have named another {result.words.candidate} in {share}."


def changes_in_words(meta: Optional[Meta], words: Words) -> Iterator[str]:
    """Describe the changes of options that choose runs or stop the selection, and of code, between its sessions."""
    for change in meta.changes if meta is not None else ():
        after = f"after {change['num_done']} {words.evaluation_noun(change['num_done'])}"
        values = f"from {_option_text(change, 'before')} to {_option_text(change, 'now')}"
        yield f"{flag(change['option'])} was changed {values} {after}."
    sessions = () if meta is None else meta.environments
    if names := {name for pair in pairwise(sessions) for name in changed_code(pair[:1], pair[1])}:
        yield f"The code of {join_some(sorted(names))} was changed between sessions."


def _option_text(change: Mapping[str, Any], key: str) -> str:
    value = change[key]
    if value is None:
        return "its default" if change["option"] == "max_evaluations" else "none"
    return value["type"] if isinstance(value, dict) and list(value) == ["type"] else json.dumps(value)


@show.register
def _(result: Result) -> TerminalLines:
    table = candidate_table(result, title=result.metric_text)
    return [table, *selection_in_words(result), f"Everything is in {result.directory}."]


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


def missed_runs_text(candidate: Any) -> str:
    """Name the runs of a `CandidateResult` that missed `--min-score`."""
    return join_some([failed_run.run for failed_run in candidate.failed_runs if failed_run.kind == "score"])


def time_forecast_text(forecast: TimeForecast) -> str:
    """Return what can be decided in the hours of `--max-hours`, without a full stop."""
    times = forecast.low, forecast.median, forecast.high
    low, median, high = (f"{hours:.{0 if hours >= 10 else 1}f}" for hours in times)
    chance = chance_text(forecast.prob_decided)
    return (
        f"Time for {count_text(forecast.num_runs, 'run')} in {forecast.max_hours:g} h: decided by then with "
        f"probability {chance}; expected after {median} h (5-95%: {low} to {high} h)"
    )


def share_text(value: Optional[float]) -> str:
    return MISSING_TEXT if value is None else f"{value:.1%}"


def join_pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def render_paragraphs(template: str, **values: Any) -> List[str]:
    """Fill in a file of `templates`, and return each paragraph as one line. Invisible characters in values become
    escapes."""
    environment = template_environment().overlay(finalize=lambda value: escape_invisible(str(value)))
    paragraphs = re.split(r"\n{2,}", environment.get_template(template).render(**values).strip())
    return [" ".join(paragraph.split("\n")) for paragraph in paragraphs]


@lru_cache(maxsize=1)
def template_environment() -> "Environment":
    """Return what fills in the files of `templates`. Those that end with `.html.j2` escape every value."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_DIRECTORY),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(join=join_pairs)
    environment.filters.update(number=number_text, probability=probability_text)
    environment.filters.update(counted=count_text, duration=duration_text, share=share_text)
    return environment
