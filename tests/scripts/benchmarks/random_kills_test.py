"""A lost, changed or repeated run is noticed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import random_kills

from fiesta_allennlp.core.directory import RunDirectory
from tests.selections import write_selection


@pytest.fixture
def killed(tmp_path: Path) -> Any:
    """A run with three finished evaluations, as it was noted at a kill."""
    directory = RunDirectory(tmp_path)
    write_selection(tmp_path, {"a": [0.5, 1.5, 2.5]}).close()
    for replicate in range(3):
        outcome = directory.evaluation(f"a-{replicate}") / "outcome.json"
        outcome.parent.mkdir(parents=True)
        outcome.write_text("{}")
    run = random_kills.KilledSelection(directory, [])
    run.finished.update(random_kills.finished_in(directory))
    run._note_outcomes()
    return run


@pytest.mark.parametrize(
    ("damage", "num_lost"),
    [
        ("", 0),
        ("DELETE FROM evaluations WHERE replicate = 1", 1),
        ("UPDATE evaluations SET status = 'pending', finished_order = NULL WHERE replicate < 2", 2),
        ("UPDATE evaluations SET score = 0.4 WHERE replicate = 2", 1),
        ("UPDATE evaluations SET split_seed = 4", 3),
    ],
)
def test_what_is_gone_or_has_changed_is_lost(killed: Any, damage: str, num_lost: int) -> None:
    assert len(killed.finished) == len(killed.written) == 3
    with closing(sqlite3.connect(killed.directory.store)) as database:
        database.execute(damage)
        database.commit()
    assert killed.num_lost() == num_lost


def test_a_run_that_was_made_again_is_lost(killed: Any) -> None:
    next(iter(killed.written)).write_text('{"again": true}')
    assert killed.num_lost() == 1
