"""What the commands that train nothing leave out when they start."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Set, Tuple
from unittest.mock import patch

import numpy as np
import pytest

from fiesta_allennlp.__main__ import main
from fiesta_allennlp.commands import COMMANDS
from fiesta_allennlp.core.errors import ALLENNLP_MISSING_MESSAGE
from tests.conftest import REPOSITORY
from tests.score_tables import write_split_table
from tests.selections import write_selection

TRAINING = {"torch", "allennlp", "transformers", "spacy", "sklearn"}
SCIPY = {"scipy.stats", "scipy.optimize", "scipy.spatial"}
DRAWING = {"matplotlib"}
PROCESSES = {"concurrent.futures.process"}

SIMULATED = TRAINING | SCIPY | DRAWING | PROCESSES
PLAN = ("plan", "--gap", "1", "--sd", "1", "--repetitions", "1")
REPLAY = ("--repetitions", "1", "--max-evaluations", "42")

START = """
import sys
from fiesta_allennlp.__main__ import main
lines = sys.argv[1:]
for line in lines:
    sys.argv = ["fiesta", *line.split("|")]
    try:
        main()
    except SystemExit as stopped:
        assert not stopped.code, stopped.code
print(*sys.modules, sep="\\n", file=sys.stderr)
"""


def loaded(*commands: Tuple[str, ...]) -> Set[str]:
    """The modules that a fresh interpreter has after these commands."""
    typed = ["|".join(words) for words in commands]
    done = subprocess.run([sys.executable, "-c", START, *typed], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.fixture(scope="module")
def selection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that was interrupted, so that its margin is computed too."""
    root = tmp_path_factory.mktemp("light") / "selection"
    scores = np.random.default_rng(1).normal([[0.7], [0.69], [0.66]], 0.02, (3, 6))
    write_selection(root, dict(zip("abc", scores.tolist(), strict=True)), max_evaluations=60).close()
    return root


def test_help_needs_the_standard_library_alone() -> None:
    left_out = SIMULATED | {"numpy", "scipy", "rich", "sqlite3", "jinja2"}
    assert loaded(("--version",), ("--help",), *((name, "--help") for name in COMMANDS)) & left_out == set()


UNKNOWN = "error: unrecognized arguments:"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("select --metrik x", f"{UNKNOWN} --metrik.* '--metric'"),
        ("next x.csv --max-hours 8", f"{UNKNOWN} --max-hours 8.* 'fiesta plan FILE --max-hours N'"),
        ("replay x.csv --candidates a,b", f"{UNKNOWN} --candidates a,b.* '--where candidate=A,B'"),
        ("select a.jsonnet", "error: -s is missing"),
        ("selct -s x", "error: 'selct' .*'select'"),
        ("zzz", "error: 'zzz' is an unknown"),
    ],
)
def test_a_usage_error_has_a_status_and_one_message(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with patch("sys.argv", ["fiesta", *typed.split()]), pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2 and re.match(said, capsys.readouterr().err)


def test_documents_have_no_limit_for_each_system(capsys: pytest.CaptureFixture[str]) -> None:
    with patch("sys.argv", ["fiesta", "documents", "--help-all"]), pytest.raises(SystemExit):
        main()
    assert "--max-evaluations" in (text := capsys.readouterr().out) and "per candidate" not in text


def test_a_simulation_and_a_status_need_numpy_and_special_functions(selection: Path, tmp_path: Path) -> None:
    scores = {name: [split % 7 + ord(name) for split in range(30)] for name in "abc"}
    table = write_split_table(tmp_path / "scores.csv", scores)
    found = loaded(PLAN, ("replay", str(table), *REPLAY), ("status", str(selection)))
    assert found & SIMULATED == set()
    assert {"numpy", "scipy.special"} <= found


def test_a_dry_run_of_programs_or_predictions_needs_no_training_library(tmp_path: Path) -> None:
    for name in "ab":
        command = ["true", name, "{split_seed}", "{directory}"]
        (tmp_path / f"{name}.jsonnet").write_text(json.dumps({"type": "program", "command": command}))
    programs = [str(tmp_path / f"{name}.jsonnet") for name in "ab"]
    records = [{"id": number, "text": "x", "label": "ab"[number % 2]} for number in range(30)]
    for name, label in (("gold", None), ("one", "a"), ("two", "b")):
        lines = [json.dumps({**record, "label": label or record["label"]}) for record in records]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    systems = [str(tmp_path / f"{name}.jsonl") for name in ("one", "two")]
    choice = ("documents", *systems, "--documents", str(tmp_path / "gold.jsonl"), "--dry-run")
    assert loaded(("select", *programs, "--metric", "f1", "--dry-run"), choice) & (TRAINING | DRAWING) == set()


def test_a_report_trains_nothing(selection: Path) -> None:
    found = loaded(("report", str(selection)))
    assert found & (TRAINING | PROCESSES) == set()
    assert found >= DRAWING


def test_a_missing_allennlp_is_told_with_the_line_to_type() -> None:
    code = (
        "import sys, importlib.machinery as m\n"
        "class Hidden(m.PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, *rest):\n"
        "        return None if name == 'allennlp' else super().find_spec(name, *rest)\n"
        "sys.meta_path[:] = [Hidden if f is m.PathFinder else f for f in sys.meta_path if 'ditable' not in repr(f)]\n"
        "from fiesta_allennlp.__main__ import main\n"
        "sys.argv = ['fiesta', 'select', 'tdlstm.jsonnet', 'lstm.jsonnet', '--dry-run']\nmain()\n"
    )
    configs = REPOSITORY / "training_configs" / "sample"
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    here = {"cwd": configs, "env": {**os.environ, "PYTHONPATH": path}}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **here)
    assert (done.returncode, done.stderr) == (2, f"error: {ALLENNLP_MISSING_MESSAGE}\n")
