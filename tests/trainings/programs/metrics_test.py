import json
import os
from pathlib import Path

import pytest

from fiesta_allennlp.core.errors import FiestaError, MetricError
from fiesta_allennlp.core.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.trainings.candidate_run import (
    accepted_metric_names,
    find_score,
    numeric_metrics,
    parse_metrics_line,
    read_metrics_from_directory,
    read_metrics_from_file,
)


def test_the_last_line_has_the_metrics() -> None:
    assert parse_metrics_line('{"accuracy": 0.5, "f1": {"macro": 1}}') == {"accuracy": 0.5, "f1.macro": 1}
    for output in ("accuracy 0.5", "epoch 1 of 2\naccuracy: 5e-1", "accuracy=0.5", "accuracy = 0.5", "accuracy :0.5"):
        assert parse_metrics_line(output) == {"accuracy": 0.5}
    for output in ("", "accuracy 0.5\ndone", "{accuracy}"):
        with pytest.raises(FiestaError, match="the last line"):
            parse_metrics_line(output)


def test_a_file_has_the_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"accuracy": 0.5}', encoding="utf-8-sig")
    assert read_metrics_from_file(path) == {"accuracy": 0.5}
    path.write_text('{"f1": 0.5, "f1": 0.9}')
    with pytest.raises(FiestaError, match=r"metrics.json are not valid JSON: the key 'f1' appears twice"):
        read_metrics_from_file(path)
    path.write_text("[0.5]")
    with pytest.raises(FiestaError, match=r"metrics.json must be a JSON object"):
        read_metrics_from_file(path)
    path.write_text(r'{"accuracy": 0.5, "report": {"macro avg": {"f1-score": 0.25}}, "name": "x", "a\u001b": 2}')
    found = read_metrics_from_file(path)
    assert numeric_metrics(found) == {"accuracy": 0.5, "report.macro avg.f1-score": 0.25, r"a\x1b": 2}
    assert find_score(found, ["report.macro avg.f1-score"]) == 0.25
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        path.write_text('{"accuracy": 0.5}', encoding=encoding)
        assert read_metrics_from_file(path) == {"accuracy": 0.5}
    path.write_text('{"é": 0.5}', encoding="latin-1")
    with pytest.raises(FiestaError, match=r"metrics.json are not utf-8"):
        read_metrics_from_file(path)
    for twice in ('{"f1": 0.1, "f1": 0.9}', '{"a.f1": 0.1, "a": {"f1": 0.9}}', '{"a": {"f1": 1, "f1": 2}}'):
        path.write_text(twice)
        with pytest.raises(FiestaError, match=r"metrics.json are not valid JSON: the key '.*f1' appears twice"):
            read_metrics_from_file(path)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for wrong in (tmp_path, tmp_path / "fifo", tmp_path / "loop", tmp_path / "none"):  # a FIFO would block
        with pytest.raises(FiestaError, match=f"no readable file {wrong}"):
            read_metrics_from_file(wrong)


def test_files_are_known_by_their_names_and_else_the_last_line_counts(tmp_path: Path) -> None:
    assert read_metrics_from_directory(tmp_path, "epoch 1\naccuracy 0.5") == {"accuracy": 0.5}
    with pytest.raises(FiestaError, match="wrote none of metrics.json, all_results.json, .*, and the last line"):
        read_metrics_from_directory(tmp_path, "")
    (tmp_path / "predict_results.json").write_text('{"predict_f1": 0.1, "f1": 0.1}')
    (tmp_path / "all_results.json").write_text('{"eval_f1": 0.2, "f1": 0.2}')
    assert read_metrics_from_directory(tmp_path, "") == {"predict_f1": 0.1, "eval_f1": 0.2, "f1": 0.2}


def test_a_metric_is_found_by_its_name_or_with_the_set_before_it() -> None:
    metrics = {"f1": 0.1, "test_f1": 0.2, "test_em": 0.3, "validation_em": 0.4, "best_validation_em": 0.5}
    validation, kept = Division(scored="validation"), Division(scored="validation", keeps_test=True)
    for reported, metric, division, score in (
        (metrics, "f1", OFFICIAL_RATIOS_DIVISION, 0.1),
        (metrics, "em", OFFICIAL_RATIOS_DIVISION, 0.3),
        (metrics, "em", validation, 0.5),
        ({"em": 0.1, "validation_em": 0.4}, "em", validation, 0.1),
        ({"em": 0.1, "validation_em": 0.4}, "em", kept, 0.4),
        ({"eval_em": 0.1, "predict_em": 0.2}, "em", OFFICIAL_RATIOS_DIVISION, 0.2),
        ({"eval_em": 0.1}, "em", OFFICIAL_RATIOS_DIVISION, 0.1),
    ):
        assert find_score(reported, accepted_metric_names(metric, division)) == score
    message = "a metric named 'best_validation_em', 'validation_em' or 'eval_em'; it reported: em"
    with pytest.raises(MetricError, match=message):
        find_score({"em": 0.1}, accepted_metric_names("em", kept))


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (
            '{"f1": 1}',
            "a metric named 'accuracy', 'test_accuracy', 'predict_accuracy' or 'eval_accuracy'; it reported: f1",
        ),
        ('{"accuracy": NaN}', "accuracy = nan, which is not a finite number"),
        ('{"test_accuracy": Infinity}', "test_accuracy = inf, which is not a finite number"),
        (f'{{"accuracy": {10**400}}}', "diverged"),
        ('{"accuracy": "0.5"}', "accuracy = 0.5, which is not a number"),
        ('{"accuracy": true}', "which is not a number"),
    ],
)
def test_a_score_that_is_none_is_told_with_what_was_reported(metrics: str, message: str) -> None:
    with pytest.raises(FiestaError, match=message):
        find_score(json.loads(metrics), accepted_metric_names("accuracy", OFFICIAL_RATIOS_DIVISION))
    assert numeric_metrics({"a": float("nan"), "b": True, "c": 1, "d": 10**400}) == {"c": 1}
