"""The whole command on stock AllenNLP classifiers that train in a blink: real trainings, real processes, real kills."""

import json
import re
import signal
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, List, Set, Tuple

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.listeners.progress import Progress
from fiesta_allennlp.selection.store import RunStore
from tests.commands.conftest import BLIND
from tests.conftest import until
from tests.listeners.tensorboard_test import scalars
from tests.run_files import num_finished, rows_of, scores_of, summary_of
from tests.warm import Command


def test_a_selection_decides_and_leaves_its_files(trained: List[str], tmp_path: Path, call: Any) -> None:
    run = tmp_path / "run"
    notify = 'echo "$FIESTA_EVENT: $FIESTA_MESSAGE"'
    status, output = call(
        *trained, "-s", run, "--metric", "accuracy", "--workers", 2, "--notify", notify, "--keep", "best"
    )
    assert status == 0, output
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
    assert str(config["dataset_reader"]["split_seed"]) in {r["split_seed"] for r in rows}
    (archive,) = run.glob("evaluations/*/model.tar.gz")
    assert max(able) in [float(r["score"]) for r in rows if f"{r['candidate']}-{r['replicate']}" == archive.parent.name]


def test_independent_splits_are_all_different(trained: List[str], tmp_path: Path, call: Any) -> None:
    """By a metric to minimise, which is told and kept with its natural sign."""
    run = tmp_path / "run"
    status, output = call(*trained, "-s", run, "--metric=-loss", "--budget", 4, "--splits", "independent")
    assert status == 0, output
    assert re.search(r"able is the best.*, by loss \(lower is better\), after 4", output)
    rows = rows_of(run)
    assert len({row["split_seed"] for row in rows}) == len(rows) == 4
    assert all(0 < float(row["score"]) == float(row["metric:test_loss"]) and row["metric"] == "loss" for row in rows)
    summary = summary_of(run)
    assert (summary["metric"], summary["best"]) == ("-loss", "able")
    assert summary["candidates"][0]["mean"] < summary["candidates"][1]["mean"]


def test_a_dry_run_tells_the_plan_and_writes_nothing(trained: List[str], reviews: Path, call: Any) -> None:
    before = sorted(reviews.iterdir())
    status, output = call(*trained, "--dry-run")
    assert status == 0, output
    assert "Comparing by accuracy, the only metric" in output
    assert "Metric: test accuracy; the highest mean wins." in output
    assert "Pool: 72 instances (official sizes: train 40, validation 12, test 20)" in output
    assert "Every split: train 40, validation 12, test 20; no groups" in output
    assert "at least 20 and at most 100 runs" in output
    assert "type allennlp fiesta-plan --gap GAP --sd SD --candidates 2; or" in output
    assert sorted(reviews.iterdir()) == before


def test_the_stopping_rule_is_in_the_plan_and_what_cannot_help_is_noted(trained: List[str], call: Any) -> None:
    options = ["--stop", "glr", "--confidence", 0.9, "--workers", 5000, "-o", '{"random_seed": 3}']
    status, output = call(*trained, "--metric=-loss", "--dry-run", *options)
    assert status == 0, output
    assert "Note: --workers 5000 is more than the 100 runs that are possible." in output
    assert "that this machine's cores have room for" in output
    assert "Note: every run gets its own seeds, instead of the seeds in the config of able, blind." in output
    assert "top_two (confidence 0.9, stop glr)" in output
    assert "Metric: test loss; the lowest mean wins." in output


def test_a_candidate_that_fails_is_told_with_its_reason_and_the_others_go_on(
    candidates: List[str], write_config: Callable[..., Path], tmp_path: Path, call: Any
) -> None:
    diverging = {"trainer": {"optimizer": {"type": "sgd", "lr": 1e18}, "num_epochs": 2, "cuda_device": -1}}
    bad = write_config("diverging", diverging)
    status, output = call(*candidates, bad, "-s", tmp_path / "run", "--metric", "accuracy", "--workers", 2)
    assert status == 0, output
    summary = summary_of(tmp_path / "run")
    entry = summary["candidates"][2]
    assert (entry["name"], entry["withdrawn"], entry["mean"]) == ("diverging", True, None)
    # The second worker may have been at a fourth training when the third failure came in.
    assert entry["failures"] == len(entry["failure_reasons"]) in (3, 4)
    assert all("nan loss" in reason for reason in entry["failure_reasons"])
    assert re.search(r"diverging +0 +[34] +- +- +failed", output)
    assert re.search(r"failed: diverging-\d, diverging-\d, diverging-\d.* error: ValueError: nan loss", output)
    assert summary["best"] == "able"
    failed = [row for row in rows_of(tmp_path / "run") if row["status"] == "failed"]
    assert [(row["candidate"], row["score"]) for row in failed] == [("diverging", "")] * entry["failures"]


def test_tensorboard_follows_a_selection_and_its_resumption(candidates: List[str], tmp_path: Path, call: Any) -> None:
    run = tmp_path / "run"
    call(*candidates, "-s", run, "--metric", "accuracy", "--budget", 4, "--tensorboard")
    status, output = call("-s", run, "--recover", "--budget", 6)
    assert status == 0, output
    assert len(list((run / "tensorboard").iterdir())) == 2
    written = scalars(run / "tensorboard")
    assert set(written) >= {"trainings/able", "failures/blind", "accuracy/able", "accuracy/blind", "P_best/able"}
    assert written["trainings/able"][-1] == (6, 3)
    scores = [float(score) for name, _, score in scores_of(run) if name == "able"]
    assert sorted(score for _, score in written["accuracy/able"]) == pytest.approx(sorted(scores))
    call("-s", run, "--recover", "--budget", 8, "--no-tensorboard")
    assert len(list((run / "tensorboard").iterdir())) == 2
    (run / "report").mkdir()
    call(*candidates, "-s", run, "--metric", "accuracy", "--budget", 4, "--force")
    assert not (run / "tensorboard").exists()
    assert not (run / "report").exists(), "it was about the selection that is gone"


def test_max_hours_ends_it_undecided_and_a_larger_total_goes_on(
    candidates: List[str], tmp_path: Path, call: Any
) -> None:
    run = tmp_path / "run"
    options = ["--metric", "accuracy", "--budget", 4, "--workers", "auto"]
    status, output = call(*candidates, "-s", run, *options, "--max-hours", 1e-9)
    assert status == 0, output
    assert re.search(r"Training [1-9]\d* at once on this machine, each with 1 CPU", output)
    assert "Inconclusive after 0 runs of 2 candidates, all that --max-hours allows." in output
    assert f"Continue with a larger total: allennlp fiesta-select -s {run} --recover --max-hours HOURS" in output
    assert summary_of(run)["stopped_by"] == "max_hours"
    status, output = call("-s", run, "--recover")
    assert "all that --max-hours allows" in output
    status, output = call("-s", run, "--recover", "--max-hours", 1)
    assert status == 0, output
    assert len(scores_of(run)) == 4


def start(*arguments: Any) -> Command:
    return Command(["-m", "allennlp", "fiesta-select", *arguments])


@pytest.fixture(scope="module")
def uninterrupted() -> Set[Tuple[str, str, str]]:
    """The scores of the selection that is stopped below. The first test that needs them makes them."""
    return set()


@pytest.mark.xdist_group("stopped")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_selection_recovers_to_the_uninterrupted_one(
    trained: List[str],
    tmp_path: Path,
    call: Any,
    uninterrupted: Set[Tuple[str, str, str]],
    how: signal.Signals,
) -> None:
    options = ["--metric", "accuracy", "--strategy", "non_adaptive_fb", "--budget", "8", "--seed", "77"]
    process = start(*trained, "-s", tmp_path / "stopped", *options)
    until(lambda: num_finished(tmp_path / "stopped") >= 3 or process.poll() is not None, seconds=120)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130, output
        assert f"allennlp fiesta-select -s {tmp_path / 'stopped'} --recover" in output
        assert summary_of(tmp_path / "stopped")["stopped_by"] == "interrupted"
    store = RunStore(RunDirectory(tmp_path / "stopped"), create=False)
    recorded = {(e.request.name, e.score) for e in store.history(max_failures=3).evaluations}
    store.close()
    assert 2 <= len(recorded) < 8
    status, output = call("-s", tmp_path / "stopped", "--recover")
    assert status == 0, output
    if not uninterrupted:
        call(*trained, "-s", tmp_path / "whole", *options)
        uninterrupted.update(scores_of(tmp_path / "whole"))
    assert scores_of(tmp_path / "stopped") == uninterrupted
    assert recorded <= {(f"{name}-{replicate}", float(score)) for name, replicate, score in uninterrupted}


def test_a_worker_that_is_killed_costs_nothing_but_its_attempt(
    trained: List[str],
    write_config: Callable[..., Path],
    tmp_path: Path,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker kills itself in its first attempt at one evaluation, by way of a package that the run includes."""
    package = tmp_path / "deadly"
    package.mkdir()
    (package / "__init__.py").write_text(
        f"""
import os, signal
from pathlib import Path
from allennlp.training.callbacks import TrainerCallback

@TrainerCallback.register("deadly", exist_ok=True)
class Deadly(TrainerCallback):
    def on_start(self, trainer, is_primary=True, **kwargs):
        marker = Path({str(tmp_path)!r}) / "died"
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    deadly = {"trainer": {**BLIND["trainer"], "callbacks": ["deadly"]}}
    trained[1] = str(write_config("blind", deadly))
    config = tmp_path / "settings.jsonnet"
    config.write_text("{ metric: 'accuracy', budget: 4, seed: 3, include_package: ['deadly'] }")
    status, output = call(*trained, "-s", tmp_path / "killed", "--config", config)
    assert status == 0, output
    assert "blind-0 failed (killed)" in output
    status, output = call(*trained, "-s", tmp_path / "calm", "--config", config)
    assert status == 0, output
    assert "failed (killed)" not in output
    assert scores_of(tmp_path / "killed") == scores_of(tmp_path / "calm")
    assert len(scores_of(tmp_path / "killed")) == 4


def test_a_selection_goes_on_when_nobody_reads_its_output(candidates: List[str], tmp_path: Path) -> None:
    process = start(*candidates, "-s", tmp_path / "run", "--metric", "accuracy", "--budget", "4")
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert summary_of(tmp_path / "run")["num_evaluations"] == 4


def test_data_that_change_in_the_middle_end_the_selection(
    trained: List[str], reviews: Path, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--metric", "accuracy", "--strategy", "non_adaptive_fb", "--seed", 5, "--budget", 4]
    assert call(*trained, "-s", tmp_path / "whole", *options)[0] == 0
    run, train = tmp_path / "run", reviews / "train.jsonl"
    text = train.read_text()
    on_outcome = Progress.on_outcome

    def change(progress: Progress, outcome: Any) -> None:
        on_outcome(progress, outcome)
        train.write_text(text.replace("food", "fare", 1))

    monkeypatch.setattr(Progress, "on_outcome", change)
    status, output = call(*trained, "-s", run, *options)
    assert status == 2, output
    assert f"{train} has changed since the selection began" in output
    assert "continue with --recover" in output and "Traceback" not in output
    monkeypatch.setattr(Progress, "on_outcome", on_outcome)
    with closing(RunStore(RunDirectory(run), create=False)) as store:
        history = store.history(max_failures=3)
    assert (len(history.evaluations), len(history.pending), history.failures) == (1, 1, ())
    status, output = call("-s", run, "--recover")
    assert (status, "scores on different data cannot be compared" in output) == (2, True), output
    train.write_text(text)
    assert call("-s", run, "--recover")[0] == 0
    assert scores_of(run) == scores_of(tmp_path / "whole")


def test_official_splits_repeat_from_the_config_alone(
    trained: List[str], tmp_path: Path, reviews: Path, call: Any
) -> None:
    run = tmp_path / "run"
    official = [*trained, "--metric", "accuracy", "--splits", "official"]
    status, output = call(*official, "-s", run, "--budget", 4, "--seed", 5)
    assert status == 0, output
    assert "only seeds varied. P(best) is therefore about new seeds on this one split." in output
    config = json.loads((run / "evaluations" / "able-0" / "config.json").read_text())
    assert config["dataset_reader"] == json.loads(Path(trained[0]).read_text())["dataset_reader"]
    assert config["test_data_path"] == str(reviews / "test.jsonl")
    status, output = call("-s", run, "--recover", "--budget", 6)
    assert status == 0, output
    summary = summary_of(run)
    assert (summary["splits"], summary["score"], summary["num_evaluations"]) == ("official", "test", 6)
    assert summary["belief"] == {"type": "unpaired"}
    assert len({row["split_seed"] for row in rows_of(run)}) == 6
    made = report(run)
    assert "new seeds on this one split" in made.decision[2]
    assert dict(made.checklist)["splits"].startswith("official: the sets of the configs")
    assert "--splits official" in dict(made.checklist)["command to repeat it all"]
    assert {comparison.num_pairs for comparison in made.comparisons} == {0}
    status, output = call("-s", run, "--recover", "--belief", "split_paired")
    assert (status, "--belief split_paired compares scores on splits" in output) == (2, True)
    status, output = call("-s", run, "--recover", "--splits", "shared")
    assert (status, '--splits was "official" and is now "shared"' in output) == (2, True)


def test_one_file_is_enough_with_ratios_and_may_be_scored_by_its_validation_set(
    trained: List[str], tmp_path: Path, reviews: Path, call: Any
) -> None:
    one = ["-o", json.dumps({"validation_data_path": None, "test_data_path": None}), "--metric", "accuracy"]
    status, output = call(*trained, *one, "--dry-run", "--split-ratios", "0.5,0.2,0.3", "--budget", 2)
    assert status == 0, output
    assert "Pool: 40 instances (official sizes: train 40)" in output
    assert "Every split: train 20, validation 8, test 12; no groups" in output
    assert "Some candidates run only once" in output and "To estimate how many" not in output
    run, options = tmp_path / "run", ["--split-ratios", "0.7,0.3", "--score", "validation"]
    status, output = call(*trained, *one, "-s", run, *options, "--budget", 2)
    assert status == 0, output
    assert "validation accuracy" in output
    assert "The scores are of the validation set" in output
    rows = rows_of(run)
    assert [row["score"] for row in rows] == [row["metric:best_validation_accuracy"] for row in rows]
    assert "metric:test_accuracy" not in rows[0]
    made = report(run)
    assert (made.scored, made.development) == ("validation", None)
    status, output = call("-s", run, "--recover", "--split-ratios", "0.6,0.4")
    assert (status, "--split-ratios was [0.7, 0.3] and is now [0.6, 0.4]" in output) == (2, True)
