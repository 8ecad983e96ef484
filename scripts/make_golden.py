"""Makes the golden files of tests/commands/golden_test.py again, after a change of what reports or replays contain.

    python scripts/make_golden.py      # then read `git diff tests/fixtures/golden` before you commit it

A file whose content agrees within the tolerance of the test stays as it is.
"""

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

golden = import_module("tests.golden")
test = import_module("tests.commands.golden_test")


def write(name: str, now: Any) -> None:
    """Write the file if its content has changed."""
    path = golden.GOLDEN / f"{name}.json"
    if not path.exists() or now != test.about(json.loads(path.read_text())):
        path.write_text(json.dumps(now, indent=1) + "\n")
        print(f"changed: {path.relative_to(REPOSITORY)}")


def main() -> None:
    write("replay", golden.facts_of_replay())
    for name in golden.SELECTIONS:
        with tempfile.TemporaryDirectory() as scratch:
            write(name, golden.facts_of_selection(golden.make_selection(Path(scratch), name)))


if __name__ == "__main__":
    main()
