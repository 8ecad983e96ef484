"""Many candidates of one template: points in files and lists, and the variables that the template reads."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from fiesta_allennlp.candidates.candidate_set import equal_candidates, load_candidates
from fiesta_allennlp.candidates.candidate_values import (
    CandidateSpec,
    Point,
    parse_candidates,
    plain_points,
)
from fiesta_allennlp.candidates.config import Config
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.records import Candidate

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


def test_a_file_with_a_question_mark_in_its_name_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a?b.jsonnet"
    path.touch()
    assert parse_candidates([str(path)], [{}, {"lr": 1}]) == [
        CandidateSpec(path),
        CandidateSpec(path, Point({"lr": 1})),
    ]
    assert parse_candidates([str(path)], "none") == [CandidateSpec(path)]


GOOD = '{"lr": 0.1, "opt": "adam"}\n'


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ('{"lr": 1\n', "p.jsonl, line 2: not valid JSON"),
        ('{"l,r": 1}', 'p.jsonl, line 2: the name "l,r"'),
        ('{"lr": 1, "lr": 2}', "p.jsonl, line 2: .*'lr'"),
        ('{"opt": "adam", "lr": 1e-1}', "p.jsonl, line 2: duplicate .*: opt=adam,lr=0.1"),
        ("", "at least 2 candidates but got 1"),
        ('{"opt": "a", "lrr": 1}', "external variable: lr"),
        ('{"opt": "a", "lr": 1, "decay": 2}', "the variable 'decay'.* model.decay"),
        ('{"opt": "a", "lr": 1, "modle.x": 2}', "the override 'modle.x'"),
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
        (["name=a"], [{}], "got none"),
        (["a"], [], "is empty"),
        (["a"], [3], "point 1: "),
        (["a"], 3, "--points must be"),
        (["python train.py {train} {test}", "b=x {seed}"], None, "needs a name"),
        (
            ["a=python train.py --seed 42", "b=python train.py"],
            None,
            "neither a file nor a command with a placeholder. Write {seed} in it instead of a fixed seed",
        ),
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
