from dataclasses import replace
from pathlib import Path

import pytest

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import Evaluation, Failure, History, Origin
from fiesta_allennlp.selecting.provenance import (
    MachineRuns,
    append_environment,
    changed_code,
    check_current_directory,
    count_machine_runs,
    describe_environment,
)
from tests.running.light import request


def test_a_session_like_the_last_one_is_no_new_one() -> None:
    here = describe_environment()
    assert append_environment([here], here) == [here]
    assert append_environment([here, {"host": "elsewhere"}], here) == [here, {"host": "elsewhere"}, here]


def test_a_selection_goes_on_where_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    began = [{"host": "of an earlier version"}, describe_environment()]
    check_current_directory(began)
    (tmp_path / "linked").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "linked")
    check_current_directory(began)
    monkeypatch.chdir("/")
    with pytest.raises(StoreError, match=f"another directory .*: cd {tmp_path}$"):
        check_current_directory([*began, describe_environment()])
    check_current_directory([{"directory": str(tmp_path / "was moved")}])


def test_edited_code_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "one_file.py").write_text("SCORE = 0.1\n")
    (tmp_path / "whole" / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/model.py"):
        (tmp_path / "whole" / name).write_text("")
    packages = ["one_file", "whole.inner", "no_such_package"]
    before = [describe_environment(packages)]
    assert sorted(before[0]["code"]) == ["one_file", "whole"]
    assert changed_code(before, before[0]) == []
    (tmp_path / "whole" / "inner" / "model.py").write_text("SCORE = 0.9\n")
    assert changed_code(before, describe_environment(packages)) == ["whole"]
    assert changed_code([], before[0]) == []
    del before[0]["code"]  # as older versions wrote it
    assert changed_code(before, describe_environment(packages)) == []


NEW = Origin("new", python="3.13.0", versions={"numpy": "2.5", "torch": "2.0"})
OLD = Origin("old", gpu="1", python="3.11.7", versions={"numpy": "2.4"})


def test_runs_are_counted_by_machine_and_software_not_by_job() -> None:
    other_numpy = replace(NEW, versions={"numpy": "2.6"})
    jobs = replace(NEW, job="1"), replace(NEW, job="2", is_only_machine=False)
    finished = zip((*jobs, other_numpy, Origin()), (2.0, 4.0, 1.0, 9.0), strict=True)
    history = History(
        ("a",),
        tuple(Evaluation(request(k), 0.5, "m", seconds, origin=where) for k, (where, seconds) in enumerate(finished)),
        failures=tuple(Failure(request(9), "error", "no", 0.1, origin=where) for where in (OLD, NEW)),
    )
    assert count_machine_runs(history) == (
        MachineRuns(NEW, num_evaluations=2, num_failures=1, mean_seconds=3.0),
        MachineRuns(other_numpy, num_evaluations=1, num_failures=0, mean_seconds=1.0),
        MachineRuns(OLD, num_evaluations=0, num_failures=1, mean_seconds=None),
    )
