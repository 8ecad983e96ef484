"""The commands that simulate selections: replays, plans, and the loop that asks what to run next."""

import json
from pathlib import Path
from typing import Callable, List, Sequence

import pytest

from fiesta_allennlp.tables.simulation import simulator
from fiesta_allennlp.tables.simulation.simulator import MAX_CHUNK_SIZE, Repetition, Simulator
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import NextSettings
from tests.choosing.gate_test import make_rows
from tests.commands.conftest import Call
from tests.score_tables import write_split_table
from tests.selections import write_selection

QUICK = ["--repetitions", "4", "--seed", "5"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    scores = {"low": [0.1, 0.2, 0.1, 0.2], "high": [0.8, 0.9, 0.8, 0.9], "mid": [0.5, 0.6, 0.5, 0.6]}
    return write_split_table(tmp_path / "scores.csv", scores, 2)


def test_a_replay_tells_what_it_took_and_leaves_its_files(table: Path, tmp_path: Path, call: Call) -> None:
    output = tmp_path / "out.json"
    options = ["--budget", 6, "--batch-size", 2, "--where", "candidate=high,low"]
    text = call.command("replay").done(table, *QUICK, *options, "--output", output)
    assert "4 simulated selections of sequential_halving" in text and "the best in 100.0%" in text
    summary = json.loads(output.read_text())
    assert (summary["default"]["repetitions"], summary["best"], summary["seed"]) == (4, "high", "5")
    assert (summary["batch_size"], summary["splits"], summary["strategy"]["budget"]) == (2, "shared", 6)
    assert [candidate["name"] for candidate in summary["candidates"]] == ["low", "high"]


def test_an_interrupted_replay_prints_what_has_finished(
    table: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    def simulate(ways: Sequence[Simulator], repetitions: range) -> List[List[Repetition]]:
        if MAX_CHUNK_SIZE in repetitions:
            ctrl_c()
        return whole(ways, repetitions)

    whole = simulator.simulate_ways
    monkeypatch.setattr(simulator, "simulate_ways", simulate)
    options = ["--budget", 8, "--repetitions", MAX_CHUNK_SIZE + 1]
    status, text = call.command("replay")(table, *options, "--output", tmp_path / "out.json")
    assert status == 130, text
    summary = json.loads((tmp_path / "out.json").read_text())
    assert (summary["default"]["repetitions"], summary["interrupted"]) == (MAX_CHUNK_SIZE, True)


def test_a_plan_by_numbers_tells_and_leaves_its_file(call: Call, tmp_path: Path) -> None:
    output = tmp_path / "plan.json"
    numbers = ["--gap", 1, "--sd", 0.01, "--split-sd", 0.02, "--candidates", 2, "--seconds", 3600, "--confidence", 0.8]
    text = call.command("plan").done(*numbers, "--repetitions", 2, "--seed", 5, "--output", output)
    # 3 starting runs of each are the fewest
    assert "6 runs" in text and "6 h 0 min" in text
    content = json.loads(output.read_text())
    assert content["default"]["runs"]["mean"] == 6
    assert (content["seed"], content["strategy"]["confidence"]) == ("5", 0.8)
    assert content["sd"] == 0.01
    assert [entry["margin"] for entry in content["margins"]] == [0.002, 0.004]


def test_an_interrupted_plan_says_so(call: Call, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]) -> None:
    monkeypatch.setattr(simulator, "simulate_ways", lambda *_: ctrl_c())
    assert call.command("plan")("--gap", 1, "--sd", 1)[0] == 130
    assert "nowhere" in call.command("plan").refused("--gap", 1, "--sd", 1, "--output", "nowhere/plan.json")


def test_the_command_names_runs_until_it_is_decided(tmp_path: Path, call: Call) -> None:
    """`gate_test.py` has a loop that asks for them."""
    path, call = tmp_path / "s.csv", call.command("next")
    path.write_text("candidate,split,seed,score\n")
    assert call(path, "--candidates", "a,b", "--require-decision")[0] == 3
    *rows, runs_line, _, _ = call.done(path, "--candidates", "a,b", "--workers", 2, "--format", "csv").splitlines()
    assert rows == ["a,0,1", "b,0,2"] and "of 2 candidates" in runs_line  # the last three are on the standard error
    write_split_table(path, {"a": [0.5, 0.502, 0.501, 0.503], "b": [0.601, 0.6, 0.604, 0.602]})
    told = call.done(path, "--require-decision")
    assert "b is the best with probability" in told and "Stop: it is decided" in told
    told = call.done(path, "--format", "json")
    assert '"stopped_by": "confidence"' in told and '"next": []' in told


def test_the_output_of_any_table_needs_no_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(
        "model,lr,fold,rep,err,status\na,1,x,1,.2,FINISHED\na,1,x,2,.3,FAILED\nb,1,x,1,.4,FINISHED\n"
    )
    call = call.command("next")
    options = ("--columns", "candidate=model+lr,split=fold,seed=rep", "--score=-err", "--output", "runs.csv")
    call.done("t.csv", *options)
    assert Path("runs.csv").read_text() == (
        "candidate,split,seed,score,metric,seconds\na+1,x,1,0.2,'-err,\na+1,x,2,failed,'-err,\nb+1,x,1,0.4,'-err,\n"
    )
    again = read_run_table(Path("runs.csv"), NextSettings())
    assert (again.metric.minimise, again.scores) == (True, {"a+1": [0.2], "b+1": [0.4]})
    text = call.refused("t.csv", "--score", "err", "--minimise", "--output", "runs.csv", "--format", "json")
    assert "allennlp fiesta-next t.csv --minimise --output runs.csv --format json --score err --columns" not in text
    assert "--minimise --output runs.csv --format json" in text, "every command keeps what was typed"


def test_no_output_overwrites_a_file_of_the_table(tmp_path: Path, call: Call) -> None:
    rows = ["candidate,task,seed,score", *(f"{name},{task},{k},0.{k}1" for name in "ab" for task in "xy" for k in "12")]
    (tmp_path / "scores.csv").write_text(text := "\n".join(rows))
    for name in ("next", "plan", "report"):
        output = tmp_path if name == "report" else tmp_path / "scores.csv"
        said = call.command(name).refused(tmp_path / "scores.csv", "--where", "task=x", "--output", output)
        assert "scores.csv is a file" in said
    assert (tmp_path / "scores.csv").read_text() == text
    assert "does not exist" in call.command("next").refused(tmp_path / "scores.csv", "--output", "absent/runs.csv")
    options = "--scale", "sd=sds.csv", "--output", tmp_path / "runs.csv"
    call.command("next").refused(tmp_path / "scores.csv", *options, said="--output writes the scores")


def test_no_output_overwrites_a_file_of_a_selection(tmp_path: Path, call: Call) -> None:
    write_selection(tmp_path / "run", {"a": [0.8, 0.9, 0.85], "b": [0.6, 0.7, 0.65]}).close()
    store = tmp_path / "run" / "store.sqlite"
    content = store.read_bytes()
    (tmp_path / "link").symlink_to(store)
    for output in (store, store.with_name("store.lock"), tmp_path / "link"):
        said = call.command("plan").refused(tmp_path / "run", "--output", output)
        assert f"--output {output} is among the files" in said
        if output != tmp_path / "link":
            place = output.with_name("next")
            call.command("select").refused("a=x {seed}", "b=x {seed}", "--metric=f", "-s", place, said="-s .*/next is")
    assert store.read_bytes() == content
    call.command("plan").done(tmp_path / "run", *QUICK, "--output", tmp_path / "run" / "plan.json")


def test_the_status_of_a_gate_is_that_of_the_verdict(tmp_path: Path, call: Call) -> None:
    statuses = []
    for mean in (0.91, 0.8995, 0.88, 0.8955):
        rows = ["{candidate},{seed},{score}".format(**row) for row in make_rows({"main": 0.9, "pr": mean})]
        (tmp_path / "scores.csv").write_text("\n".join(["candidate,seed,score", *rows]))
        statuses.append(call.command("next")(tmp_path / "scores.csv", "--against=main", "--max-drop=0.005")[0])
    assert statuses == [0, 0, 4, 3]
