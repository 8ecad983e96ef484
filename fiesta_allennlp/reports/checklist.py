"""The checklist of a report: what you need to repeat what was read."""

import shlex
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Tuple

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.isolation.machine import origin_here
from fiesta_allennlp.reports.formats import join_pairs, render_rows
from fiesta_allennlp.reports.stored_selection import StoredSelection
from fiesta_allennlp.selection.brought import BROUGHT_CAUTION
from fiesta_allennlp.selection.database import translated_store_errors
from fiesta_allennlp.selection.options import command_words
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.trainings.candidate_types import stored_type_of

Checklist = Tuple[Tuple[str, str], ...]


def build_checklist(report: Any) -> Checklist:
    """Return pairs of key and value of a `Report`."""
    result, selection, settings = report.result, report.selection, report.settings
    if selection is None:
        texts = [f"{Path(file).name}, SHA-256 {file_digest(Path(file))}" for file in report.table_files]
        values = {"files_text": join_some(texts, "; ") or "rows from Python", "origin": origin_here()}
        return render_rows("checklist.j2", result=result, table=report.table, **values)
    run_candidates = [] if result.by_documents else selection.candidates
    program_names = [c.name for c in run_candidates if not stored_type_of(c.config).builds_model]
    with translated_store_errors(selection.directory.store):
        rows = render_rows(
            "checklist.j2",
            result=result,
            history=report.history,
            strategy=report.strategy,
            table=None,
            meta=selection.meta,
            environments=selection.meta.environments,
            machines_by_software=_group_machines(result, lambda origin: origin.software),
            machines_by_hardware=_group_machines(result, lambda origin: origin.hardware),
            candidates=selection.candidates,
            settings=settings,
            program_names=program_names,
            work_noun="queries" if result.by_documents else "runs",
            config_text=_describe_config,
            brought_caution=BROUGHT_CAUTION,
        )
    repeat_all = ("command to repeat it all", build_repeat_command(settings, selection.meta))
    commands = () if result.by_documents else _list_run_commands(selection, settings, program_names)
    return (*rows, repeat_all, *commands)


def _group_machines(result: Result, key: Callable[[Origin], Any]) -> List[Tuple[str, Origin]]:
    """Return an origin of each kind, with the names of its machines if there are several kinds."""
    groups: Dict[str, List[Origin]] = {}
    for machine in result.machines:
        groups.setdefault(repr(key(machine.origin)), []).append(machine.origin)
    names = [join_some(dict.fromkeys(str(origin.machine) for origin in origins)) for origins in groups.values()]
    return [(name if len(groups) > 1 else "", origins[0]) for name, origins in zip(names, groups.values(), strict=True)]


def build_repeat_command(settings: Any, meta: Any) -> str:
    """Return the command that makes the same selection: options that are not defaults, and the seed."""
    command_name, positional = ("documents", "systems") if meta.kind == "documents" else ("select", "candidates")
    arguments = command_words(settings, positional=positional, seed=meta.seed)
    num_positional = len(getattr(settings, positional))
    arguments[num_positional:num_positional] = ["-s", "NEW"]
    return shlex.join(["python", "-m", "fiesta_allennlp", command_name, *arguments])


def _describe_config(params: Mapping[str, Any], omitted_key: str = "") -> str:
    """Describe a config with a `type`."""
    options = {key: value for key, value in params.items() if key not in ("type", omitted_key)}
    texts = {key: _describe_config(value) if isinstance(value, dict) else value for key, value in options.items()}
    return f"{params['type']} ({join_pairs(texts) or 'defaults'})"


def _list_run_commands(selection: StoredSelection, settings: Any, program_names: List[str]) -> Checklist:
    """Return the commands that make one run again, AllenNLP's first."""
    names_by_command: Dict[str, List[str]] = {}
    for candidate in sorted(selection.candidates, key=lambda candidate: candidate.name in program_names):
        command = stored_type_of(candidate.config).repeat_command(settings.include_package)
        names_by_command.setdefault(command, []).append(candidate.name)
    return tuple(
        ("command to repeat one run" + (f" of {join_some(names)}" if names[0] in program_names else ""), command)
        for command, names in names_by_command.items()
    )
