"""The paragraph to copy into a paper: a few slots, each filled with a sentence or two or empty, and what it cites."""

import re
from typing import Any, Dict, Iterator, List

from fiesta_allennlp.core.errors import MAX_SHOWN, join_some
from fiesta_allennlp.reports.formats import TEMPLATES_DIRECTORY
from fiesta_allennlp.reports.fresh_runs import (
    failed_in_words,
    new_data_in_words,
    ordinal_in_words,
    ordinal_text,
)
from fiesta_allennlp.reports.method import (
    CITATION_TEXTS,
    CORANI_KEY,
    EMPTY,
    NADEAU_KEY,
    SOFTWARE_KEY,
    Slot,
    cite,
    model_noun,
    p_best_text,
    posterior_model,
    quantity_text,
    sampling,
    stopping,
)
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.undecided import best_set_in_words
from fiesta_allennlp.reports.words import changes_in_words, own_limit_in_words
from fiesta_allennlp.selection.confirmation import Confirmation, FreshComparison
from fiesta_allennlp.selection.confirmation_texts import evidence_in_words, progress_in_words
from fiesta_allennlp.selection.texts import (
    count_text,
    interval_text,
    missed_runs_text,
    missed_text,
    names_text,
    number_text,
    probability_text,
)
from fiesta_allennlp.version import __version__

INCONCLUSIVE_TEXTS = {
    "max_evaluations": "when the limit left too few runs to decide",
    "max_hours": "when the time limit was reached",
    "interrupted": "when it was interrupted",
}


def compose_paragraph(report: Report) -> str:
    """Return the paragraph to copy; empty while there is nothing to report."""
    return " ".join(text for text, _ in fill_slots(report).values() if text)


def collect_bibtex(report: Report) -> str:
    """Return the BibTeX entries of the works that the paragraph cites."""
    bibtex_text = (TEMPLATES_DIRECTORY / "works.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    source = report.source_of_package
    bibtex_text = bibtex_text.replace("COMMIT", f", commit {source.commit}" if source.commit else "")
    bibtex_text = bibtex_text.replace("URL_LINE", f"\n  url = {{{source.url}}}," if source.url else "")
    entries_by_key = {re.split(r"[{,]", entry)[1]: entry for entry in bibtex_text.strip().split("\n\n")}
    work_keys = dict.fromkeys(key for _, keys in fill_slots(report).values() for key in keys)
    return "\n\n".join(entries_by_key[key] for key in work_keys)


def fill_slots(report: Report) -> Dict[str, Slot]:
    """Return the slots of the paragraph in their order; none while there is nothing to report, and for two candidates
    of a report."""
    result = report.result
    is_over = result.stopped_by not in (None, "failures") if report.is_selection else not report.is_pair
    if result.leading is None or result.running or not is_over:
        return {}
    return {
        "candidates": _candidates(report),
        "data": _data(report),
        "sampling": sampling(report),
        "posterior": posterior_model(report),
        "stopping": stopping(report),
        "changes": _changes(report),
        "outcome": _outcome(report),
        "failed_runs": _failed_runs(report),
        "runner_up": _runner_up(report),
        "confirmation": _confirmation(report),
        "scope": _scope(report),
    }


def _candidates(report: Report) -> Slot:
    result = report.result
    names = f" ({join_some([c.name for c in result.ranked])})" if len(result.candidates) <= MAX_SHOWN else ""
    data = ""
    if result.by_documents:
        data = " on randomly drawn labeled documents"
    elif result.sets:
        official = f" on the official {result.scored} set"
        pooled = " of all the data, official test set included" if {result.scored} & {"test"} & {*result.sets} else ""
        data = official if result.on_official_splits else f" on the {result.scored} sets of random splits{pooled}"
    elif result.scored:
        data = " on validation sets"
    commit = report.source_of_package.commit
    software = CITATION_TEXTS[SOFTWARE_KEY] + (f" (commit {commit})" if commit else "")
    noun = model_noun(report)
    text = (
        f"With {software}, we compared {len(result.candidates)} {noun}s{names} in terms of {result.metric_text}{data}."
    )
    return text, (SOFTWARE_KEY,)


def _data(report: Report) -> Slot:
    """How the runs came by their data and seeds."""
    result, has_pairs = report.result, any(comparison.paired for comparison in report.comparisons)
    if result.by_documents:
        return EMPTY
    if result.on_official_splits:
        own = "" if result.sets or not report.is_selection else "Each program loaded its data itself. "
        return f"{own}All runs of a model differed only in their random seeds.", ()
    if not report.is_selection:
        text = "All models ran on the same splits" if has_pairs else "Every run had its own split"
        is_assumed = report.read_back is not None and report.read_back.are_splits_assumed
        return f"[Check: {text}, as the table's order or seeds suggest.]" if is_assumed else f"{text}.", ()
    split = "Run k of every model used the same split" if result.splits == "shared" else "Every run used its own split"
    own = "" if result.sets else " of data that each program split itself"
    return f"{split}{own}, and every run had a new random seed.", ()


def _changes(report: Report) -> Slot:
    """What was changed on the way, and who left."""
    reasons = {"removed": "left before the end, removed by us", "failed": "dropped out after failed runs"}
    sentences: List[str] = []
    if report.selection is not None:
        changes = report.selection.meta.changes
        options = "target, the margin and the limit were" if report.strategy.budget is None else "budget was"
        unchanged = [f"The {options} set before the selection began."]
        sentences += changes_in_words(changes, report.result.words) if changes else unchanged
    for state, reason in reasons.items():
        names = [candidate.name for candidate in report.result.candidates if candidate.state == state]
        sentences += [f"{join_some(names)} {reason}."] if names else []
    num_brought, num_runs = report.result.num_brought, report.result.num_evaluations
    if num_brought:
        verb = "was" if num_brought == 1 else "were"
        sentences.append(f"{num_brought} of the {num_runs} runs {verb} made earlier, which the selection took along.")
    return " ".join(sentences), ()


def _outcome(report: Report) -> Slot:
    result, best = report.result, report.result.leader
    after = f"after {count_text(result.num_evaluations, result.words.evaluation)}"
    if result.stopped_by == "documents":
        text = f"The documents ran out {after}; {best.name} led"
    elif not result.decided:
        reason = "at the target" if not report.is_selection else INCONCLUSIVE_TEXTS.get(result.stopped_by or "", "")
        target = f" {report.strategy.confidence:g}" if not report.is_selection else ""
        text = f"The comparison was inconclusive {after}, {reason}{target}; {best.name} led"
    elif report.strategy.budget is not None:
        text = f"{after.capitalize()}, {best.name} had the best {quantity_text(report)} and was selected"
    else:
        text = f"{after.capitalize()}, {best.name} was selected"
    chance = best.prob_within_margin
    equal = "" if probability_text(chance)[0] in "<>" else "= "
    probability = "" if chance is None else f" with {p_best_text(report)} {equal}{probability_text(chance)}"
    set_text = "" if result.decided else best_set_in_words(result)
    return f"{text}{probability} ({_numbers(report, best)}).{set_text and f' {set_text}'}", ()


def _numbers(report: Report, candidate: Any) -> str:
    if report.result.by_documents:
        return f"{number_text(candidate.measure)} on {count_text(candidate.num_documents, 'document')}"
    sd = "" if candidate.sd is None else f", sd {number_text(candidate.sd, report.decimals)}"
    runs = count_text(candidate.num_evaluations, "run")
    return f"mean {number_text(candidate.mean, report.decimals)}{sd} over {runs}"


def _failed_runs(report: Report) -> Slot:
    """Runs far below their candidate's others, and those that missed `--min-score`."""
    result, side = report.result, "above" if report.result.minimise else "below"
    sentences = [
        f"{len(entry['scores'])} of {count_text(entry['num_runs'], 'run')} of {entry['candidate']} collapsed, with "
        f"scores far {side} the others."
        for entry in result.collapsed
    ]
    missed = [f"{missed_text(c)} of {c.name} ({missed_runs_text(c)})" for c in result.candidates if c.num_missed]
    if missed:
        limit = (
            f"Runs with a score {side} {result.min_score:g} count as failed and are left out of the means: "
            f"{join_some(missed)}."
        )
        sentences.append(limit)
        if report.limit_is_late and report.is_selection:
            sentences.append(f"We set this limit after the runs. {own_limit_in_words(report.own_result)}".strip())
        elif report.limit_is_late:
            sentences.append("[Say whether this limit was set before or after the runs.]")
    return " ".join(sentences), ()


def _runner_up(report: Report) -> Slot:
    result, rival = report.result, report.result.rival
    if rival is None:
        return EMPTY
    text = f"The runner-up was {rival.name} ({_numbers(report, rival)})"
    if report.confirmation is not None and rival.name in report.confirmation.plan.names:
        return f"{text}.", ()  # whose difference is that of the fresh runs
    comparison = next((c for c in report.comparisons if c.second == rival.name), None)
    if comparison is not None and comparison.interval is not None:
        splits = f" on {count_text(comparison.num_pairs, 'shared split')}" if comparison.paired else ""
        interval = interval_text(comparison.interval, report.decimals)
        is_chosen = report.is_selection and result.strategy["type"] != "non_adaptive_fb"
        chosen = " and ignores how the scores chose it" if is_chosen else ""
        text += f", with a mean difference of {number_text(comparison.mean_difference, report.decimals)}{splits}"
        sds = "" if comparison.effect is None else f", or {number_text(abs(comparison.effect), 2)} run-to-run sds"
        text += f"{sds} (95% interval {interval}, which takes the number of runs as fixed{chosen})"
    if comparison is None or comparison.prob_new_data is None:
        return f"{text}.", ()
    keys = (NADEAU_KEY, CORANI_KEY)
    new_data = (
        f"On new data of the same kind and size, {result.leading} is better with probability "
        f"{probability_text(comparison.prob_new_data)}, by the correlated t posterior, which assumes that two splits "
        "correlate by the share of the data in a test set"
    )
    return f"{text}. {cite(new_data, keys)}.", keys


def _confirmation(report: Report) -> Slot:
    """What the fresh runs of every confirmation say, on which alone the claim rests, and what none has tested."""
    comparisons = [comparison for confirmation in report.confirmations for comparison in confirmation.comparisons]
    keys = (NADEAU_KEY, CORANI_KEY) if any(c.prob_new_data is not None for c in comparisons) else ()
    sentences = [text for number in range(len(report.confirmations)) for text in _fresh_runs(report, number)]
    return " ".join(filter(None, (*sentences, *report.deleted_confirmation_sentences, _untested(report)))), keys


def _fresh_runs(report: Report, number: int) -> Iterator[str]:
    """What the fresh runs of one confirmation say, or how far they are."""
    confirmation = report.confirmations[number]
    plan = confirmation.plan
    if not confirmation.is_over:
        rivals = names_text([rival.name for rival in plan.rivals])
        progress = progress_in_words(confirmation)
        yield f"A confirmation of {plan.winner} against {rivals} has begun: {progress}, so it has no verdict yet."
        return
    new = "new splits and seeds" if plan.is_paired or not report.result.on_official_splits else "new seeds"
    aim = f"In the {ordinal_text(number + 1)} confirmation" if number else "To confirm this outcome"
    yield f"{aim}, {names_text(plan.names)} ran {plan.num_runs} times each with {new}."
    if not number:
        yield "This number was fixed beforehand and these runs chose nothing, so any claim rests on them alone."
    for comparison in confirmation.comparisons:
        yield _claim(confirmation, comparison)
    yield from (ordinal_in_words(plan, rival) for rival in plan.rivals)
    for comparison in confirmation.comparisons:
        if text := new_data_in_words(confirmation, comparison):
            yield f"{cite(text.rstrip('.'), (NADEAU_KEY, CORANI_KEY))}."
    yield from failed_in_words(confirmation)


def _untested(report: Report) -> str:
    """Name the rivals of the leader that have no fresh runs to compare with."""
    leading = str(report.result.leading)
    pairs = {pair for confirmation in report.confirmations if confirmation.is_over for pair in confirmation.plan.pairs}
    rivals = [c.name for c in report.result.ranked if c.name != leading and frozenset({leading, c.name}) not in pairs]
    if not pairs or not rivals:
        return ""
    return f"No fresh runs test whether {leading} is better than {names_text(rivals)}."


def _claim(confirmation: Confirmation, comparison: FreshComparison) -> str:
    """State the verdict about one rival as a claim, or that there is none."""
    winner, rival = confirmation.plan.winner, comparison.rival
    if comparison.difference is None:
        return f"Too few of them have a score to compare {winner} with {rival}."
    size = number_text(abs(comparison.difference))
    splits = f" on {count_text(comparison.num_pairs, 'shared split')}" if comparison.num_pairs else ""
    evidence = f"{splits} ({evidence_in_words(confirmation, comparison)})"
    return {
        "confirmed": f"They confirm that {winner} is better than {rival} by {size}{evidence}.",
        "contradicted": f"They contradict it: {rival} is better than {winner} by {size}{evidence}.",
        "not confirmed": f"They do not confirm that {winner} is better than {rival}: the mean difference is "
        f"{number_text(comparison.difference, sign='+')}{evidence}.",
    }[comparison.verdict]


def _scope(report: Report) -> Slot:
    result = report.result
    if result.by_documents:
        text = "P(best) refers to further documents of the same kind."
    elif result.on_official_splits:
        text = "P(best) refers to new seeds on this split, not to new data."
    else:
        text = "P(best) refers to new splits and seeds of the same data, not to new data."
    return " ".join([text, *report.legend]), ()
