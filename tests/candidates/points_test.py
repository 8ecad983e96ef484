"""Points in files and lists, trials of a study, their names, and what a template reads of them."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import pytest

from fiesta_allennlp.candidates.config import Config
from fiesta_allennlp.candidates.points import MAX_NAME_BYTES, Point, Trial, plain_points, read_trials
from fiesta_allennlp.candidates.preparation import equal_candidates, load_candidates
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.texts import FORBIDDEN_CHARACTERS

READS_LR = "import 'rest.libsonnet'"
REST = "(import 'plain.jsonnet') + { trainer+: { optimizer: { type: std.extVar('opt'), lr: %s } } }"
LR = "std.parseJson(std.extVar('lr'))"


@pytest.fixture
def template(write_config: Callable[..., Path]) -> str:
    """A config that reads `opt` and `lr`, in a file that it imports."""
    plain = write_config("plain")
    plain.with_name("rest.libsonnet").write_text(REST % LR)
    path = plain.with_name("template.jsonnet")
    path.write_text(READS_LR)
    return str(path)


def loaded(*candidates: str, points: Any = None, overrides: str = "") -> Dict[str, Candidate]:
    return load_candidates(Settings(candidates=candidates, points=points, overrides=overrides, metric="accuracy"))


def test_each_point_is_a_candidate_of_the_template(template: str, tmp_path: Path) -> None:
    points = [{"lr": 0.1, "opt": "adam"}, {"lr": 0.2, "opt": "sgd", "trainer.num_epochs": 3}]
    file = tmp_path / "points.jsonl"

    file.write_text("\n\n".join(json.dumps(point) for point in points) + "\r\n", encoding="utf-8-sig")
    plain = template.replace("template", "plain")
    made = loaded(template, f"plain={plain}", points=str(file), overrides='{"trainer.num_epochs": 7}')
    assert list(made) == ["lr=0.1,opt=adam", "lr=0.2,opt=sgd,trainer.num_epochs=3", "plain"]
    trainers = [candidate.config["trainer"] for candidate in made.values()]
    assert [trainer["num_epochs"] for trainer in trainers] == [7, 3, 7], "a point's overrides lie above --overrides"
    assert trainers[0]["optimizer"] == {"type": "adam", "lr": 0.1}
    given = plain_points(points)
    assert given == points and plain_points(file) == str(file) and plain_points(None) is None
    assert loaded(template, f"plain={plain}", points=given, overrides='{"trainer.num_epochs": 7}') == made
    assert made["lr=0.1,opt=adam"].source == f"{template}?lr=0.1,opt=adam"


GOOD = '{"lr": 0.1, "opt": "adam"}\n'


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ('{"lr": 1\n', "p.jsonl, line 2: not valid"),
        ('{"l,r": 1}', 'p.jsonl, line 2: the name "l,r"'),
        ('{"lr": 1, "lr": 2}', "p.jsonl, line 2: .*'lr'"),
        ('{"opt": "adam", "lr": 1e-1}', "p.jsonl, line 2: duplicate .*: opt=adam,lr=0.1"),
        ("", "at least 2 candidates"),
        ('{"opt": "a", "lrr": 1}', "external variable: lr"),
        ('{"opt": "a", "lr": 1, "decay": 2}', "the variable 'decay'.* model.decay"),
    ],
)
def test_bad_points_are_named_by_file_line_and_value(template: str, tmp_path: Path, added: str, message: str) -> None:
    (tmp_path / "p.jsonl").write_text(GOOD + added)
    with pytest.raises(FiestaError, match=message):
        loaded(template, points=str(tmp_path / "p.jsonl"))


@pytest.mark.parametrize(
    ("candidates", "points", "message"),
    [
        (["a", "b"], [{}], "got a, b"),
        (["a"], [], "is empty"),
        (["a"], [3], "point 1: "),
        (["python train.py {train} {test}", "b=x {seed}"], None, "needs a name"),
        (["a=python train.py --seed 42", "b=python train.py"], None, "placeholder. Write {seed}"),
        (["a=python train.py {train} {test} '", "b=x y {train}"], None, "into words"),
    ],
)
def test_points_without_a_clear_meaning_are_errors(candidates: List[str], points: Any, message: str) -> None:
    with pytest.raises(FiestaError, match=message):
        loaded(*candidates, points=points)


def test_a_variable_that_some_points_read_is_allowed_and_the_environment_counts(
    template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(template).with_name("rest.libsonnet").write_text(REST % f"if std.extVar('opt') == 'sgd' then {LR} else 1")
    points = [{"opt": "adam", "lr": 3}, {"opt": "sgd", "lr": 2}]
    assert [c.config["trainer"]["optimizer"]["lr"] for c in loaded(template, points=points).values()] == [1, 2]
    monkeypatch.setenv("opt", "sgd")
    assert len(loaded(template, points=[{"lr": 3}, {"lr": 4}, {"lr": 5, "opt": "adam"}])) == 3


def test_equal_configs_are_found_whatever_their_seeds(template: str) -> None:
    points = ({"opt": "a", "lr": 1}, {"opt": "a", "lr": 2, "trainer.optimizer.lr": 1, ".numpy_seed": 3})
    made = loaded(template, points=(*points, {"opt": "a", "lr": 3}))
    configs: Dict[str, Config] = {name: dict(candidate.config) for name, candidate in made.items()}
    assert equal_candidates(configs) == [[Point(points[0]).name, Point(points[1]).name]]


def test_a_text_reaches_the_template_as_it_is_and_all_else_as_json() -> None:
    values = {"lr": 0.01, "layers": 2.0, "name": "adam", "on": True, "none": None, "dims": [1, 2], "number": "1"}
    texts = ("0.01", "2", "adam", "true", "null", "[1,2]", "1")
    point = Point({**values, "model.dropout": 0.5, ".vocabulary": {"type": "empty"}})
    assert point.variables == dict(zip(values, texts, strict=True))
    assert point.overrides == {"model.dropout": 0.5, "vocabulary": {"type": "empty"}}


@pytest.mark.parametrize(
    ("values", "typed", "name"),
    [
        ({"lr": 0.01, "layers": 2}, "lr=0.01,layers=2", "lr=0.01,layers=2"),
        ({"n": np.int64(3), "x": np.float32(0.5)}, "n=3,x=0.5", "n=3,x=0.5"),
        # A file cannot be called so: cleaned, with the first 8 digits of the SHA-256 of {"bert": "google:bert"}.
        ({"bert": "google:bert"}, "bert=google:bert", "bert=google_bert~5a091c6b"),
        ({"bert": "google/bert"}, "bert=google/bert", "bert=google/bert"),
    ],
)
def test_a_point_is_typed_and_named_by_its_values(values: Dict[str, Any], typed: str, name: str) -> None:
    point = Point(values)
    assert (point.text, point.name) == (typed, name)


def test_a_long_name_keeps_what_tells_points_apart() -> None:
    path = "model.text_field_embedder.token_embedders.tokens.embedding_dim"
    names = [Point({path: size, "text": "é" * 50}).name for size in (50, 100)]
    assert names[0].startswith("embedding_dim=50,text=éé") and names[1].startswith("embedding_dim=100,text=éé")
    assert names[0] != names[1]
    names += [Point({"text": text}).name for text in ("\x1b[2J", "a\nb/", "..")]
    assert all(len(name.encode()) <= MAX_NAME_BYTES and set(name).isdisjoint(FORBIDDEN_CHARACTERS) for name in names)


def test_bad_points_are_refused() -> None:
    for key in ("", " lr", "l,r", ".model.lr"):
        with pytest.raises(ConfigError, match="lr|l,r|the name"):
            Point({key: 1})
    for value in (float("nan"), float("inf"), np.ones(2), {1: 2}, "\ud800", "a\0b", object()):
        with pytest.raises(ConfigError, match="'lr' must be JSON"):
            Point({"lr": value})


# The best trials of an Optuna study.


@pytest.fixture
def optuna() -> Any:
    return pytest.importorskip("optuna")


VALUES: List[Optional[float]] = [0.3, 0.9, 0.5, 0.5, None]
"""By trial; the fourth is pruned, and the last fails."""


def write_study(optuna: Any, storage: Any, name: str = "tune", **options: Any) -> None:
    def objective(trial: Any) -> Any:
        trial.suggest_float("lr", 0, 1)
        if trial.number == 3:
            raise optuna.TrialPruned
        return VALUES[trial.number]

    study = optuna.create_study(storage=storage, study_name=name, **options)
    for number in range(len(VALUES)):
        study.enqueue_trial({"lr": number / 8})
    study.optimize(objective, n_trials=len(VALUES))


@pytest.fixture
def database(optuna: Any, tmp_path: Path) -> Path:
    write_study(optuna, f"sqlite:///{tmp_path / 'study.db'}", direction="maximize")
    return tmp_path / "study.db"


def test_the_best_completed_trials_come_first_from_each_storage(optuna: Any, database: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    write_study(optuna, optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal))))
    expected = [Trial(number, {"lr": number / 8}, VALUES[number] or 0, False) for number in (1, 2, 0)]
    for study in (str(database), f"{database}#tune", f"sqlite:///{database}"):
        assert read_trials(study, 3) == expected
    assert read_trials(str(database), 2) == expected[:2]
    lowest = {trial.name: trial.minimise for trial in read_trials(str(journal), 3)}
    assert list(lowest) == ["trial-0", "trial-2", "trial-1"] and all(lowest.values())


def test_trials_with_equal_values_are_one_candidate(optuna: Any, database: Path) -> None:
    study = optuna.load_study(study_name="tune", storage=f"sqlite:///{database}")
    study.enqueue_trial({"lr": 1 / 8})
    study.optimize(lambda trial: trial.suggest_float("lr", 0, 1) + 2.0, 1)
    assert [trial.name for trial in read_trials(str(database), 3)] == ["trial-5", "trial-2", "trial-0"]


def test_what_is_no_study_or_has_too_few_trials_is_refused(
    optuna: Any, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    write_study(optuna, f"sqlite:///{database}", "second")
    refused(database, "Studies: tune, second|Studies: second, tune")
    several = f"sqlite:///{tmp_path / 'several.db'}"
    optuna.create_study(storage=several, directions=["maximize", "minimize"])
    refused(several, "2 objectives")
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused(database, r"pip install 'fiesta-allennlp\[optuna\]'")


def test_parameters_are_variables_overrides_or_placeholders(template: str) -> None:
    trials = [Trial(n, {"opt": "adam", "lr": n / 8, "trainer.num_epochs": n}, n, False) for n in (12, 3)]
    settings = Settings(candidates=(template,), metric="accuracy")
    trainers = {name: one.config["trainer"] for name, one in load_candidates(settings, trials=trials).items()}
    assert [(name, t["optimizer"]["lr"], t["num_epochs"]) for name, t in trainers.items()] == [
        ("trial-12", 1.5, 12),
        ("trial-3", 0.375, 3),
    ]
    unread = [Trial(n, {"opt": "adam", "lr": n, "decay": 1}, n, False) for n in (1, 2)]
    with pytest.raises(ConfigError, match="not read .*'decay'"):
        load_candidates(settings, trials=unread)

    settings = Settings(candidates=("tune=python -c pass --lr={lr} {{lr}} {seed}",), metric="f1", splits="official")
    candidates = load_candidates(settings, trials=[Trial(n, {"lr": f"{n} 0"}, n, False) for n in (1, 2)])
    assert candidates["trial-2"].config["command"] == ["python", "-c", "pass", "--lr=2 0", "{{lr}}", "{seed}"]
    with pytest.raises(ConfigError, match="does not use {decay}"):
        load_candidates(settings, trials=unread)
    template, baseline = "python -c pass --lr={lr} {seed}", "base=python -c pass --lr=1 {seed}"
    settings = Settings(candidates=(template, baseline), metric="f1", splits="official", points=[{"lr": 2}])
    assert list(load_candidates(settings)) == ["lr=2", "base"]
    with pytest.raises(ConfigError, match="--points and --study need"):
        load_candidates(replace(settings, candidates=(baseline, baseline.replace("base", "again"))))
