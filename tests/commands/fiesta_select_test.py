"""The whole command on stock AllenNLP classifiers that train in a blink: real trainings, real processes, real kills."""

import json
import signal
from pathlib import Path
from typing import Any, List

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.reports.paragraph import build_checklist
from fiesta_allennlp.reports.progress import LiveTable
from fiesta_allennlp.reports.report_files import render_html
from fiesta_allennlp.selecting.loop import WorkingTime
from tests.commands.conftest import EQUALLY, GOOD, POOR, Call, Selections, history_of, scores_by_seed
from tests.conftest import HAS_ALLENNLP, until
from tests.run_files import num_finished, rows_of, scores_of, summary_of
from tests.warm import Command


def test_a_selection_decides_and_leaves_its_files(trained: List[str], run: Path, call: Call) -> None:
    options = ["--workers", 2, "--keep", "best", "--seed", 7]
    assert "able is the best with probability" in call.done(*trained, "-s", run, "--metric", "accuracy", *options)
    summary = summary_of(run)
    assert (summary["best"], summary["stopped_by"], summary["strategy"]["type"]) == ("able", "confidence", "top_two")
    assert summary["confidence"] >= 0.95 and summary["belief"] == {"type": "moderated_t"}
    assert (summary["metric"], summary["splits"], summary["margin"]) == ("accuracy", "shared", 0.0)
    rows = rows_of(run)
    assert len(rows) == summary["num_evaluations"]
    able = [float(r["score"]) for r in rows if r["candidate"] == "able"]
    assert float(rows[0]["metric:test_accuracy"]) == float(rows[0]["score"])
    assert len({r["split_seed"] for r in rows if r["replicate"] == "0"}) == 1
    config = json.loads((run / "evaluations" / "able-0" / "config.json").read_text())
    assert config["trainer"]["optimizer"] == {"type": "adam", "lr": 0.1}
    assert str(config["dataset_reader"]["split_seed"]) in {r["split_seed"] for r in rows}
    (archive,) = run.glob("evaluations/*/model.tar.gz")
    assert max(able) in [float(r["score"]) for r in rows if f"{r['candidate']}-{r['replicate']}" == archive.parent.name]


def test_an_old_selection_is_deleted_by_force_alone(selections: Selections, run: Path) -> None:
    selections.begin("--budget", 2)
    (run / "tensorboard").mkdir()  # of an earlier version
    before = (run / "evaluations.csv").read_text()
    (run / "notes.txt").write_text("not ours")
    selections.refused(*selections.typed("--budget", 2), said="already contains a selection")
    assert (run / "evaluations.csv").read_text() == before
    selections.begin("--budget", 2, "--force")
    assert not (run / "tensorboard").exists() and (run / "notes.txt").exists()
    assert (run / "evaluations.csv").read_text() != before


def test_candidates_without_a_run_are_named_where_the_time_ends_in_the_first_round(
    selections: Selections, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkingTime, "seconds_left", property(lambda working_time: 0.0 if num_finished(run) else 9.9))
    output = selections.begin(selections.write("third", POOR), "--max-hours", 1)
    told = "Open after 1 run of 3 candidates: --max-hours was reached. Without a finished run: blind, third."
    assert told in " ".join(output.split())
    assert summary_of(run)["without_runs"] == ["blind", "third"]
    assert "finished run: blind, third." in render_html(report(run), {})


def start(*arguments: Any) -> Command:
    typed = ["allennlp", "fiesta-select"] if HAS_ALLENNLP else ["fiesta_allennlp", "select"]
    return Command(["-m", *typed, *arguments, "--metric", "accuracy"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_selection_recovers_to_the_uninterrupted_one(
    selections_of_trained: Selections, run: Path, call: Call, how: signal.Signals
) -> None:
    """AllenNLP configs that are killed, and programs that are interrupted."""
    slow = [selections_of_trained.write(name, f"sleep 0.15; {s}") for name, s in (("able", GOOD), ("blind", POOR))]
    given = [*(slow if how == signal.SIGINT else selections_of_trained.candidates), *EQUALLY, "--budget", 6]
    process = start(*given, "-s", run, "--seed", 77)
    until(lambda: num_finished(run) >= 2 or process.poll() is not None)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130, output
        assert f"allennlp fiesta-select -s {run} --recover" in output
        assert summary_of(run)["stopped_by"] == "interrupted"
    recorded = {(e.request.candidate, str(e.request.replicate), str(e.score)) for e in history_of(run).evaluations}
    assert 1 <= len(recorded) < 6
    call.done("-s", run, "--recover")
    if how == signal.SIGINT:
        whole = scores_by_seed(77, 6)
    else:
        call.done(*given, "-s", run.with_name("whole"), "--seed", 77, "--metric", "accuracy")
        whole = scores_of(run.with_name("whole"))
    assert recorded <= scores_of(run) == whole


def test_a_selection_goes_on_when_nobody_reads_its_output(candidates: List[str], run: Path) -> None:
    process = start(*candidates, "-s", run, "--budget", "4")
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert summary_of(run)["num_evaluations"] == 4


def test_data_that_change_in_the_middle_end_the_selection(
    selections: Selections, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is in the log, and shown until the selection goes on."""
    train = reviews / "train.jsonl"
    text, on_outcome = train.read_text(), LiveTable.on_outcome

    def change(progress: LiveTable, outcome: Any) -> None:
        on_outcome(progress, outcome)
        train.write_text(text.replace("food", "fare", 1))

    with monkeypatch.context() as patched:
        patched.setattr(LiveTable, "on_outcome", change)
        said = f"{train} has changed since the selection began.*--recover"
        output = selections.refused(*selections.typed(*EQUALLY, "--seed", 5, "--budget", 4), said=said)
    status, log = selections.call.command("status"), selections.run / "selection.log"
    assert f"ended by an error: {output.partition('error: ')[2].splitlines()[0]}" in log.read_text()
    assert "ended with an error: " in status.done(selections.run)
    history = history_of(selections.run)
    assert (len(history.evaluations), len(history.pending), history.failures) == (1, 1, ())
    assert "Restore the original data" in selections.refused("--recover")
    train.write_text(text)
    selections.resume()
    assert "4 runs, stopped by budget" in log.read_text()
    assert "ended with an error" not in status.done(selections.run)
    assert scores_of(selections.run) == scores_by_seed(5, 4)


def test_official_splits_repeat_from_the_config_alone(selections_of_trained: Selections, reviews: Path) -> None:
    run, refused = selections_of_trained.run, selections_of_trained.refused
    selections_of_trained.begin("--splits", "official", "--budget", 4, "--seed", 5)
    config = json.loads((run / "evaluations" / "able-0" / "config.json").read_text())
    able = Path(selections_of_trained.candidates[0])
    assert config["dataset_reader"] == json.loads(able.read_text())["dataset_reader"]
    assert config["test_data_path"] == str(reviews / "test.jsonl")
    summary = summary_of(run)
    assert (summary["splits"], summary["score"], summary["belief"]) == ("official", "test", {"type": "moderated_t"})
    assert len({row["split_seed"] for row in rows_of(run)}) == 4
    made = report(run)
    assert "--splits official" in dict(build_checklist(made))["command to repeat it all"]
    assert {comparison.num_pairs for comparison in made.comparisons} == {0}
    assert '--splits was "official" and is now "shared"' in refused("--recover", "--splits", "shared")


def test_one_file_is_enough_with_ratios_and_may_be_scored_by_its_validation_set(
    selections_of_trained: Selections, run: Path
) -> None:
    one = ["-o", json.dumps({"validation_data_path": None, "test_data_path": None}), "--budget", 2]
    output = selections_of_trained.begin(*one, "--dry-run", "--split-ratios", "0.5,0.2,0.3")
    assert "40 instances" in output and "train 20, validation 8, test 12" in output
    output = selections_of_trained.begin(*one, "--split-ratios", "0.7,0.3", "--score", "validation")
    assert "on the validation sets" in output
    rows = rows_of(run)
    assert [row["score"] for row in rows] == [row["metric:best_validation_accuracy"] for row in rows]
    assert "metric:test_accuracy" not in rows[0]
    made = report(run)
    assert made.result.scored == "validation"
    output = selections_of_trained.refused("--recover", "--split-ratios", "0.6,0.4")
    assert "--split-ratios was [0.7, 0.3] and is now [0.6, 0.4]" in output
