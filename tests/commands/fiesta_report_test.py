import json
import re
from pathlib import Path
from typing import Any, Callable, List

import pytest

from tests.commands.conftest import Call
from tests.conftest import REPOSITORY
from tests.selections import write_selection

SCORES = {"able": [0.8, 0.85, 0.9], "baker": [0.7, 0.65, 0.6]}


@pytest.fixture
def call(in_process: Callable[..., Call]) -> Call:
    return in_process("report")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_selection(tmp_path / "run", SCORES).close()
    return tmp_path / "run"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({**SCORES, "charlie": [0.1, 0.2, 0.3]}))
    return path


def test_a_report_stands_beside_the_selection(run: Path, call: Any) -> None:
    status, text = call(run)
    assert status == 0, text
    assert "Interrupted after 6 runs of 2 candidates" in text
    assert f"The report is {run / 'report' / 'report.html'}" in text
    assert "| able | 3 | 0.8500 |" in (run / "report" / "report.md").read_text()
    assert "able & 3 & 0.8500" in (run / "report" / "table.tex").read_text()
    assert (run / "report" / "scores.csv").read_text().startswith("candidate,split,seed,score")


@pytest.mark.usefixtures("undrawn")
def test_every_option_has_its_effect(table: Path, tmp_path: Path, call: Any) -> None:
    out = tmp_path / "out"
    options = ["--output", out, "--evaluations-per-split", 3, "--belief", "student_t", "--long-table"]
    status, text = call(table, *options)
    assert status == 0, text
    assert "| able | 3 |" in (out / "report.md").read_text()
    assert "median" in (out / "table.tex").read_text()
    assert {line.split(",")[1] for line in (out / "scores.csv").read_text().splitlines()[1:]} == {"0"}
    status, text = call(table, "--compare", "able", "charlie", "--output", out)
    assert status == 0, text
    assert "able is better than charlie" in text
    assert "baker" not in (out / "report.md").read_text()
    other = tmp_path / "other.json"
    other.write_text('{"other": [0.1, 0.2, 0.3]}')
    for paired, words in ((["--paired"], "over 3 shared splits"), ([], "over unpaired runs")):
        status, text = call("--compare", f"{table}:able", other, *paired, "--output", out)
        assert status == 0, text
        assert words in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the directory of a selection or a table of scores"),
        (["nowhere"], "nowhere: does not exist"),
        (["docs"], "docs: there is no selection: 'store.sqlite' is missing"),
        (["README.md"], "README.md: is neither a directory nor a file that ends with .json or .csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(
    call: Any, monkeypatch: pytest.MonkeyPatch, arguments: List[str], message: str
) -> None:
    def files() -> List[Path]:
        """Those that no other test may make meanwhile: pytest and Hypothesis have hidden ones of their own."""
        return sorted(path for place in (".", "docs") for path in Path(place).glob("[!.]*"))

    monkeypatch.chdir(REPOSITORY)
    before = files()
    status, text = call(*arguments)
    assert status == 2, text
    assert re.search(f"^error: .*{message}", text, re.MULTILINE), text
    assert "Traceback" not in text
    assert files() == before


def test_debug_shows_the_traceback(call: Any, tmp_path: Path) -> None:
    status, text = call(tmp_path / "nowhere", "--debug")
    assert status == 2
    assert "Traceback" in text
    assert list(tmp_path.iterdir()) == []
