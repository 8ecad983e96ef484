import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fiesta_allennlp.errors import FiestaError, MetricError
from fiesta_allennlp.trainings.programs.metrics import (
    metrics_in_directory,
    metrics_in_file,
    metrics_in_line,
    numbers_in,
    score_in,
)


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ('{"accuracy": 0.5, "f1": {"macro": 1}}', {"accuracy": 0.5, "f1.macro": 1}),
        ("accuracy 0.5", {"accuracy": 0.5}),
        ("epoch 1 of 2\naccuracy: 5e-1  \n\n", {"accuracy": 0.5}),
        ("accuracy=0.5", {"accuracy": 0.5}),
    ],
)
def test_the_last_line_has_the_metrics(line: str, metrics: Any) -> None:
    assert metrics_in_line(line.rstrip()) == metrics


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "is missing: it printed nothing"),
        ("accuracy 0.5\ndone", "is 'done'. It must be a JSON object, or a name and a number"),
        ("{accuracy}", "are not valid JSON"),
    ],
)
def test_another_last_line_is_told(output: str, message: str) -> None:
    with pytest.raises(FiestaError, match=message):
        metrics_in_line(output)


def test_a_file_has_the_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    with pytest.raises(FiestaError, match=r"did not write its metrics to .*metrics.json"):
        metrics_in_file(path)
    path.write_text('{"accuracy": 0.5}', encoding="utf-8-sig")
    assert metrics_in_file(path) == {"accuracy": 0.5}
    path.write_text("[0.5]")
    with pytest.raises(FiestaError, match=r"must be a JSON object but are \[0.5\]"):
        metrics_in_file(path)
    path.write_text('{"accuracy": 0.5, "report": {"macro avg": {"f1-score": 0.25}}, "name": "x"}')
    found = metrics_in_file(path)
    assert numbers_in(found) == {"accuracy": 0.5, "report.macro avg.f1-score": 0.25}
    assert score_in(found, "report.macro avg.f1-score", scored="test") == 0.25


def test_files_are_known_by_their_names_and_else_the_last_line_counts(tmp_path: Path) -> None:
    assert metrics_in_directory(tmp_path, "epoch 1\naccuracy 0.5") == {"accuracy": 0.5}
    message = "wrote none of metrics.json, all_results.json, .* into .*, and the last line"
    with pytest.raises(FiestaError, match=message):
        metrics_in_directory(tmp_path, "")
    (tmp_path / "predict_results.json").write_text('{"predict_f1": 0.1, "f1": 0.1}')
    (tmp_path / "all_results.json").write_text('{"eval_f1": 0.2, "f1": 0.2}')
    assert metrics_in_directory(tmp_path, "") == {"predict_f1": 0.1, "eval_f1": 0.2, "f1": 0.2}


def test_invisible_characters_in_the_names_of_metrics_are_escapes(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(r'{"accuracy": 0.5, "\ud800x": 1, "a": {"\u001b": 2}}')
    assert metrics_in_file(path) == {"accuracy": 0.5, r"\ud800x": 1, r"a.\x1b": 2}
    assert metrics_in_line("a\x1b 1") == {r"a\x1b": 1.0}


def test_anything_but_a_file_is_named_and_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "fifo", tmp_path / "loop"):
        with pytest.raises(FiestaError, match=f"{path} is not a file. Make the program"):
            metrics_in_file(path)
    (tmp_path / "file").touch()
    for raised, kind in ((PermissionError(13, "Permission denied"), FiestaError), (OSError(5, "I/O error"), OSError)):
        monkeypatch.setattr(Path, "read_text", Mock(side_effect=raised))
        with pytest.raises(kind, match="Permission denied|I/O error"):
            metrics_in_file(tmp_path / "file")


def test_a_metric_is_found_by_its_name_or_with_the_set_before_it() -> None:
    metrics = {"f1": 0.1, "test_f1": 0.2, "test_em": 0.3, "validation_em": 0.4, "best_validation_em": 0.5}
    assert score_in(metrics, "f1", scored="test") == 0.1
    assert score_in(metrics, "em", scored="test") == 0.3
    assert score_in(metrics, "em", scored="validation") == 0.5
    assert score_in({"em": 0.1, "validation_em": 0.4}, "em", scored="validation") == 0.1
    assert score_in({"em": 0.1, "validation_em": 0.4}, "em", scored="validation", alone=False) == 0.4
    assert score_in({"eval_em": 0.1, "predict_em": 0.2}, "em", scored="test") == 0.2
    assert score_in({"eval_em": 0.1}, "em", scored="test") == 0.1
    message = "no metric 'best_validation_em', 'validation_em' or 'eval_em'; it reported: em"
    with pytest.raises(MetricError, match=message):
        score_in({"em": 0.1}, "em", scored="validation", alone=False)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ('{"f1": 1}', "no metric 'accuracy', 'test_accuracy', 'predict_accuracy' or 'eval_accuracy'; it reported: f1"),
        ("{}", "it reported: nothing"),
        ('{"accuracy": NaN}', "accuracy = nan, which is not a finite number"),
        ('{"test_accuracy": Infinity}', "test_accuracy = inf, which is not a finite number"),
        ('{"accuracy": -1e130}', r"accuracy = -1e\+130, which is larger than 1e\+100: the run has diverged"),
        (f'{{"accuracy": {10**400}}}', r"accuracy = 10{119} ..., which is larger than 1e\+100: the run has diverged"),
        ('{"accuracy": "0.5"}', "accuracy = 0.5, which is not a number"),
        ('{"accuracy": true}', "which is not a number"),
    ],
)
def test_a_score_that_is_none_is_told_with_what_was_reported(metrics: str, message: str) -> None:
    with pytest.raises(FiestaError, match=message):
        score_in(json.loads(metrics), "accuracy", scored="test")
    assert numbers_in({"a": float("nan"), "b": True, "c": 1, "d": 10**400}) == {"c": 1}
