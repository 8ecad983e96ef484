"""The whole command on stock AllenNLP classifiers that train in a blink: real trainings, real processes, real kills."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.listeners.progress import Progress
from tests.commands.conftest import GOOD, POOR, Call, Selections, history_of
from tests.conftest import until
from tests.listeners.tensorboard_test import scalars
from tests.run_files import entry_of, num_finished, rows_of, scores_of, summary_of
from tests.warm import Command


def test_a_selection_decides_and_leaves_its_files(trained: List[str], run: Path, call: Call) -> None:
    options = ["--workers", 2, "--notify", 'echo "$FIESTA_EVENT: $FIESTA_MESSAGE"', "--keep", "best"]
    output = call.done(*trained, "-s", run, "--metric", "accuracy", *options)
    assert "able is the best with probability" in output
    until(lambda: "decision: able after" in (run / "notify.log").read_text())
    summary = summary_of(run)
    assert (summary["best"], summary["stopped_by"]) == ("able", "confidence")
    assert summary["confidence"] >= 0.95
    assert summary["num_evaluations"] == sum(c["num_evaluations"] for c in summary["candidates"])
    assert summary["strategy"]["type"] == "top_two"
    assert summary["belief"] == {"type": "split_paired"}
    assert (summary["metric"], summary["splits"], summary["margin"]) == ("accuracy", "shared", 0.0)
    rows = rows_of(run)
    assert len(rows) == summary["num_evaluations"]
    able = [float(r["score"]) for r in rows if r["candidate"] == "able"]
    entry = summary["candidates"][0]
    assert entry["mean"] == pytest.approx(sum(able) / len(able))
    assert float(rows[0]["metric:test_accuracy"]) == float(rows[0]["score"])
    assert len({r["split_seed"] for r in rows if r["replicate"] == "0"}) == 1
    assert len({r["random_seed"] for r in rows}) == len(rows)
    config = json.loads((run / "evaluations" / "able-0" / "config.json").read_text())
    assert config["trainer"]["optimizer"] == {"type": "adam", "lr": 0.1}
    assert str(config["dataset_reader"]["split_seed"]) in {r["split_seed"] for r in rows}
    (archive,) = run.glob("evaluations/*/model.tar.gz")
    assert max(able) in [float(r["score"]) for r in rows if f"{r['candidate']}-{r['replicate']}" == archive.parent.name]


def test_independent_splits_are_all_different(trained: List[str], run: Path, call: Call) -> None:
    """By a metric to minimise, which is told and kept with its natural sign."""
    output = call.done(
        *trained, "-s", run, "--metric=-loss", "--budget", 4, "--splits", "independent", "--keep", "best"
    )
    assert re.search(r"able is the best.*, by loss \(lower is better\), after 4", output)
    rows = rows_of(run)
    assert len({row["split_seed"] for row in rows}) == len(rows) == 4
    assert all(0 < float(row["score"]) == float(row["metric:test_loss"]) and row["metric"] == "loss" for row in rows)
    summary = summary_of(run)
    assert (summary["metric"], summary["best"]) == ("-loss", "able")
    assert summary["candidates"][0]["mean"] < summary["candidates"][1]["mean"]
    (archive,) = run.glob("evaluations/*/model.tar.gz")
    losses = {f"able-{row['replicate']}": float(row["score"]) for row in rows if row["candidate"] == "able"}
    assert archive.parent.name == min(losses, key=lambda name: losses[name])


def test_a_dry_run_tells_the_plan_and_writes_nothing(trained: List[str], reviews: Path, call: Call) -> None:
    before = sorted(reviews.iterdir())
    output = call.done(*trained, "--dry-run")
    assert "Comparing by accuracy, the only metric" in output
    assert "Metric: test accuracy; the highest mean wins." in output
    assert "Pool: 72 instances (official sizes: train 40, validation 12, test 20)" in output
    assert "Every split: train 40, validation 12, test 20; no groups" in output
    assert "at least 20 and at most 100 runs" in output
    assert "type allennlp fiesta-plan --gap GAP --sd SD --candidates 2; or" in output
    assert sorted(reviews.iterdir()) == before
    options = ["--stop", "glr", "--confidence", 0.9, "--workers", 5000, "-o", '{"random_seed": 3}']
    output = call.done(*trained, "--metric=-loss", "--dry-run", *options)
    assert "Note: --workers 5000 exceeds" in output
    assert "Note: every run gets its own seeds, which replace the seeds in the config of able, blind." in output
    assert "top_two (confidence 0.9, stop glr)" in output
    assert "Metric: test loss; the lowest mean wins." in output


def test_a_candidate_that_fails_is_told_with_its_reason_and_the_others_go_on(
    selections: Selections, write_config: Callable[..., Path], run: Path
) -> None:
    optimizer = {"type": "sgd", "lr": 1e18}
    bad = write_config("diverging", {"trainer": {"optimizer": optimizer, "num_epochs": 2, "cuda_device": -1}})
    output = selections.begin(bad, "--workers", 2)
    entry = entry_of(run, "diverging")
    assert (entry["withdrawn"], entry["mean"], summary_of(run)["best"]) == (True, None, "able")
    # The second worker may have been at a fourth training when the third failure came in.
    assert entry["failures"] == len(entry["failure_reasons"]) in (3, 4)
    assert re.search(r"diverging +0 +[34] +- +- +failed", output)
    assert re.search(r"failed: diverging-\d, diverging-\d, diverging-\d.* error: ValueError: nan loss", output)
    scores = {row["score"] for row in rows_of(run) if row["candidate"] == "diverging"}
    assert scores == {""}


def test_tensorboard_follows_a_selection_and_its_resumption(selections: Selections, run: Path) -> None:
    selections.begin("--budget", 4, "--tensorboard")
    selections.resume("--budget", 6)
    assert len(list((run / "tensorboard").iterdir())) == 2
    assert scalars(run / "tensorboard")["trainings/able"][-1] == (6, 3)
    selections.resume("--budget", 8, "--no-tensorboard")
    assert len(list((run / "tensorboard").iterdir())) == 2
    (run / "report").mkdir()
    selections.begin("--budget", 4, "--force")
    assert not (run / "tensorboard").exists()
    assert not (run / "report").exists(), "it was about the selection that is gone"


def test_max_hours_ends_it_undecided_and_a_larger_total_goes_on(selections: Selections, run: Path) -> None:
    output = selections.begin("--budget", 4, "--workers", "auto", "--max-hours", 1e-9)
    assert re.search(r"Training [1-9]\d* at once on this machine, each with 1 CPU", output)
    assert "Inconclusive after 0 runs of 2 candidates, all that --max-hours allows." in output
    assert f"Continue with a larger total: allennlp fiesta-select -s {run} --recover --max-hours HOURS" in output
    assert summary_of(run)["stopped_by"] == "max_hours"
    assert "all that --max-hours allows" in selections.resume()
    selections.resume("--max-hours", 1)
    assert len(scores_of(run)) == 4


def start(*arguments: Any) -> Command:
    return Command(["-m", "allennlp", "fiesta-select", *arguments, "--metric", "accuracy"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_selection_recovers_to_the_uninterrupted_one(
    trained: List[str], write_program: Callable[..., str], run: Path, call: Call, how: signal.Signals
) -> None:
    """AllenNLP configs that are killed, and programs that are interrupted."""
    slow = [write_program(name, f"sleep 0.15; {script}") for name, script in (("one", GOOD), ("two", POOR))]
    given = [*(slow if how == signal.SIGINT else trained), "--strategy", "non_adaptive_fb", "--budget", 8]
    process = start(*given, "-s", run, "--seed", 77)
    until(lambda: num_finished(run) >= 3 or process.poll() is not None)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130, output
        assert f"allennlp fiesta-select -s {run} --recover" in output
        assert summary_of(run)["stopped_by"] == "interrupted"
    recorded = {(e.request.candidate, str(e.request.replicate), str(e.score)) for e in history_of(run).evaluations}
    assert 2 <= len(recorded) < 8
    call.done("-s", run, "--recover")
    call.done(*given, "-s", run.with_name("whole"), "--seed", 77, "--metric", "accuracy")
    assert recorded <= scores_of(run) == scores_of(run.with_name("whole"))


def test_a_selection_goes_on_when_nobody_reads_its_output(candidates: List[str], run: Path) -> None:
    process = start(*candidates, "-s", run, "--budget", "4")
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert summary_of(run)["num_evaluations"] == 4


def test_data_that_change_in_the_middle_end_the_selection(
    selections: Selections, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--strategy", "non_adaptive_fb", "--seed", 5, "--budget", 4]
    whole = replace(selections, run=selections.run.with_name("whole"))
    whole.begin(*options)
    train = reviews / "train.jsonl"
    text, on_outcome = train.read_text(), Progress.on_outcome

    def change(progress: Progress, outcome: Any) -> None:
        on_outcome(progress, outcome)
        train.write_text(text.replace("food", "fare", 1))

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "on_outcome", change)
        output = selections.refused(*selections.candidates, "--metric", "accuracy", *options)
    assert f"{train} has changed since the selection began" in output and "continue with --recover" in output
    history = history_of(selections.run)
    assert (len(history.evaluations), len(history.pending), history.failures) == (1, 1, ())
    assert "new scores would not be comparable" in selections.refused("--recover")
    train.write_text(text)
    selections.resume()
    assert scores_of(selections.run) == scores_of(whole.run)


def test_official_splits_repeat_from_the_config_alone(
    selections_of_trained: Selections, trained: List[str], reviews: Path, run: Path
) -> None:
    output = selections_of_trained.begin("--splits", "official", "--budget", 4, "--seed", 5)
    assert "only seeds varied. P(best) is therefore about new seeds on this one split." in output
    config = json.loads((run / "evaluations" / "able-0" / "config.json").read_text())
    assert config["dataset_reader"] == json.loads(Path(trained[0]).read_text())["dataset_reader"]
    assert config["test_data_path"] == str(reviews / "test.jsonl")
    selections_of_trained.resume("--budget", 6)
    summary = summary_of(run)
    assert (summary["splits"], summary["score"], summary["num_evaluations"]) == ("official", "test", 6)
    assert summary["belief"] == {"type": "unpaired"}
    assert len({row["split_seed"] for row in rows_of(run)}) == 6
    made = report(run)
    assert "new seeds on this one split" in made.decision[2]
    assert dict(made.checklist)["splits"].startswith("official: the sets of the configs")
    assert "--splits official" in dict(made.checklist)["command to repeat it all"]
    assert {comparison.num_pairs for comparison in made.comparisons} == {0}
    refused = selections_of_trained.refused
    assert "--belief split_paired compares scores on" in refused("--recover", "--belief", "split_paired")
    assert '--splits was "official" and is now "shared"' in refused("--recover", "--splits", "shared")


def test_one_file_is_enough_with_ratios_and_may_be_scored_by_its_validation_set(
    selections_of_trained: Selections, run: Path
) -> None:
    one = ["-o", json.dumps({"validation_data_path": None, "test_data_path": None}), "--budget", 2]
    output = selections_of_trained.begin(*one, "--dry-run", "--split-ratios", "0.5,0.2,0.3")
    assert "Pool: 40 instances (official sizes: train 40)" in output
    assert "Every split: train 20, validation 8, test 12; no groups" in output
    assert "Some candidates run only once" in output and "To estimate how many" not in output
    output = selections_of_trained.begin(*one, "--split-ratios", "0.7,0.3", "--score", "validation")
    assert "validation accuracy" in output and "The scores are of the validation set" in output
    rows = rows_of(run)
    assert [row["score"] for row in rows] == [row["metric:best_validation_accuracy"] for row in rows]
    assert "metric:test_accuracy" not in rows[0]
    made = report(run)
    assert (made.scored, made.development) == ("validation", None)
    output = selections_of_trained.refused("--recover", "--split-ratios", "0.6,0.4")
    assert "--split-ratios was [0.7, 0.3] and is now [0.6, 0.4]" in output
