"""Makes the golden files of tests/commands/golden_test.py again, after a change of what reports or replays contain.

    python scripts/make_golden.py      # then read `git diff tests/fixtures/golden` before you commit it

A file whose content agrees within the tolerance of the test stays as it is, and so does each number.
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


def with_old_numbers(now: Any, old: Any) -> Any:
    """Return a content with the old numbers where they agree within the tolerance of the test."""
    if isinstance(now, dict) and isinstance(old, dict):
        return {key: with_old_numbers(value, old.get(key)) for key, value in now.items()}
    if isinstance(now, list) and isinstance(old, list) and len(now) == len(old):
        return list(map(with_old_numbers, now, old))
    return old if isinstance(now, float) and now == test.about(old) else now


def write(name: str, now: Any) -> None:
    """Write the file if its content has changed."""
    path = golden.GOLDEN / f"{name}.json"
    old = json.loads(path.read_text()) if path.exists() else None
    if old is None or now != test.about(old):
        path.write_text(json.dumps(with_old_numbers(now, old), indent=1) + "\n")
        print(f"changed: {path.relative_to(REPOSITORY)}")


def main() -> None:
    write("replay", golden.facts_of_replay())
    for name in golden.SELECTIONS:
        with tempfile.TemporaryDirectory() as scratch:
            write(name, golden.facts_of_selection(golden.make_selection(Path(scratch), name)))


if __name__ == "__main__":
    main()
