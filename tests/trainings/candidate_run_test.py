import json
import os
from pathlib import Path

import pytest

from fiesta_allennlp.core.errors import FiestaError, MetricError
from fiesta_allennlp.core.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.trainings.candidate_run import (
    ReportedMetrics,
    accepted_metric_names,
    parse_last_line,
    read_metrics_file,
    read_reported,
)


@pytest.mark.parametrize(
    "output",
    [
        "accuracy 0.5",
        "epoch 1 of 2\naccuracy: 5e-1",
        "accuracy=0.5\n\n",
        "accuracy = 0.5",
        "accuracy :0.5",
        "\rtraining: 90%...\raccuracy = 0.5\r\n",
        "training: 90%\x1b[2K\x1b[1Gaccuracy = 0.5",
        "accuracy = \x1b[1;32m0.5\x1b[0m",
        '10%\r{"accuracy": 0.5}',
    ],
)
def test_the_last_line_as_a_terminal_shows_it_has_the_metrics(output: str) -> None:
    assert parse_last_line(output) == {"accuracy": 0.5}


def test_nested_metrics_are_joined_by_a_dot() -> None:
    assert parse_last_line('{"accuracy": 0.5, "f1": {"macro": 1}}') == {"accuracy": 0.5, "f1.macro": 1}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "accuracy 0.5\ndone",
        "{'accuracy': 0.5}",
        "accuracy = np.float64(0.5)",
        '"accuracy"',
        "[0.5]",
        "100%|####| 10/10 accuracy = 0.5",
        '{"accuracy": 0.5',
    ],
)
def test_anything_else_is_shown_beside_what_is_expected(line: str) -> None:
    with pytest.raises(MetricError, match=r"last printed line.*Expected.*json.dumps") as raised:
        parse_last_line(line)
    assert "JSON" in str(raised.value) or repr(line.rpartition("\n")[2]) in str(raised.value)
    with pytest.raises(MetricError, match=r"'\.\.\. x+ end'"):
        parse_last_line("x" * 1000 + " end")


def test_a_file_has_the_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"accuracy": 0.5}', encoding="utf-8-sig")
    assert read_metrics_file(path, "m.json") == {"accuracy": 0.5}
    path.write_text(r'{"accuracy": 0.5, "report": {"macro avg": {"f1-score": 0.25}}, "name": "x", "a\u001b": 2}')
    reported = ReportedMetrics(read_metrics_file(path, "m.json"))
    assert reported.numbers == {"accuracy": 0.5, "report.macro avg.f1-score": 0.25, r"a\x1b": 2}
    assert reported.score(["report.macro avg.f1-score"]) == 0.25
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        path.write_text('{"accuracy": 0.5}', encoding=encoding)
        assert read_metrics_file(path, "m.json") == {"accuracy": 0.5}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[0.5]", "is not a JSON object but"),
        (b'{"accuracy": 0.1}\n{"accuracy": 0.5}', "is not valid JSON"),
        (b'{"accuracy": np.float64(0.5)}', "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        ('{"é": 0.5}'.encode("latin-1"), "is not utf-8"),
        (b'{"f1": 0.1, "f1": 0.9}', "the key 'f1' appears twice"),
        (b'{"a.f1": 0.1, "a": {"f1": 0.9}}', "the key 'a.f1' appears twice"),
        (b'{"a": {"f1": 1, "f1": 2}}', "the key 'f1' appears twice"),
    ],
)
def test_a_file_with_anything_else_has_no_metric(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "metrics.json"
    path.write_bytes(content)
    with pytest.raises(MetricError, match=f"m.json .*{problem}.*Expected"):
        read_metrics_file(path, "m.json")


def test_what_is_not_a_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for wrong in (tmp_path, tmp_path / "fifo", tmp_path / "loop", tmp_path / "none"):  # a FIFO would block
        with pytest.raises(MetricError, match="m.json is not a readable file"):
            read_metrics_file(wrong, "m.json")


def test_files_are_known_by_their_names_and_else_the_last_line_counts(tmp_path: Path) -> None:
    printed = read_reported(tmp_path, "epoch 1\naccuracy 0.5")
    assert printed.values == {"accuracy": 0.5}
    with pytest.raises(MetricError, match="In its last printed line .no metrics file in {directory}.: accuracy"):
        printed.score(["f1"])
    with pytest.raises(MetricError, match="no metrics file in {directory}; the last printed line is ''"):
        read_reported(tmp_path, "")
    (tmp_path / "predict_results.json").write_text('{"predict_f1": 0.1, "f1": 0.1}')
    (tmp_path / "all_results.json").write_text('{"eval_f1": 0.2, "f1": 0.2}')
    assert read_reported(tmp_path, "").values == {"predict_f1": 0.1, "eval_f1": 0.2, "f1": 0.2}


def test_a_metric_is_found_by_its_name_or_with_the_set_before_it() -> None:
    metrics = {"f1": 0.1, "test_f1": 0.2, "test_em": 0.3, "validation_em": 0.4, "best_validation_em": 0.5}
    validation, kept = Division(scored="validation"), Division(scored="validation", keeps_test=True)
    for values, metric, division, score in (
        (metrics, "f1", OFFICIAL_RATIOS_DIVISION, 0.1),
        (metrics, "em", OFFICIAL_RATIOS_DIVISION, 0.3),
        (metrics, "em", validation, 0.5),
        ({"em": 0.1, "validation_em": 0.4}, "em", validation, 0.1),
        ({"em": 0.1, "validation_em": 0.4}, "em", kept, 0.4),
        ({"eval_em": 0.1, "predict_em": 0.2}, "em", OFFICIAL_RATIOS_DIVISION, 0.2),
        ({"eval_em": 0.1}, "em", OFFICIAL_RATIOS_DIVISION, 0.1),
    ):
        assert ReportedMetrics(values).score(accepted_metric_names(metric, division)) == score
    message = "a metric named 'best_validation_em', 'validation_em' or 'eval_em'. In its last printed line: em"
    with pytest.raises(MetricError, match=message):
        ReportedMetrics({"em": 0.1}).score(accepted_metric_names("em", kept))


@pytest.mark.parametrize(
    ("metrics", "kind", "message"),
    [
        (
            '{"f1": 1}',
            MetricError,
            "a metric named 'accuracy', 'test_accuracy', 'predict_accuracy' or 'eval_accuracy'. In .*: f1",
        ),
        ('{"Accuracy": 1}', MetricError, "Did you mean 'Accuracy'"),
        ('{"accuracy": "0.5"}', MetricError, 'accuracy is "0.5"'),
        ('{"accuracy": true}', MetricError, "accuracy is true"),
        ('{"accuracy": [0.5]}', MetricError, r"accuracy is \[0.5\]"),
        ('{"accuracy": NaN}', FiestaError, "accuracy = nan, which is not a finite number"),
        ('{"test_accuracy": Infinity}', FiestaError, "test_accuracy = inf, which is not a finite number"),
        (f'{{"accuracy": {10**400}}}', FiestaError, "diverged"),
    ],
)
def test_a_score_that_is_none_is_told_with_what_was_reported(metrics: str, kind: type, message: str) -> None:
    with pytest.raises(FiestaError, match=message) as raised:
        ReportedMetrics(json.loads(metrics)).score(accepted_metric_names("accuracy", OFFICIAL_RATIOS_DIVISION))
    assert type(raised.value) is kind


def test_only_finite_numbers_are_kept() -> None:
    assert ReportedMetrics({"a": float("nan"), "b": True, "c": 1, "d": 10**400}).numbers == {"c": 1}
