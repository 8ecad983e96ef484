"""Small selections and a replay whose results are kept in `tests/fixtures/golden`, without times and sentences."""

import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import fiesta_allennlp
from fiesta_allennlp.core.files import read_json
from tests.run_files import summary_of
from tests.score_tables import split_rows

GOLDEN = Path(__file__).parent / "fixtures" / "golden"
PROGRAMS = {"metric": "accuracy", "seed": 4, "workers": 1}
DOCUMENTS = {"documents": "documents.jsonl", "seed": 4}
REPLAY = {"confidence": 0.9, "repetitions": 20, "seed": 11}

SELECTIONS = ("finished", "failed", "documents")

WORDING = ("notes", "table")
CHANGING = (
    "seconds",
    "mean_seconds",
    "equal_seconds",
    "started_at",
    "checklist",
    "version",
    "origin",
    "machine",
)
"""What differs between two equal selections, or between machines."""


@contextmanager
def project(root: Path) -> Iterator[None]:
    """A copy of the project as the current directory."""
    before = Path.cwd()
    os.chdir(shutil.copytree(GOLDEN / "project", root / "project", dirs_exist_ok=True))
    try:
        yield
    finally:
        os.chdir(before)


def make_selection(root: Path, name: str) -> Path:
    """Make one of `SELECTIONS` below `root` and return its directory."""
    directory = root / name
    with project(root):
        if name == "documents":
            systems = [f"{system}={system}.jsonl" for system in "abc"]
            fiesta_allennlp.choose_system(systems, directory=directory, **DOCUMENTS)
        else:
            names = ("able", "slow") if name == "finished" else ("able", "slow", "failing")
            budget = {} if name == "finished" else {"budget": 12}
            fiesta_allennlp.select([f"{c}.json" for c in names], directory=directory, **PROGRAMS, **budget)
    return directory


def without_changing(items: List[Tuple[str, Any]]) -> Dict[str, Any]:
    return {key: value for key, value in items if key not in (*CHANGING, *WORDING)}


def facts_of_selection(directory: Path) -> Any:
    """The content of `selection.json` and of the report as plain data."""
    report = fiesta_allennlp.report(directory)
    derived = {name: getattr(report, name) for name in ("path", "comparisons")}
    facts = {"selection": summary_of(directory), "report": {"result": report.result.content(), **derived}}
    return json.loads(json.dumps(facts, default=asdict), object_pairs_hook=without_changing)


def facts_of_replay() -> Any:
    rows = split_rows(read_json(GOLDEN / "project" / "scores.json"), 2)
    summary = {**fiesta_allennlp.replay(rows, **REPLAY).summary, "scores": ""}
    return json.loads(json.dumps(dict(summary)), object_pairs_hook=without_changing)
