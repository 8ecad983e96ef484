"""How selections stand: finished, interrupted, by documents, running in another process, and none."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Callable, Optional

import pytest

from fiesta_allennlp.core.directory import DirectoryLock, RunDirectory
from fiesta_allennlp.reports.progress import is_starting
from fiesta_allennlp.reports.report_settings import ReportSettings
from fiesta_allennlp.reports.report_sources import read_selection
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.version import __version__
from tests.commands.conftest import Call
from tests.conftest import until
from tests.golden import project
from tests.running.light import start_selection, write_programs
from tests.selections import ENVIRONMENT, write_selection
from tests.warm import Command

KEYS = [
    "format",
    "version",
    "directory",
    "running",
    "error",
    "pending",
    "selection",
    "confirmations",
]
"""The keys that docs/files.md calls stable."""


@pytest.fixture
def status(call: Call) -> Call:
    return call.command("status")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("finished", "The last run finished"),
        ("interrupted", "Interrupted after"),
        ("failed", "failed"),
        ("documents", "queries"),
    ],
)
def test_a_selection_is_shown_and_left_as_it_is(
    status: Call, golden_copy: Callable[[str], Path], tmp_path: Path, name: str, said: str
) -> None:
    if name == "interrupted":
        write_selection(tmp_path / name, {"a": [0.8, 0.9], "b": [0.6, 0.7]}, pending=[("a", 2)]).close()
    else:
        golden_copy(name)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / name).rglob("*")}
    with project(tmp_path):
        output = status.done(tmp_path / name, "--follow", "--every", 1000)
    assert said in output
    assert ("pending" in output) == (name == "interrupted"), "no column without a number"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / name).rglob("*")} == before


def test_a_running_selection_says_so_and_is_not_locked(status: Call, tmp_path: Path) -> None:
    here = {"environments": [ENVIRONMENT]}
    store = write_selection(tmp_path, {"a": [0.8, 0.9], "b": [0.6, 0.7]}, pending=[("a", 2), ("a", 3)], meta=here)
    code, output = status(tmp_path)
    store.close()
    assert code == 0
    assert "running" in output and "After 4 runs" in output and "a leads" in output
    rows = [line.split()[:3] for line in output.splitlines() if line.split()[:1] in (["a"], ["b"])]
    assert rows == [["a", "2", "2"], ["b", "2", "0.6500"]]  # finished, and running if any


def test_a_selection_that_checks_its_candidates_is_starting(tmp_path: Path) -> None:
    assert not is_starting(tmp_path)
    lock = DirectoryLock(RunDirectory(tmp_path))
    assert is_starting(tmp_path), "its store may not exist yet"
    lock.release()
    assert not is_starting(tmp_path)
    store = write_selection(tmp_path, {"a": [0.8, 0.9], "b": [0.6, 0.7]})
    assert not is_starting(tmp_path)
    store.set_meta(settings=None)
    assert is_starting(tmp_path)
    store.close()


@pytest.mark.parametrize("max_hours", [None, 1.0])
def test_an_open_selection_has_a_forecast_and_a_decided_one_none(
    status: Call, tmp_path: Path, max_hours: Optional[float]
) -> None:
    meta = {"environments": [ENVIRONMENT], "working_seconds": 1800.0}
    scores = {"a": [0.81, 0.82, 0.80], "b": [0.80, 0.81, 0.795]}
    store = write_selection(tmp_path, scores, pending=[("a", 3), ("b", 3)], meta=meta, max_hours=max_hours)
    running, data = status.done(tmp_path), json.loads(status.done(tmp_path, "--json"))
    store.close()
    forecast = data["selection"]["forecast"]
    assert 1 <= forecast["low"] < forecast["median"] < forecast["high"]
    sentence = f"About {forecast['median']} more runs (5-95%: {forecast['low']} to {forecast['high']}"
    told = " ".join(running.split())
    assert sentence in told and ("30 min of --max-hours" in told) == bool(max_hours)
    stopped = " ".join(status.done(tmp_path).split())
    assert "About " in stopped and "more run" in stopped and "of --max-hours" not in stopped, "no run takes time"
    write_selection(tmp_path / "clear", {"a": [0.9, 0.901, 0.902], "b": [0.1, 0.101, 0.102]}).close()
    assert json.loads(status.done(tmp_path / "clear", "--json"))["selection"]["forecast"] is None


def test_a_finished_selection_as_json_is_its_result(status: Call, golden_copy: Callable[[str], Path]) -> None:
    root = golden_copy("finished")
    assert "--every" in status.refused(root, "--every", 0)
    with project(root.parent):
        data = json.loads(status.done(root, "--json"))
    assert list(data) == KEYS
    assert (data["format"], data["version"], data["directory"]) == (3, __version__, str(root))
    ended = {key: data[key] for key in ("running", "error", "pending")}
    assert ended == {"running": False, "error": None, "pending": []}
    assert data["selection"] == json.loads((root / "selection.json").read_text())


def test_many_failures_are_counted_and_a_few_are_listed(status: Call, tmp_path: Path) -> None:
    failures = [("a", 10 + k, f"{k} {'x' * 10_000}") for k in range(100)]
    scores = {"a": [0.8, 0.9], "b": [0.6, 0.7]}
    write_selection(tmp_path / "run", scores, failures=failures, max_failures=10**6).close()
    output = status.done(tmp_path / "run")
    assert "92 more runs of a" in output and len(output) < 20_000
    result = read_selection(tmp_path / "run", ReportSettings()).result
    entry = result.candidates[0]
    assert entry.failures == 100
    replace(result, directory=tmp_path / "run").write()
    assert Result.read(tmp_path / "run").candidates[0] == entry


def test_followed_as_json_a_selection_prints_an_object_a_line(tmp_path: Path) -> None:
    root, go = tmp_path / "run", tmp_path / "go"
    candidates = write_programs(tmp_path)
    for path in map(Path, candidates):
        config = json.loads(path.read_text())
        config["command"][2] = f"until [ -e {go} ]; do sleep 0.05; done; {config['command'][2]}"
        path.write_text(json.dumps(config))
    command = start_selection(root, candidates)
    log = root / "selection.log"
    until(lambda: log.exists() and "start one-0" in log.read_text())
    follow = ["-m", "fiesta_allennlp", "status", root, "--follow", "--json", "--every"]
    followed, interrupted = Command([*follow, 0.2]), Command([*follow, 1000])
    lines = [followed.stdout.readline() for _ in range(2)]
    assert json.loads(interrupted.stdout.readline())
    interrupted.send_signal(signal.SIGTERM)
    said, _ = interrupted.communicate()
    assert interrupted.returncode == 130 and re.fullmatch("Interrupted. .*\n", said)
    go.touch()
    lines += followed.stdout.readlines()  # `communicate` lacks what was read ahead of the two lines
    assert (command.wait(), followed.wait()) == (0, 0)
    objects = [json.loads(line) for line in lines]
    assert all(list(entry) == KEYS for entry in objects)
    assert [entry["running"] for entry in objects] == [True] * (len(objects) - 1) + [False]
    assert [sum(c["num_evaluations"] for c in objects[k]["selection"]["candidates"]) for k in (0, -1)] == [0, 6]
