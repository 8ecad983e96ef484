"""Answers to the reproducibility checklists of conferences, as far as they were recorded."""

import shlex
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from fiesta_allennlp.core.files import digest_of
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.reports.formats import join_pairs, render_rows
from fiesta_allennlp.reports.reading import Reading
from fiesta_allennlp.reports.stored import Stored
from fiesta_allennlp.selection.database import understood
from fiesta_allennlp.selection.environment import environment
from fiesta_allennlp.selection.options import as_typed
from fiesta_allennlp.trainings.candidate_types import stored_type_of
from fiesta_allennlp.trainings.settings import Settings

Checklist = Tuple[Tuple[str, str], ...]


def checklist_of(reading: Reading) -> Checklist:
    """Return what you need to repeat what was read, as pairs of key and value."""
    if reading.compared:
        return tuple((f"{name}: {key}", value) for name, side in reading.compared for key, value in checklist_of(side))
    if reading.table is not None:
        file_digests = (f"{Path(file).name}, SHA-256 {digest_of(Path(file))}" for file in reading.table_files)
        values: Dict[str, Any] = {"result": reading.result, "environments": [environment()]}
        values["source"] = "; ".join(file_digests) or "rows from Python"
        return render_rows("checklist.j2", reading=reading, table=reading.table, config_text=_as_text, **values)
    return () if reading.stored is None else _selection_checklist(reading, reading.stored, reading.settings)


def _selection_checklist(reading: Reading, stored: Stored, settings: Any) -> Checklist:
    by_runs = not reading.by_documents
    run_candidates = stored.candidates if by_runs else []
    programs = [candidate.name for candidate in run_candidates if not stored_type_of(candidate.config).builds_model]
    with understood(stored.directory.store):
        rows = render_rows(
            "checklist.j2",
            reading=reading,
            result=reading.result,
            table=None,
            meta=stored.meta,
            environments=stored.meta.environments,
            candidates=stored.candidates,
            settings=settings,
            facts=reading.documents and reading.documents.documents,
            programs=programs,
            doing="runs" if by_runs else "queries",
            unknown="not recorded: the selection began with an older version",
            config_text=_as_text,
        )
    repeat_all = ("command to repeat it all", repeat_command(settings, stored.meta.seed))
    return (*rows, repeat_all, *(_repeat_one(stored, settings, programs) if by_runs else ()))


def repeat_command(settings: Union[Settings, DocumentSettings], seed: Optional[str]) -> str:
    """Return the command that makes the same selection: options that are not defaults, and the seed."""
    command, positional = ("select", "candidates") if isinstance(settings, Settings) else ("documents", "systems")
    words = as_typed(settings, positional=positional, seed=seed)
    num_names = len(getattr(settings, positional))
    return shlex.join(["python", "-m", "fiesta_allennlp", command, *words[:num_names], "-s", "NEW", *words[num_names:]])


def _as_text(params: Mapping[str, Any], without: str = "") -> str:
    """Describe a config with a `type`."""
    options = {key: value for key, value in params.items() if key not in ("type", without)}
    listed = join_pairs({key: _as_text(value) if isinstance(value, dict) else value for key, value in options.items()})
    return f"{params['type']} ({listed or 'defaults'})"


def _repeat_one(stored: Stored, settings: Settings, programs: List[str]) -> Checklist:
    """Return the commands that make one run again, AllenNLP's first."""
    commands: Dict[str, List[str]] = {}
    for candidate in sorted(stored.candidates, key=lambda candidate: candidate.name in programs):
        command = stored_type_of(candidate.config).repeat_command(settings.include_package)
        commands.setdefault(command, []).append(candidate.name)
    return tuple(
        ("command to repeat one run" + (f" of {', '.join(names)}" if names[0] in programs else ""), command)
        for command, names in commands.items()
    )
