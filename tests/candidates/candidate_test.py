import json
import os
from pathlib import Path
from typing import Any, Dict

import pytest

from fiesta_allennlp.candidates.candidate import ReportedMetrics
from fiesta_allennlp.candidates.programs.program_run import ProgramRun, parse_last_line, read_reported
from fiesta_allennlp.core.directory import RUN_FILE
from fiesta_allennlp.core.errors import FiestaError, MetricError
from fiesta_allennlp.core.files import write_json_file


@pytest.mark.parametrize(
    "output",
    [
        'epoch 1 of 2\n{"accuracy": 0.5}\n\n',
        '{"accuracy": \x1b[1;32m0.5\x1b[0m}\r\n',
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
        "accuracy 0.5",
        '{"accuracy": 0.5}\ndone',
        "accuracy = np.float64(0.5)",
        '{"accuracy": 0.5',
    ],
)
def test_anything_else_is_shown_beside_what_is_expected(line: str) -> None:
    with pytest.raises(MetricError, match=r"last printed line.*Expected.*json.dumps") as raised:
        parse_last_line(line)
    assert "JSON" in str(raised.value) or repr(line.rpartition("\n")[2]) in str(raised.value)
    with pytest.raises(MetricError, match=r"'\.\.\. x+ end'"):
        parse_last_line("x" * 1000 + " end")


def read_file(path: Path) -> Dict[str, Any]:
    return dict(read_reported(path.parent, "", path, "m.json").values)


def test_a_file_has_the_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"accuracy": 0.5}', encoding="utf-8-sig")
    assert read_file(path) == {"accuracy": 0.5}
    path.write_text(r'{"accuracy": 0.5, "report": {"macro avg": {"f1-score": 0.25}}, "name": "x", "a\u001b": 2}')
    reported = ReportedMetrics(read_file(path))
    assert reported.numbers == {"accuracy": 0.5, "report.macro avg.f1-score": 0.25, r"a\x1b": 2}
    assert reported.score("report.macro avg.f1-score") == 0.25
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        path.write_text('{"accuracy": 0.5}', encoding=encoding)
        assert read_file(path) == {"accuracy": 0.5}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[0.5]", "not a JSON object"),
        (b'{"accuracy": 0.1}\n{"accuracy": 0.5}', "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        ('{"é": 0.5}'.encode("latin-1"), "is not utf-8"),
        (b'{"f1": 0.1, "f1": 0.9}', "the key 'f1' appears twice"),
        (b'{"a.f1": 0.1, "a": {"f1": 0.9}}', "'a.f1' appears twice"),
    ],
)
def test_a_file_with_anything_else_has_no_metric(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "metrics.json"
    path.write_bytes(content)
    with pytest.raises(MetricError, match=f"m.json .*{problem}.*Expected"):
        read_file(path)


def test_what_is_not_a_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for wrong in (tmp_path, tmp_path / "fifo", tmp_path / "loop", tmp_path / "none"):  # a FIFO would block
        with pytest.raises(MetricError, match="m.json is not"):
            read_file(wrong)


def test_without_metrics_five_files_are_named_with_the_ways_to_read_them(tmp_path: Path) -> None:
    for name in ("a.csv", "b.pkl", "c.txt", "d.txt", "e.txt"):
        (tmp_path / name).touch()
    (tmp_path / "model-best").mkdir()
    (tmp_path / "model-best" / "meta.json").touch()
    with pytest.raises(MetricError) as raised:
        read_reported(tmp_path, "", None, "")
    said = str(raised.value)
    assert "model-best/meta.json, a.csv, b.pkl, c.txt, d.txt, and 1 more" in said
    assert '"metrics": "{directory}/model-best/meta.json"' in said and "sh -c 'train && extract'" in said


def test_the_meant_metric_is_the_most_similar_one_or_the_only_one(tmp_path: Path) -> None:
    for reported, name in (
        ({"test_accuracy": 0.9, "loss": 1}, "test_accuracy"),
        ({"f1": 0.9}, "f1"),
        ({"f1": 0.9, "loss": 1}, "NAME"),
    ):
        write_json_file(tmp_path / RUN_FILE, {"metrics": reported})
        assert ProgramRun({}, "test/accuracy").remedy(tmp_path).split() == ["--metric", name]


@pytest.mark.parametrize(
    ("metrics", "kind", "message"),
    [
        ('{"test_accuracy": 1, "f1": 2}', MetricError, "'accuracy'.*: f1 = 2, test_accuracy = 1"),
        ('{"accuracy": "0.5"}', MetricError, 'accuracy is "0.5"'),
        ('{"accuracy": true}', MetricError, "accuracy is true"),
        ('{"accuracy": NaN}', FiestaError, "accuracy = nan"),
        (f'{{"accuracy": {10**400}}}', FiestaError, "diverged"),
    ],
)
def test_a_score_that_is_none_is_told_with_what_was_reported(metrics: str, kind: type, message: str) -> None:
    with pytest.raises(FiestaError, match=message) as raised:
        ReportedMetrics(json.loads(metrics)).score("accuracy")
    assert type(raised.value) is kind


def test_only_finite_numbers_are_kept() -> None:
    assert ReportedMetrics({"a": float("nan"), "b": True, "c": 1, "d": 10**400}).numbers == {"c": 1}
