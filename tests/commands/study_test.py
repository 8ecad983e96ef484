"""A search with Optuna, and the selection among its best trials."""

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp import select
from tests.commands.conftest import EQUALLY, Call, Selections
from tests.commands.fiesta_select_test import start
from tests.conftest import until
from tests.run_files import entry_of, num_finished, scores_of

optuna = pytest.importorskip("optuna")

PROGRAM = """awk 'BEGIN { printf "{\\"accuracy\\": %.9f}", $1 * $2 + $3 % 1000 / 1e5 }'; sleep 0.1"""


def search(database: Path, *, num_trials: int) -> Any:
    """Let Optuna try values by what the program scores with them, always with the same seed."""
    sampler, storage = optuna.samplers.RandomSampler(seed=1), f"sqlite:///{database}"
    options = {"study_name": "tune", "direction": "maximize", "sampler": sampler, "load_if_exists": True}
    study = optuna.create_study(storage=storage, **options)
    study.optimize(lambda trial: trial.suggest_float("rate", 0.1, 0.3) * trial.suggest_int("depth", 1, 3), num_trials)
    return study


def test_the_best_trials_of_a_study_are_selected_among_and_recovered_after_a_kill(
    selections: Selections, run: Path, tmp_path: Path
) -> None:
    program, database, frozen = tmp_path / "program.sh", tmp_path / "study.db", tmp_path / "frozen.db"
    program.write_text(PROGRAM)
    study = search(database, num_trials=5)
    shutil.copy(database, frozen)
    template = f"tune=sh {program} {{rate}} {{depth}} {{seed}}"
    given = [template, "--study", database, "--top", 3, "--splits", "official", "--seed", 5, *EQUALLY, "--budget", 6]
    process = start(*given, "-s", run)
    until(lambda: num_finished(run) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)

    search(database, num_trials=3)  # the search goes on, and may find better ones
    selections.resume()
    ranked = sorted(study.trials[:5], key=lambda trial: -trial.value)[:3]
    names = [f"trial-{trial.number}" for trial in ranked]
    assert [entry_of(run, name)["study_score"] for name in names] == [trial.value for trial in ranked]
    assert [entry_of(run, name)["num_evaluations"] for name in names] == [2, 2, 2], "the study's scores do not count"
    output = selections.call.command("status").done(run)
    assert "in the study" in output
    assert f"{names[0]}: rate={json.dumps(ranked[0].params['rate'])},depth={ranked[0].params['depth']}" in output

    whole, choice = tmp_path / "whole", {"strategy": EQUALLY[1], "budget": 6, "splits": "official", "seed": 5}
    result = select([template], study=frozen, top=3, directory=whole, metric="accuracy", **choice)
    assert [candidate.name for candidate in result.candidates] == names
    assert scores_of(run) == scores_of(whole)


def test_a_study_with_the_other_direction_is_told(call: Call, tmp_path: Path) -> None:
    program, database = tmp_path / "program.py", tmp_path / "study.db"
    program.touch()
    search(database, num_trials=3)
    given = ["--study", database, "--top", 2, "--splits", "official", "--dry-run"]
    output = call.done(f"python {program} {{rate}} {{depth}} {{seed}}", *given, "--metric=-error")
    assert re.search(r"study\s+maximizes\s.*minimizes\s+error", output, re.DOTALL)
