"""Makes the golden files of tests/commands/golden_test.py again, after a change of what reports or replays contain.

    python scripts/make_golden.py      # then read `git diff tests/fixtures/runs/expected` before you commit it

A file whose content agrees within the tolerance of the test stays as it is.
"""

import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

import fiesta_allennlp  # noqa: E402

golden = import_module("tests.commands.golden_test")


def write(path: Path, now: Any, before: Any) -> None:
    """Write the file if its content has changed, in the form that it has."""
    if now != golden.about(before):
        path.write_text(json.dumps(now, indent=1) + "\n")
        print(f"changed: {path.relative_to(REPOSITORY)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(golden.RUNS, Path(scratch, "runs"))
        os.chdir(Path(scratch, "runs", "project"))
        for name in golden.SELECTIONS:
            path = golden.EXPECTED / name / "report.json"
            facts = golden.facts_of(fiesta_allennlp.report(f"../{name}", output="report"))
            write(path, facts, json.loads(path.read_text()))
        path = golden.EXPECTED / "replay.json"
        before = json.loads(path.read_text())
        now = {**fiesta_allennlp.replay("scores.json", **golden.REPLAY).summary, "seconds": before["seconds"]}
        write(path, json.loads(json.dumps(now)), before)


if __name__ == "__main__":
    main()
