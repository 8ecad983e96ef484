"""Run directories of somebody else, with what runs code or overwrites files where it is believed."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.selecting.store import RunStore
from fiesta_allennlp.selecting.workspace import clear_directory, has_selection
from tests.commands.conftest import Call
from tests.selections import write_selection

SCORES = {"a": [0.8, 0.9, 0.85, 0.83], "b": [0.6, 0.7, 0.65, 0.61]}


def attack(root: Path, **settings: Any) -> None:
    """Write settings into a store as somebody else can."""
    with closing(sqlite3.connect(RunDirectory(root).store)) as database, database:
        ((told,),) = database.execute("SELECT value FROM meta WHERE key = 'settings'").fetchall()
        changed = json.dumps({**json.loads(told), **settings})
        database.execute("UPDATE meta SET value = ? WHERE key = 'settings'", (changed,))


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    write_selection(tmp_path / "run", SCORES, confidence=0.95, max_evaluations=None).close()
    return tmp_path / "run"


@pytest.mark.parametrize("name", ["report", "status", "plan"])
def test_a_command_that_reads_calls_nothing_that_a_store_names(name: str, call: Call, foreign: Path) -> None:
    marker = foreign.with_name("it-ran")
    evil = {"type": "subprocess.Popen", "args": ["touch", str(marker)]}
    for settings in ({"belief": evil}, {"belief": None, "strategy": {"type": "top_two", "stop": evil}}):
        attack(foreign, **settings)
        assert "'subprocess.Popen'" in call.command(name).refused(foreign)
    assert not marker.exists()


def test_a_selection_goes_on_only_in_a_directory_that_nobody_else_can_write(
    call: Call, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recover = ("-s", foreign, "--recover")
    foreign.chmod(0o775)
    call.refused(*recover, said=f"write to {foreign}, .*: chmod go-w {foreign}$")
    foreign.chmod(0o755)
    assert "other users" not in "".join(map(str, call(*recover)))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    call.refused(*recover, said=f"{foreign} belongs to user ID ")


def test_a_link_in_the_report_is_not_followed(call: Call, foreign: Path, undrawn: None) -> None:
    victim = foreign.parent / "victim"
    victim.write_text("precious")
    (foreign / "report").mkdir()
    for name in ("scores.csv", "scores.csv.part", "report.html", "table.tex"):
        (foreign / "report" / name).symlink_to(victim)
    call.command("report").done(foreign)
    assert victim.read_text() == "precious"
    assert not (foreign / "report" / "scores.csv").is_symlink()


# What is left of an earlier selection.


def test_a_log_that_is_left_does_not_enter_a_new_store(tmp_path: Path) -> None:
    store = write_selection(tmp_path, SCORES)
    wal = RunDirectory(tmp_path).store_log.read_bytes()
    store.close()
    RunDirectory(tmp_path).store.unlink()
    RunDirectory(tmp_path).store_log.write_bytes(wal)
    new = RunStore(RunDirectory(tmp_path), create=True)
    assert (new.candidates(), new.meta().is_started, new.rows()) == ([], False, [])
    new.close()


def test_runs_without_a_store_are_deleted_by_force_alone(call: Call, foreign: Path, candidates: Any) -> None:
    directory = RunDirectory(foreign)
    for name in ("a-0", "b-1.part"):  # one that was being received is no lost run
        directory.evaluation(name).mkdir(parents=True)
        (directory.evaluation(name) / "outcome.json").write_text("{}")
    directory.store.unlink()
    assert "1 runs in 'evaluations'" in call.refused(*candidates, "-s", foreign, "--metric", "accuracy")
    RunStore(directory, create=True).close()
    assert "1 runs in 'evaluations'" in call.refused("-s", foreign, "--recover")
    clear_directory(directory)
    assert not has_selection(directory) and not directory.evaluation("a-0").exists()
