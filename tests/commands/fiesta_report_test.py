from pathlib import Path

import pytest

from tests.commands.conftest import Call
from tests.score_tables import write_split_table


@pytest.fixture
def call(capsys: pytest.CaptureFixture) -> Call:
    return Call("report", capsys)


@pytest.mark.usefixtures("undrawn")
def test_every_option_has_its_effect(tmp_path: Path, call: Call) -> None:
    out = tmp_path / "out"
    scores = {"able": [0.8, 0.85, 0.9], "baker": [0.7, 0.65, 0.6], "charlie": [0.1, 0.2, 0.3]}
    table = write_split_table(tmp_path / "scores.csv", scores, 2)
    assert str(out / "report.html") in call.done(table, "--output", out, "--belief", "student_t")
    assert {line.split(",")[1] for line in (out / "scores.csv").read_text().splitlines()[1:]} == {"0", "1"}
    assert "able is better than charlie" in call.done(table, "--compare", "able", "charlie", "--output", out)
    assert "baker" not in (out / "table.csv").read_text()


@pytest.mark.usefixtures("undrawn")
def test_files_that_no_report_made_are_not_overwritten(tmp_path: Path, call: Call) -> None:
    table = write_split_table(tmp_path / "results.csv", {"able": [0.8, 0.85, 0.9], "baker": [0.7, 0.65, 0.6]}, 2)
    (tmp_path / "scores.csv").write_text("raw")
    assert f"{tmp_path / 'scores.csv'} would be overwritten" in call.refused(table, "--output", tmp_path)
    assert (tmp_path / "scores.csv").read_text() == "raw"
    for _ in range(2):
        call.done(table, "--output", tmp_path / "out")


def test_what_is_wrong_is_said_in_one_message(call: Call, tmp_path: Path) -> None:
    call.refused(tmp_path, said="^error: .*'store.sqlite' is missing")
    status, text = call(tmp_path, "--debug")
    assert status == 2 and "Traceback" in text
