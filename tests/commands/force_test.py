"""`--force` deletes a selection only for one that can begin, and then all of it."""

import shutil
from pathlib import Path
from typing import Any, Dict, List, Mapping

import pytest

from fiesta_allennlp import choose_system, report, select
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.trainings import preparation
from tests.commands.golden_test import RUNS


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished selection with what its checks left, beside its project, which is the current directory."""
    shutil.copytree(RUNS / "project", tmp_path / "project")
    shutil.copytree(RUNS / "finished", tmp_path / "run")
    for name in ("checks/able.log", "checks/old.log", "vectors/old-123.txt"):
        (tmp_path / "run" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text("old")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "run"


def files(root: Path) -> Dict[str, bytes]:
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != "store.lock"}


def test_one_that_cannot_begin_changes_nothing(run: Path) -> None:
    before = files(run)
    Path("bad.jsonnet").write_text(Path("able.jsonnet").read_text().replace("basic_classifier", "basic_classifer"))
    with pytest.raises(ConfigError, match="candidate 'bad' .*basic_classifier"):
        select(["able.jsonnet", "bad.jsonnet"], directory=run, force=True, metric="accuracy")
    assert files(run) == before


def test_one_that_can_begin_leaves_nothing_of_the_old_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: List[List[str]] = []

    def prepare_all(candidates: Mapping[str, Any], *args: Any) -> Any:
        prepared.append(sorted(candidates))
        return preparation.prepare_all(candidates, *args)

    monkeypatch.setattr("fiesta_allennlp.trainings.select.prepare_all", prepare_all)
    result = select(["able.jsonnet", "blind.jsonnet"], directory=run, force=True, metric="accuracy", budget=2)
    assert result.num_evaluations == 2
    assert prepared == [["able", "blind"]], "once"
    logs = {path.name: path.read_text() for path in (run / "checks").iterdir()}
    assert set(logs) == {"able.log", "blind.log"} and "old" not in logs.values()
    assert not (run / "vectors" / "old-123.txt").exists()
    assert not (run / "next").exists()


def test_answers_that_cannot_be_used_delete_no_selection_by_documents(run: Path) -> None:
    shutil.copytree(RUNS / "documents", run.with_name("documents"))
    before = files(run.with_name("documents"))
    Path("junk.sqlite").write_text("no database")
    given = {"documents": "documents.jsonl", "answers": "junk.sqlite"}
    with pytest.raises(StoreError, match="the file of answers cannot be used"):
        choose_system(["b=b.jsonl", "c=c.jsonl"], directory=run.with_name("documents"), force=True, **given)
    assert files(run.with_name("documents")) == before
    assert report(run.with_name("documents")).best == "a"
