"""Reads what a selection leaves in its directory."""

import csv
import json
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple


def summary_of(run: Path) -> Dict[str, Any]:
    """Return what `selection.json` holds."""
    return json.loads((run / "selection.json").read_text())


def entry_of(run: Path, name: str) -> Dict[str, Any]:
    """Return the entry of a candidate in `selection.json`."""
    return next(entry for entry in summary_of(run)["candidates"] if entry["name"] == name)


def rows_of(run: Path) -> List[Dict[str, str]]:
    """Return the rows of `evaluations.csv`."""
    with (run / "evaluations.csv").open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def scores_of(run: Path) -> Set[Tuple[str, str, str]]:
    """Return candidate, replicate and score of all finished runs."""
    return {(row["candidate"], row["replicate"], row["score"]) for row in rows_of(run) if row["status"] == "finished"}


def num_finished(run: Path) -> int:
    """Return how many runs have left an outcome."""
    return len(list(run.glob("evaluations/*/outcome.json")))
