import json
from pathlib import Path
from typing import Any, Callable

import pytest

from fiesta_allennlp.commands.fiesta_lookup import add_arguments, lookup_from_args
from tests.commands.conftest import Call


@pytest.fixture
def call(in_process: Callable[..., Call]) -> Call:
    return in_process(add_arguments, lookup_from_args, "fiesta-lookup")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    rows = [f"{10**-i:g},{layers},{0.5 + 0.1 * i - 0.02 * layers:g},{layers}" for i in range(4) for layers in (1, 2, 3)]
    path.write_text("\n".join(["lr,layers,f1,seconds", *rows]) + "\n")
    return path


def test_a_lookup_tells_what_it_took_and_leaves_its_file(runs: Path, tmp_path: Path, call: Any) -> None:
    output = tmp_path / "out.json"
    options = ["--inputs", "lr:log, layers", "--objective", "f1", "--budget", 5, "--trials", 4, "--entropy", 3]
    status, text = call(runs, *options, "--tolerance", 0.02, "--batch-size", 2, "--output", output)
    assert status == 0, text
    assert "runs, gp_ei" in text
    assert "random search, exactly" in text
    assert "Means and standard deviations of 4 searches for f1; tolerance 0.02, first 5 runs" in text
    content = json.loads(output.read_text())
    assert (content["trials"], content["entropy"], content["batch_size"], content["tolerance"]) == (4, "3", 2, 0.02)
    (table,) = content["tables"]
    assert (table["name"], table["points"]) == ("runs", 12)
    assert len(table["measures"]["ftb"]["trials"]) == 4
    assert table["random"]["ftb"]["mean"] == pytest.approx((3 * 3 + sum(range(4, 13))) / 12)


def test_two_objectives_give_the_front(runs: Path, tmp_path: Path, call: Any) -> None:
    output = tmp_path / "out.json"
    objective = "--objective=f1,-seconds"
    searcher = '{"type": "gp_ehvi", "kernel": "rbf"}'
    status, text = call(
        runs, "--inputs", "lr:log,layers", objective, "--budget", 6, "--searcher", searcher, "--output", output
    )
    assert status == 0, text
    assert "fto: runs until the first of the front" in text
    content = json.loads(output.read_text())
    assert content["searcher"] == {"type": "gp_ehvi", "kernel": "rbf"}
    assert content["trials"] == 100
    assert content["objectives"] == ["f1", "-seconds"]
    assert content["tables"][0]["random"]["fbp"]["mean"] == pytest.approx(6 / 12)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--objective", "f1"], "say with --inputs which columns are inputs"),
        (["--objective", "f1", "--inputs", "lr", "--searcher", "gp_ehvi"], "has the inputs of"),
        (["--objective", "-f1"], "One with a minus is joined by an equals sign: --objective=-loss"),
        (["--objective", "f1", "--output", "here.txt"], "--output here.txt: the file's name must end with .json"),
    ],
)
def test_what_cannot_work_is_told(runs: Path, call: Any, options: "list[str]", said: str) -> None:
    status, text = call(runs, *options)
    assert status == 2
    assert said in text
