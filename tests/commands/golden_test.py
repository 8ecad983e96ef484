"""Whole selections and a replay give what they gave, apart from times and sentences (`scripts/make_golden.py`)."""

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

import fiesta_allennlp
from fiesta_allennlp import choose_system, report, select
from fiesta_allennlp.core.errors import ConfigError, StoreError
from tests.golden import GOLDEN, SELECTIONS, facts_of_replay, facts_of_selection, project


def about(value: Any, **tolerance: float) -> Any:
    """Plain data whose numbers need not agree in the last digits, which differ between versions of SciPy.

    Probabilities may differ more: the steps to a posterior end where it changes by a thousandth.
    """
    if isinstance(value, dict):
        loose = {"rel": 1e-3, "abs": 1e-4}
        return {
            key: about(child, **(loose if key.startswith(("prob", "confidence")) else tolerance))
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [about(child, **tolerance) for child in value]
    return pytest.approx(value, **(tolerance or {"rel": 1e-9})) if isinstance(value, float) else value


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_and_its_report_are_as_they_were(golden_copy: Callable[[str], Path], name: str) -> None:
    directory = golden_copy(name)
    assert facts_of_selection(directory) == about(json.loads((GOLDEN / f"{name}.json").read_text()))
    fiesta_allennlp.report(directory, output=directory / "report")


def test_a_replay_gives_what_it_gave() -> None:
    assert facts_of_replay() == about(json.loads((GOLDEN / "replay.json").read_text()))


def files(root: Path) -> Dict[str, bytes]:
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != "store.lock"}


def test_force_leaves_the_old_selection_until_the_new_one_can_begin(golden_copy: Callable[[str], Path]) -> None:
    finished = golden_copy("finished")
    for name in ("checks/able.log", "checks/old.log", "vectors/old-123.txt"):
        (finished / name).parent.mkdir(exist_ok=True)
        (finished / name).write_text("old")
    before = files(finished)
    with project(finished.parent), pytest.raises(ConfigError, match="--metric is missing"):
        select(["able.json", "failing.json"], directory=finished, force=True)
    assert files(finished) == before
    with project(finished.parent):
        result = select(["able.json", "slow.json"], directory=finished, force=True, metric="accuracy", budget=6)
    assert result.num_evaluations == 6
    left = files(finished)
    assert b"old" not in left.values() and not (finished / "next").exists()


def test_answers_that_cannot_be_used_delete_no_selection_by_documents(golden_copy: Callable[[str], Path]) -> None:
    directory = golden_copy("documents")
    before = files(directory)
    with project(directory.parent):
        Path("junk.sqlite").write_text("no database")
        given = {"documents": "documents.jsonl", "answers": "junk.sqlite"}
        with pytest.raises(StoreError, match="junk.sqlite: .*not a database"):
            choose_system(["b=b.jsonl", "c=c.jsonl"], directory=directory, force=True, **given)
    assert files(directory) == before
    assert report(directory).result.leading == "a"
