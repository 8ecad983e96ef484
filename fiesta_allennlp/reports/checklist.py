"""The checklist of a report: what you need to repeat what was read, walked from the settings and the result."""

import shlex
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from fiesta_allennlp.candidates.candidate_types import stored_type_of
from fiesta_allennlp.core.errors import escape_invisible, join_some
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.settings.choice_settings import ChoiceSettings
from fiesta_allennlp.core.settings.options import command_words, declared_options, flag
from fiesta_allennlp.core.texts import duration_text
from fiesta_allennlp.reports.latex_and_html import join_pairs
from fiesta_allennlp.reports.stored_selection import StoredSelection
from fiesta_allennlp.running.machine import origin_here

DATA_TEXTS = {
    "official": "sizes of the files",
    "targets": "every split",
    "group_by": "instances that stay together have the same",
    "num_groups": "groups",
    "data": "SHA-256 of the files",
    "fingerprint": "SHA-256 of labels and groups",
}
"""The facts about data, and what they are called."""

Row = Tuple[str, str]
"""A key and its value."""

Checklist = Tuple[Row, ...]

RESULT_FACTS = ("metric", "strategy", "belief", "target", "margin", "min_score", "splits", "score", "task", "documents")
"""The fields of a result that have a row, where it has them."""

NOT_LISTED = (
    "candidates",
    "systems",
    "seed",
    *RESULT_FACTS,
    *(name for name, _ in declared_options(ChoiceSettings)),
)
"""Settings that have a row of their own, or no effect on a score."""


def build_checklist(report: Any) -> Checklist:
    """Return the rows of a `Report`."""
    rows = _rows_of_table(report) if report.selection is None else _rows_of_selection(report)
    return tuple((escape_invisible(key), escape_invisible(value)) for key, value in rows if value)


def _rows_of_table(report: Any) -> Iterator[Row]:
    result = report.result
    files = [f"{Path(file).name}, SHA-256 {file_digest(Path(file))}" for file in report.table_files]
    yield "scores", join_some(files, "; ") or "rows from Python or a pipe"
    yield "candidates", join_pairs({c.name: c.num_evaluations for c in result.candidates})
    yield from _result_facts(result)
    yield "made with", join_pairs(origin_here().software)


def _rows_of_selection(report: Any) -> Iterator[Row]:
    selection, settings, history = report.selection, report.settings, report.history
    meta = selection.meta
    yield "candidates", "; ".join(f"{c.name}: {c.source}" for c in selection.candidates)
    yield from _result_facts(report.result)
    for name, _ in declared_options(settings):
        if name not in NOT_LISTED:
            yield flag(name), _value_text(getattr(settings, name))
    yield "master seed", str(meta.seed)
    yield from _data(selection.candidates[0].facts.get("pool", {}))  # the same of all candidates
    yield "data: fingerprint", meta.documents or ""
    yield "runs made before", _value_text(meta.brought_facts)
    yield from _group_machines(report.result.machines)
    for number, environment in enumerate(meta.environments):
        later = f" after resumption {number}" if number else ""
        for name, digest in environment.get("code", {}).items():
            yield f"code of {name}{later}", f"SHA-256 {digest}"
    starts = sorted(run.started_at for run in history.evaluations if run.started_at)
    yield "finished", f"{len(history.evaluations)}{f', from {starts[0]} to {starts[-1]}' if starts else ''}"
    yield "failed", str(len(history.failures))
    seconds = [duration_text(sum(run.seconds for run in runs)) for runs in (history.evaluations, history.failures)]
    yield "time of all workers", f"{seconds[0]}, and {seconds[1]} of what failed"
    yield "wall-clock time", duration_text(meta.working_seconds)
    yield "command to repeat it all", build_repeat_command(settings, meta)
    yield from _list_run_commands(selection, settings)


def _result_facts(result: Any) -> Iterator[Row]:
    for name in RESULT_FACTS:
        yield name.replace("_", " "), _value_text(getattr(result, name, None))


def _data(pool: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the facts about the data, as the store has them."""
    if pool and not pool["official"]:
        yield "data", "not recorded, because each program loads its own"
        return
    for name, text in DATA_TEXTS.items():
        yield f"data: {text}", _value_text(pool.get(name))


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


def _group_machines(machines: Any) -> Iterator[Row]:
    """Yield the software and the hardware of each kind of machine, with the names of its machines if there are
    several kinds."""
    for heading, text_of in (("versions", _software_text), ("hardware", _hardware_text)):
        groups: Dict[str, List[str]] = {}
        for machine in machines:
            groups.setdefault(text_of(machine.origin), []).append(str(machine.origin.machine))
        for text, names in groups.items():
            yield f"{heading} of {join_some(dict.fromkeys(names))}" if len(groups) > 1 else heading, text


def _software_text(origin: Origin) -> str:
    return join_pairs(origin.software)


def _hardware_text(origin: Origin) -> str:
    machine = f"{origin.processor}, {origin.cores} cores, {origin.memory_gib:g} GiB of memory"
    return f"{machine}, {origin.gpu_names or 'no GPU'}; {origin.platform}"


def build_repeat_command(settings: Any, meta: Any) -> str:
    """Return the command that makes the same selection: options that are not defaults, the seed, and the table of runs
    that were made before."""
    command_name, positional = ("documents", "systems") if meta.kind == "documents" else ("select", "candidates")
    arguments = command_words(settings, positional=positional, seed=meta.seed)
    num_positional = len(getattr(settings, positional))
    scores = ["--scores", meta.brought_facts["file"]] if meta.brought_facts else []
    arguments[num_positional:num_positional] = ["-s", "NEW", *scores]
    return shlex.join(["python", "-m", "fiesta_allennlp", command_name, *arguments])


def _list_run_commands(selection: StoredSelection, settings: Any) -> Iterator[Row]:
    """Yield the commands that make one run again, each with its candidates if there are several."""
    names_by_command: Dict[str, List[str]] = {}
    for candidate in selection.candidates if selection.preparations else ():
        command = stored_type_of(candidate.config).repeat_command(settings.include_package)
        names_by_command.setdefault(command, []).append(candidate.name)
    for command, names in names_by_command.items():
        yield f"command to repeat one run{f' of {join_some(names)}' if len(names_by_command) > 1 else ''}", command
