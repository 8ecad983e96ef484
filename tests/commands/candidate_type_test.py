"""The candidate type of the examples, which comes from a package of the user's, in the commands that meet it."""

import json
import os
from pathlib import Path
from typing import List

import pytest

from tests.commands.conftest import history_of
from tests.conftest import REPOSITORY
from tests.warm import Command

EXAMPLE = REPOSITORY / "examples" / "candidate_type"
PACKAGE = ("--include-package", "function_candidate")
OPTIONS = (*PACKAGE, "--metric", "accuracy", "--seed", "1", "--confidence", "0.999999")


def fiesta(*typed: object, cwd: Path, status: int = 0, python_path: str = str(EXAMPLE)) -> str:
    """What a command writes, typed in a directory without the package, in a process that has not imported it."""
    command = Command(["-m", "fiesta_allennlp", *typed], cwd=cwd, PYTHONPATH=python_path)
    output, _ = command.communicate()
    assert command.returncode == status, output
    return output


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
    fiesta(*begin, "--dry-run", cwd=tmp_path)
    assert not (tmp_path / "a").exists()
    fiesta(*begin, "--max-evaluations", "6", cwd=tmp_path)
    fiesta("select", "--recover", "-s", "a", "--max-evaluations", "8", cwd=tmp_path)  # imports the stored package
    assert len(scores(tmp_path / "a")) == 8
    assert "accuracy" in fiesta("status", "a", cwd=tmp_path)  # without the package
    fiesta("report", "a", cwd=tmp_path)
    page = (tmp_path / "a" / "report" / "report.html").read_text(encoding="utf-8")
    repeat = "fiesta_allennlp.candidates.programs.repeat"
    assert f"{repeat} DIR/evaluations/CANDIDATE-REPLICATE/outcome.json NEW function_candidate" in page
    outcome = tmp_path / "a" / "evaluations" / "better-0" / "outcome.json"
    words = ["-m", repeat, outcome, tmp_path / "new", PACKAGE[1]]
    repeated, _ = Command(words, PYTHONPATH=str(EXAMPLE)).communicate()
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
    for typed, told in (
        ((configs[0], *paths, *OPTIONS), [said for _, said in wrong.values()]),
        ((*configs, *OPTIONS, "--split-ratios", "0.6,0.2,0.2"), ["--split-ratios needs data files"]),
        ((*configs, "--metric", "accuracy"), ["'type' is 'function', not a registered name"]),
    ):
        output = fiesta("select", *typed, "-s", "a", cwd=tmp_path, status=2)
        assert all(said in output for said in told), output


def test_an_installed_package_is_found_in_every_command_without_an_option(tmp_path: Path, configs: List[str]) -> None:
    installed, foreign = tmp_path / "installed", tmp_path / "foreign"
    install_plugin(installed, "function_candidate")
    install_plugin(foreign, "no_such_module")  # of somebody else, in the current directory
    run, python_path = tmp_path / "run", f"{EXAMPLE}{os.pathsep}{installed}"
    typed = ("select", *configs, "--metric", "accuracy", "-s", run, "--budget", "4")
    fiesta(*typed, cwd=foreign, python_path=python_path)
    assert len(scores(run)) == 4
    fiesta("report", run, cwd=foreign)
    page = (run / "report" / "report.html").read_text(encoding="utf-8")
    assert "evaluations/CANDIDATE-REPLICATE/outcome.json NEW" in page and "NEW function_candidate" not in page


def test_a_broken_plugin_is_named(tmp_path: Path, configs: List[str]) -> None:
    install_plugin(tmp_path / "broken", "no_such_module")
    typed = ("select", *configs, "--metric", "m", "-s", "run")
    said = fiesta(*typed, cwd=tmp_path, status=2, python_path=str(tmp_path / "broken"))
    assert "the plugin functions" in said and "'no_such_module'" in said
