"""The best trials of an Optuna study, from each of its storages."""

import sys
from pathlib import Path
from typing import Any, Callable, List, Optional

import pytest

from fiesta_allennlp.candidates.candidate_set import load_candidates
from fiesta_allennlp.candidates.points import Trial, read_trials
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.errors import ConfigError

optuna = pytest.importorskip("optuna")

VALUES: List[Optional[float]] = [0.3, 0.9, 0.5, 0.5, None]
"""By trial; the fourth is pruned, and the last fails."""


def objective(trial: Any) -> float:
    trial.suggest_float("lr", 0, 1)
    trial.suggest_categorical("opt", ["adam", "sgd"])
    value = VALUES[trial.number]
    if trial.number == 3:
        raise optuna.TrialPruned
    if value is None:
        raise ValueError("no score")
    return value


def write_study(storage: Any, name: str = "tune", **options: Any) -> None:
    study = optuna.create_study(storage=storage, study_name=name, **options)
    for number in range(len(VALUES)):
        study.enqueue_trial({"lr": number / 8, "opt": "adam"})
    study.optimize(objective, n_trials=len(VALUES), catch=(ValueError,))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "study.db"
    write_study(f"sqlite:///{path}", direction="maximize")
    return path


def test_the_best_completed_trials_come_first_from_each_storage(database: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    write_study(optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal))))
    expected = [Trial(number, {"lr": number / 8, "opt": "adam"}, VALUES[number] or 0, False) for number in (1, 2, 0)]
    for study in (str(database), f"{database}#tune", f"sqlite:///{database}"):
        assert read_trials(study, 3) == expected
    assert read_trials(str(database), 2) == expected[:2]
    lowest = {trial.name: trial.minimise for trial in read_trials(str(journal), 3)}
    assert list(lowest) == ["trial-0", "trial-2", "trial-1"] and all(lowest.values())


def test_trials_with_equal_values_are_one_candidate(database: Path) -> None:
    study = optuna.load_study(study_name="tune", storage=f"sqlite:///{database}")
    study.enqueue_trial({"lr": 1 / 8, "opt": "adam"})
    study.optimize(
        lambda trial: trial.suggest_float("lr", 0, 1) and trial.suggest_categorical("opt", ["adam", "sgd"]) and 2.0, 1
    )
    assert [trial.name for trial in read_trials(str(database), 3)] == ["trial-5", "trial-2", "trial-0"]


def test_what_is_no_study_or_has_too_few_trials_is_refused(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(study: Any, said: str, top: int = 2) -> None:
        with pytest.raises(ConfigError, match=said):
            read_trials(str(study), top)

    refused(database, "3 of its 5 trials are complete, 3 of them with different values, but --top is 4", top=4)
    refused(f"{database}#other", "study.db#NAME. Studies: tune")
    refused(tmp_path / "none.db", "none.db cannot be read as an Optuna study: No such file")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "points.jsonl").write_text('{"lr": 1}\n')
    refused(tmp_path / "points.jsonl", "cannot be read as an Optuna study")
    write_study(f"sqlite:///{database}", "second")
    refused(database, "Studies: tune, second|Studies: second, tune")
    several = f"sqlite:///{tmp_path / 'several.db'}"
    optuna.create_study(storage=several, directions=["maximize", "minimize"])
    refused(several, "2 objectives")
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused(database, r"pip install 'fiesta-allennlp\[optuna\]'")


def test_parameters_are_variables_overrides_or_placeholders(write_config: Callable[..., Path], tmp_path: Path) -> None:
    plain = write_config("plain")
    template = plain.with_name("template.jsonnet")
    template.write_text(
        "(import 'plain.jsonnet') + { trainer+: { optimizer: { type: 'adam', lr: std.parseJson(std.extVar('lr')) } } }"
    )
    trials = [Trial(n, {"lr": n / 8, "trainer.num_epochs": n}, n, False) for n in (12, 3)]
    settings = Settings(candidates=(str(template),), metric="accuracy")
    candidates = load_candidates(settings, trials=trials)
    trainers = {name: candidate.config["trainer"] for name, candidate in candidates.items()}
    assert [(name, t["optimizer"]["lr"], t["num_epochs"]) for name, t in trainers.items()] == [
        ("trial-12", 1.5, 12),
        ("trial-3", 0.375, 3),
    ]
    with pytest.raises(ConfigError, match="does not read the variable 'decay'"):
        load_candidates(settings, trials=[Trial(n, {"lr": n, "decay": 1}, n, False) for n in (1, 2)])

    command = "tune=python -c pass --lr={lr} {{lr}} {seed}"
    settings = Settings(candidates=(command,), metric="accuracy", splits="official")
    candidates = load_candidates(settings, trials=[Trial(n, {"lr": f"{n} 0"}, n, False) for n in (1, 2)])
    assert candidates["trial-2"].config["command"] == ["python", "-c", "pass", "--lr=2 0", "{{lr}}", "{seed}"]
    with pytest.raises(ConfigError, match="does not use {decay}"):
        load_candidates(settings, trials=[Trial(n, {"lr": n, "decay": 1}, n, False) for n in (1, 2)])


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="--top .*--study"):
        Settings(top=3)
    with pytest.raises(ConfigError, match="--points and --study"):
        Settings(study="a.db", points="points.jsonl")
