"""The candidate type of the examples, which comes from a package of the user's, in the commands that meet it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List, Sequence

import pytest

from tests.commands.conftest import history_of
from tests.conftest import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "candidate_type"
PACKAGE = ("--include-package", "function_candidate")
OPTIONS = (*PACKAGE, "--metric", "accuracy", "--seed", "1", "--confidence", "0.999999")


START = """
import json, sys
from fiesta_allennlp.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["fiesta", *words]
    try:
        main()
    except SystemExit as stopped:
        print("status", stopped.code)
"""


def fiesta(
    *commands: Sequence[object], cwd: Path, statuses: Sequence[int] = (0,), python_path: str = str(EXAMPLE)
) -> str:
    """What commands write, one after the other, in a fresh process in a directory without the package."""
    variables = {**os.environ, "PYTHONPATH": python_path}
    typed = json.dumps([list(map(str, words)) for words in commands])
    done = subprocess.run([sys.executable, "-c", START, typed], cwd=cwd, env=variables, capture_output=True, text=True)
    found = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("status ")]
    assert found == [*statuses], done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def configs() -> List[str]:
    return [str(EXAMPLE / f"{name}.jsonnet") for name in ("plain", "better")]


def install_plugin(root: Path, module: str) -> None:
    """Write what pip writes for a package that names a module as a plugin."""
    metadata = root / "functions-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: functions\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[fiesta_allennlp.plugins]\nfunctions = {module}\n")


def scores(run: Path) -> List[float]:
    return [evaluation.score for evaluation in history_of(run).evaluations]


def test_a_type_of_the_users_own_goes_through_all_commands(tmp_path: Path, configs: List[str]) -> None:
    begin = ("select", *configs, *OPTIONS, "-s", "a")
    fiesta((*begin, "--dry-run"), (*begin, "--max-evaluations", "6"), cwd=tmp_path, statuses=(0, 0))
    # imports the stored package
    fiesta(("select", "--recover", "-s", "a", "--max-evaluations", "8"), cwd=tmp_path)
    assert len(scores(tmp_path / "a")) == 8
    assert "accuracy" in fiesta(("status", "a"), ("report", "a"), cwd=tmp_path, statuses=(0, 0))  # without the package
    page = (tmp_path / "a" / "report" / "report.html").read_text(encoding="utf-8")
    repeat = "fiesta_allennlp.candidates.programs.repeat"
    assert f"{repeat} DIR/evaluations/CANDIDATE-REPLICATE/outcome.json NEW function_candidate" in page
    outcome = tmp_path / "a" / "evaluations" / "better-0" / "outcome.json"
    words = [sys.executable, "-m", repeat, outcome, tmp_path / "new", PACKAGE[1]]
    repeated = subprocess.check_output([*map(str, words)], cwd=EXAMPLE, text=True)
    assert repeated == f"accuracy {json.loads(outcome.read_text())['score']}\n"


def test_what_is_wrong_with_it_is_said_before_the_first_run(tmp_path: Path, configs: List[str]) -> None:
    wrong = {
        "lacking": ({"call": "scores.noisy"}, "argument: 'gain'"),
        "misnamed": ({"call": "scores.nosy"}, "'call' is 'scores.nosy'"),
        "other": ({"call": "scores.noisy", "argument": {}}, "'argument'"),
    }
    paths = [tmp_path / f"{name}.jsonnet" for name in wrong]
    for path, (content, _) in zip(paths, wrong.values(), strict=True):
        path.write_text(json.dumps({"type": "function", **content}))
    output = fiesta(
        ("select", *configs, "--metric", "accuracy", "-s", "a"),
        ("select", configs[0], *paths, *OPTIONS, "-s", "a"),
        ("select", *configs, *OPTIONS, "--split-ratios", "0.6,0.2,0.2", "-s", "a"),
        cwd=tmp_path,
        statuses=(2, 2, 2),
    )
    told = ("'type' is 'function', not a registered name", "--split-ratios needs data files")
    assert all(said in output for said in (*told, *(said for _, said in wrong.values()))), output


def test_an_installed_package_is_found_in_every_command_without_an_option(tmp_path: Path, configs: List[str]) -> None:
    installed, foreign = tmp_path / "installed", tmp_path / "foreign"
    install_plugin(installed, "function_candidate")
    install_plugin(foreign, "no_such_module")  # of somebody else, in the current directory
    run, python_path = tmp_path / "run", f"{EXAMPLE}{os.pathsep}{installed}"
    typed = ("select", *configs, "--metric", "accuracy", "-s", run, "--budget", "4")
    fiesta(typed, cwd=foreign, python_path=python_path)
    assert len(scores(run)) == 4
    fiesta(("report", run), cwd=foreign)
    page = (run / "report" / "report.html").read_text(encoding="utf-8")
    assert "evaluations/CANDIDATE-REPLICATE/outcome.json NEW" in page and "NEW function_candidate" not in page


def test_a_broken_plugin_is_named(tmp_path: Path, configs: List[str]) -> None:
    install_plugin(tmp_path / "broken", "no_such_module")
    typed = ("select", *configs, "--metric", "m", "-s", "run")
    said = fiesta(typed, cwd=tmp_path, statuses=(2,), python_path=str(tmp_path / "broken"))
    assert "the plugin functions of the package functions fails: No module named 'no_such_module'" in said
