"""What a paper copies from a report: the paragraph, the appendix with its checklist, and the works that they cite."""

import re
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterator, Mapping, Tuple

from fiesta_allennlp.candidates.candidate_types import stored_type_of
from fiesta_allennlp.choosing.stopping_rules import StoppingRule
from fiesta_allennlp.core.choice_settings import ChoiceSettings
from fiesta_allennlp.core.errors import MAX_SHOWN, escape_invisible, join_some
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.options import command_words, declared_options, flag
from fiesta_allennlp.core.texts import count_text, duration_text, interval_text, number_text, probability_text
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.words import TEMPLATES_DIRECTORY, changes_in_words, join_pairs, min_score_in_words
from fiesta_allennlp.running.machine import origin_here
from fiesta_allennlp.selecting.provenance import package_source
from fiesta_allennlp.selecting.results.facts import describe_errors
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import Meta
from fiesta_allennlp.version import __version__

FIESTA_KEY, SOFTWARE_KEY = "moss-etal-2019-fiesta", "fiesta-allennlp"
RUSSO_KEY, JOURDAN_KEY = "russo-2016-simple", "jourdan-etal-2022-top"
KARNIN_KEY, HAFFARI_KEY = "karnin-etal-2013-almost", "haffari-etal-2017-efficient"

CITATION_TEXTS = {
    FIESTA_KEY: "Moss et al., 2019",
    RUSSO_KEY: "Russo, 2016",
    JOURDAN_KEY: "Jourdan et al., 2022",
    KARNIN_KEY: "Karnin et al., 2013",
    HAFFARI_KEY: "Haffari et al., 2017",
    SOFTWARE_KEY: "this software",
}
"""How a text refers to each work of `works.bib`, by the key of its entry."""

METHOD_TEXTS: Mapping[str, Tuple[str, Tuple[str, ...]]] = {
    "top_two": ("top-two sampling", (RUSSO_KEY, JOURDAN_KEY)),
    "ttts": ("top-two Thompson sampling", (RUSSO_KEY,)),
    "thompson": ("Thompson sampling", ()),
    "bts": ("batch Thompson sampling", ()),
    "sequential_halving": ("sequential halving", (KARNIN_KEY,)),
    "non_adaptive_fc": ("equal allocation", ()),
    "non_adaptive_fb": ("equal allocation", ()),
    "student_t": ("independent normal models of the scores", (FIESTA_KEY,)),
    "logit_student_t": ("independent normal models of the logits", (FIESTA_KEY,)),
    "dirichlet_f_measure": ("a Dirichlet model of the counts behind the F-measure", (HAFFARI_KEY,)),
    "bayesian": ("the posterior probability alone", (FIESTA_KEY,)),
}
"""By registered name: how a text names a part of the method, and the works that it comes from. A part without an entry
has its registered name, and comes from this software."""


def compose_paragraph(report: Report) -> str:
    """Return the sentences to copy: the comparison, its outcome, what limits it, and what fresh runs say. Empty while
    there is nothing to report, and for two candidates of a report."""
    result = report.result
    is_over = result.stopped_by not in (None, "failures") if report.is_selection else not report.is_pair
    if result.leading is None or result.running or not is_over:
        return ""
    claims = report.confirmation_sentences or ("No fresh runs confirm this difference.",)
    return " ".join([_comparison(report), _outcome(report), *_limits(report), *claims])


def compose_appendix(report: Report) -> Iterator[str]:
    """Yield the rest as sentences: the method, what was changed or left out on the way, and limits."""
    result, strategy = report.result, report.strategy
    method = f"P(best) comes from {_cite(result.belief['type'])}"
    if report.is_selection:
        starts = count_text(strategy.num_starts, result.words.evaluation)
        stop = result.strategy.get("stop", {"type": str(StoppingRule.default)})["type"]
        end = f"; the end by {_cite(stop)}" if strategy.budget is None else ""
        method = f"Every {result.words.model} began with {starts}; {method}{end}"
    yield f"{method}."
    if report.meta is not None:
        unchanged = ["The options that decide were set before the selection began."]
        yield from [*changes_in_words(report.meta, result.words)] or unchanged
    yield from filter(None, [min_score_in_words(result)])
    if report.comparisons and report.is_selection:
        yield "The interval takes the number of runs as fixed, and ignores how the scores chose them."
    if result.leader and result.leader.prob_best is not None:
        yield f"P(best) is not an error rate. It refers to {_data(result)[1]}."
    yield from report.legend


def _comparison(report: Report) -> str:
    result, strategy = report.result, report.strategy
    names = f" ({join_some([c.name for c in result.ranked])})" if len(result.candidates) <= MAX_SHOWN else ""
    subject = f"{len(result.candidates)} {result.words.model}s{names} by {result.metric_text}{_data(result)[0]}"
    if not report.is_selection:
        return f"We compared {subject}, over {count_text(result.num_evaluations, 'run')} [say how they were chosen]."
    quantity = f"P(within {result.margin:g} of the best)" if result.margin else "P(best)"
    end = f"until {quantity} reaches {strategy.confidence}"
    if strategy.budget is not None:
        end = f"with a budget of {strategy.budget} {result.words.evaluations}"
    rule = _cite(result.strategy["type"])
    return f"With fiesta-allennlp {__version__}, we compared {subject}, by {rule}, {end}."


def _outcome(report: Report) -> str:
    result, best, rival = report.result, report.result.leader, report.result.rival
    after = f"After {count_text(result.num_evaluations, result.words.evaluation)}"
    verb = "was selected" if result.decided else "led, and the comparison was open,"
    verb += f" as within {result.margin:g} of the best" if result.decided and result.margin else ""
    chance = probability_text(best.prob_within_margin)
    probability = "" if best.prob_within_margin is None else f" with probability {chance}"
    text = f"{after}, {best.name} {verb}{probability} ({_numbers(best, result)})"
    if rival is not None:
        text += f"; the runner-up was {rival.name} ({_numbers(rival, result)}"
        comparison = next((c for c in report.comparisons if c.second == rival.name and c.interval is not None), None)
        if comparison is not None:
            difference = number_text(comparison.mean_difference, result.decimals, sign="+")
            interval = interval_text(comparison.interval, result.decimals)
            text += f"; mean difference {difference}, 95% interval {interval}"
        text += ")"
    if result.single_runs_wrong is not None:
        share = f"{result.single_runs_wrong:.0%}"
        text += f"; one run of each would have named another {result.words.model} in {share} of cases"
    return f"{text}."


def _limits(report: Report) -> Iterator[str]:
    """Name the models that were left out, the runs that were made before, and the bias and the measured error of the
    outcome."""
    result = report.result
    yield from changes_in_words(report.meta, result.words)
    for candidate in result.ranked:
        if candidate.withdrawn:
            yield f"{candidate.name} {'was removed by us' if candidate.removed else 'dropped out'}."
    brought_facts = report.meta.brought_facts if report.meta is not None else None
    if left_out := (brought_facts or {}).get("left_out"):
        yield f"Of the table of earlier runs, {join_some(left_out)} did not take part."
    if result.num_brought:
        yield f"{result.num_brought} of the {count_text(result.num_evaluations, 'run')} were made earlier."
    if report.is_selection and result.rival is not None and report.strategy.budget is None:
        yield "The difference tends to be too large, because the scores decided when to stop."
    yield from describe_errors(result)


def _data(result: Result) -> Tuple[str, str]:
    """Return the data that the scores are of, and what P(best) refers to."""
    if result.by_documents:
        return " on randomly drawn labeled documents", "further documents of the same kind"
    if result.on_official_splits:
        return f" on the official {result.scored} set" if result.sets else "", "new seeds on this split"
    is_pooled = result.scored == "test" and "test" in (result.sets or ())
    pooled = " of all the data, official test set included" if is_pooled else ""
    scored = f" on the {result.scored} sets of random splits{pooled}" if result.sets else ""
    return scored, "new splits and seeds of the same data, not to new data"


def _numbers(candidate: Any, result: Result) -> str:
    """Return the scores of a candidate in a few words."""
    if result.by_documents:
        return f"{number_text(candidate.measure)} on {count_text(candidate.num_documents, 'document')}"
    sd = "" if candidate.sd is None else f", sd {number_text(candidate.sd, result.decimals)}"
    return f"mean {number_text(candidate.mean, result.decimals)}{sd}, {count_text(candidate.num_evaluations, 'run')}"


def _cite(name: str) -> str:
    """Name a part of the method, with its works in parentheses."""
    text, keys = METHOD_TEXTS.get(name, (name, ()))
    return f"{text} ({'; '.join(CITATION_TEXTS[key] for key in keys)})" if keys else text


def collect_bibtex(report: Report) -> str:
    """Return the BibTeX entries of the software, the FIESTA paper, and the works behind the parts of the method."""
    text = (TEMPLATES_DIRECTORY / "works.bib").read_text(encoding="utf-8").replace("VERSION", __version__)
    source = package_source() if report.meta is None else report.meta.source
    text = text.replace("COMMIT", f", commit {source.commit}" if source.commit else "")
    text = text.replace("URL_LINE", f"\n  url = {{{source.url}}}," if source.url else "")
    entries = {re.split(r"[{,]", entry)[1]: entry for entry in text.strip().split("\n\n")}
    strategy = report.result.strategy
    parts = strategy.get("type", ""), report.result.belief["type"], strategy.get("stop", {}).get("type", "")
    keys = [SOFTWARE_KEY, FIESTA_KEY, *(key for name in parts for key in METHOD_TEXTS.get(name, ("", ()))[1])]
    return "\n\n".join(entries[key] for key in dict.fromkeys(keys))


DATA_TEXTS = {
    "official": "sizes of the files",
    "targets": "every split",
    "group_by": "instances that stay together have the same",
    "num_groups": "groups",
    "data": "SHA-256 of the files",
    "fingerprint": "SHA-256 of labels and groups",
}
"""The facts about data, and what they are called."""

Checklist = Tuple[Tuple[str, str], ...]
"""Pairs of a key and its value."""

RESULT_FACTS = ("metric", "strategy", "belief", "target", "margin", "min_score", "splits", "score", "task", "documents")
"""The fields of a result that have a row, where it has them."""

NOT_LISTED = {"candidates", "systems", "seed", *RESULT_FACTS, *dict(declared_options(ChoiceSettings))}
"""Settings that have a row of their own, or no effect on a score."""


def build_checklist(report: Report) -> Checklist:
    """Return what you need to repeat what was read, walked from the settings and the result. Empty for rows that were
    not read here."""
    report = report.whole or report
    if report.meta is None and report.read_back is None:
        return ()
    rows = _rows_of_table(report) if report.meta is None else _rows_of_selection(report, report.meta)
    return tuple((escape_invisible(key), escape_invisible(text)) for key, value in rows if (text := _value_text(value)))


def _rows_of_table(report: Report) -> Iterator[Tuple[str, Any]]:
    result = report.result
    files = [f"{Path(file).name}, SHA-256 {file_digest(Path(file))}" for file in report.table_files]
    yield "scores", join_some(files, "; ") or "rows from Python or a pipe"
    yield "candidates", join_pairs({candidate.name: candidate.num_evaluations for candidate in result.candidates})
    yield from _result_facts(result)
    yield "made with", join_pairs(origin_here().software)


def _rows_of_selection(report: Report, meta: Meta) -> Iterator[Tuple[str, Any]]:
    settings, history = report.settings, report.history
    yield "candidates", "; ".join(f"{c.name}: {c.source}" for c in report.stored_candidates)
    yield from _result_facts(report.result)
    for name, _ in declared_options(settings):
        if name not in NOT_LISTED:
            yield flag(name), getattr(settings, name)
    yield "master seed", str(meta.seed)
    pool = report.stored_candidates[0].facts.get("pool", {})  # the same of all candidates
    if pool and not pool["official"]:
        yield "data", "not recorded, because each program loads its own"
    else:
        yield from ((f"data: {text}", pool.get(name)) for name, text in DATA_TEXTS.items())
    yield "data: fingerprint", meta.documents
    yield "runs made before", meta.brought_facts
    for machine in report.result.machines:
        origin, runs = machine.origin, f"{machine.num_evaluations} finished and {machine.num_failures} failed runs"
        processor = f"{origin.processor}, {origin.cores} cores, {origin.memory_gib:g} GiB of memory"
        hardware = f"{processor}, {origin.gpu_names or 'no GPU'}; {origin.platform}"
        yield f"machine {origin.machine}", f"{hardware}; {join_pairs(origin.software)}; {runs}"
    for number, environment in enumerate(meta.environments):
        later = f" after resumption {number}" if number else ""
        yield from ((f"code of {name}{later}", f"SHA-256 {code}") for name, code in environment.get("code", {}).items())
    starts = sorted(run.started_at for run in history.evaluations if run.started_at)
    yield "finished", f"{len(history.evaluations)}{f', from {starts[0]} to {starts[-1]}' if starts else ''}"
    yield "failed", str(len(history.failures))
    seconds = [duration_text(sum(run.seconds for run in runs)) for runs in (history.evaluations, history.failures)]
    yield "time of all workers", f"{seconds[0]}, and {seconds[1]} of what failed"
    yield "wall-clock time", duration_text(meta.working_seconds)
    yield "command to repeat it all", _repeat_command(settings, meta)
    if meta.kind != "documents":
        names_by_kind = defaultdict(list)
        for candidate in report.stored_candidates:
            names_by_kind[stored_type_of(candidate.config)].append(candidate.name)
        for kind, names in names_by_kind.items():
            whose = f" of {join_some(names)}" if len(names_by_kind) > 1 else ""
            yield f"command to repeat one run{whose}", kind.repeat_command(settings.include_package)


def _result_facts(result: Result) -> Iterator[Tuple[str, Any]]:
    return ((name.replace("_", " "), getattr(result, name, None)) for name in RESULT_FACTS)


def _value_text(value: Any) -> str:
    """Format a setting or a fact; empty if there is nothing to say."""
    if value in (None, (), [], {}, "", False):
        return ""
    if isinstance(value, Mapping) and "type" in value:
        options = {key: child for key, child in value.items() if key not in ("type", "belief")}
        return f"{value['type']} ({_value_text(options) or 'defaults'})"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value_text(child) or child}" for key, child in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "yes" if value is True else f"{value:g}" if isinstance(value, float) else str(value)


def _repeat_command(settings: Any, meta: Meta) -> str:
    """Return the command that makes the same selection: options that are not defaults, the seed, and the table of runs
    that were made before."""
    command_name, positional = ("documents", "systems") if meta.kind == "documents" else ("select", "candidates")
    arguments = command_words(settings, positional=positional, seed=meta.seed)
    num_positional = len(getattr(settings, positional))
    scores = ["--scores", meta.brought_facts["file"]] if meta.brought_facts else []
    arguments[num_positional:num_positional] = ["-s", "NEW", *scores]
    return shlex.join(["python", "-m", "fiesta_allennlp", command_name, *arguments])
