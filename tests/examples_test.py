"""The examples are complete: their configs pass all checks, and their data are those that the script makes."""

from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.preparation import load_candidates
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Division
from tests.conftest import REPOSITORY

EXAMPLES = Path("examples") / "programs"


def test_the_candidates_are_right_and_all_scripts_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    configs = sorted(map(str, EXAMPLES.glob("*.jsonnet")))
    candidates = load_candidates(Settings.from_layers({"candidates": configs, "metric": "accuracy"}))
    scripts = {code for one in candidates.values() for code in type_of(one.config).code}
    assert len(candidates) == len(configs) == 4
    others = {
        str(EXAMPLES / f"{name}.py") for name in ("make_data", "random_scores", "digits")
    }  # the pages run the latter
    assert scripts == {str(path) for path in EXAMPLES.glob("*.py")} - others


def test_the_data_are_what_the_script_makes(tmp_path: Path) -> None:
    run_path(str(REPOSITORY / EXAMPLES / "make_data.py"))["main"](tmp_path)
    for name in ("train.jsonl", "test.jsonl"):
        assert (tmp_path / name).read_bytes() == (REPOSITORY / EXAMPLES / "data" / name).read_bytes()


def test_the_own_task_keeps_writers_whole_and_reports_its_metric(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    training = pytest.importorskip("fiesta_allennlp.candidates.allennlp.training")
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.syspath_prepend(str(Path("examples") / "own_task"))
    configs = sorted(map(str, (Path("examples") / "own_task").glob("*.jsonnet")))
    given = {"candidates": configs, "metric": "accuracy", "include_package": ("own_task",)}
    import_module("own_task")
    candidates = load_candidates(Settings.from_layers(given))
    assert sorted(candidates) == ["few_votes", "votes"]
    made = training.prepare_candidate(candidates["votes"].config, group_by=None, division=Division(), vectors=tmp_path)
    assert (made.pool.group_by, made.pool.num_groups) == ("writer", 56)
    assert "accuracy" in made.metrics
