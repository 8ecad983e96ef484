"""The checklist of a report: what you need to repeat what was read, walked from the settings and the result."""

import shlex
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

from fiesta_allennlp.candidates.candidate_types import stored_type_of
from fiesta_allennlp.core.errors import escape_invisible, join_some
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.settings.choice_settings import ChoiceSettings
from fiesta_allennlp.core.settings.options import command_words, declared_options, flag
from fiesta_allennlp.core.texts import duration_text
from fiesta_allennlp.reports.latex_and_html import join_pairs
from fiesta_allennlp.running.machine import origin_here
from fiesta_allennlp.selecting.store import Meta

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


def build_checklist(report: Any) -> Checklist:
    """Return the rows of a `Report`."""
    rows = _rows_of_table(report) if report.meta is None else _rows_of_selection(report)
    return tuple((escape_invisible(key), escape_invisible(text)) for key, value in rows if (text := _value_text(value)))


def _rows_of_table(report: Any) -> Iterator[Tuple[str, Any]]:
    result = report.result
    files = [f"{Path(file).name}, SHA-256 {file_digest(Path(file))}" for file in report.table_files]
    yield "scores", join_some(files, "; ") or "rows from Python or a pipe"
    yield "candidates", join_pairs({candidate.name: candidate.num_evaluations for candidate in result.candidates})
    yield from _result_facts(result)
    yield "made with", join_pairs(origin_here().software)


def _rows_of_selection(report: Any) -> Iterator[Tuple[str, Any]]:
    meta, settings, history = report.meta, report.settings, report.history
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
    origins = [machine.origin for machine in report.result.machines]
    yield from _grouped("versions", ((str(origin.machine), join_pairs(origin.software)) for origin in origins))
    yield from _grouped("hardware", ((str(origin.machine), _hardware_text(origin)) for origin in origins))
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
        types = ((candidate.name, stored_type_of(candidate.config)) for candidate in report.stored_candidates)
        commands = ((name, kind.repeat_command(settings.include_package)) for name, kind in types)
        yield from _grouped("command to repeat one run", commands)


def _result_facts(result: Any) -> Iterator[Tuple[str, Any]]:
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


def _grouped(heading: str, texts: Iterable[Tuple[str, str]]) -> Iterator[Tuple[str, str]]:
    """Yield each text once, with the names that it belongs to if there are several texts."""
    names_by_text: Dict[str, List[str]] = {}
    for name, text in texts:
        names_by_text.setdefault(text, []).append(name)
    for text, names in names_by_text.items():
        yield f"{heading} of {join_some(dict.fromkeys(names))}" if len(names_by_text) > 1 else heading, text


def _hardware_text(origin: Origin) -> str:
    machine = f"{origin.processor}, {origin.cores} cores, {origin.memory_gib:g} GiB of memory"
    return f"{machine}, {origin.gpu_names or 'no GPU'}; {origin.platform}"


def _repeat_command(settings: Any, meta: Meta) -> str:
    """Return the command that makes the same selection: options that are not defaults, the seed, and the table of runs
    that were made before."""
    command_name, positional = ("documents", "systems") if meta.kind == "documents" else ("select", "candidates")
    arguments = command_words(settings, positional=positional, seed=meta.seed)
    num_positional = len(getattr(settings, positional))
    scores = ["--scores", meta.brought_facts["file"]] if meta.brought_facts else []
    arguments[num_positional:num_positional] = ["-s", "NEW", *scores]
    return shlex.join(["python", "-m", "fiesta_allennlp", command_name, *arguments])
