"""The whole command on programs: shell scripts that take no time, in real processes, with real kills."""

import json
import re
import signal
from pathlib import Path
from typing import Any, Callable, List

import psutil
import pytest

from fiesta_allennlp import report
from tests.commands.conftest import BLIND, GOOD, POOR
from tests.commands.fiesta_select_test import start
from tests.conftest import still_runs, until
from tests.run_files import num_finished, scores_of, summary_of

SETS = ("{train}", "{validation}", "{test}")
METRIC = ("--metric", "accuracy")
Write = Callable[..., str]


def test_programs_and_a_config_share_a_selection_and_its_report(
    candidates: List[str], write_config: Callable[..., Path], run: Path, call: Any
) -> None:
    given = [*candidates, write_config("stock", BLIND)]
    status, output = call(*given, "-s", run, *METRIC, "--strategy", "non_adaptive_fb", "--budget", 6)
    assert status == 0, output
    assert "able is the best" in output
    rows = scores_of(run)
    assert {name for name, _, _ in rows} == {"able", "blind", "stock"} and len(rows) == 6
    seeds = {(run / "evaluations" / f"{name}-0" / "program.json") for name in ("able", "blind")}
    splits = {json.loads(path.read_text())["run"]["seeds"]["split_seed"] for path in seeds}
    config = json.loads((run / "evaluations" / "stock-0" / "config.json").read_text())
    assert splits == {config["dataset_reader"]["split_seed"]}

    made = report(run)
    parameters = {candidate.name: candidate.num_parameters for candidate in made.candidates}
    assert parameters["able"] is None and parameters["stock"] > 0
    checklist = dict(made.checklist)
    assert checklist["metric"].endswith("best on the validation set; of able, blind as the program reports it")
    assert "fiesta_allennlp.trainings.programs.repeat" in checklist["command to repeat one run of able, blind"]


def test_a_selection_of_programs_alone_claims_nothing_of_allennlp(candidates: List[str], run: Path, call: Any) -> None:
    status, output = call(*candidates, "-s", run, *METRIC, "--strategy", "non_adaptive_fb", "--budget", 4)
    assert status == 0, output
    assert "Checking 2 candidates: reading the data ..." in output
    checklist = dict(report(run).checklist)
    assert checklist["metric"] == "accuracy on the test set, as the programs report it"
    assert "command to repeat one run" not in checklist
    assert "records and groups" in checklist["data fingerprint (SHA-256)"]


def test_each_way_to_fail_is_told_and_the_others_go_on(
    candidates: List[str], write_program: Write, run: Path, call: Any
) -> None:
    """One that hangs, with its child, is killed; one that leaves a child behind keeps its score."""
    hang = 'sleep 601 & echo $! > "$5/../../../hung"; wait'
    leave = f'setsid sleep 602 >/dev/null 2>&1 & echo $! > "$5/../../../left"; {POOR}'
    bad = [
        write_program("silent", "true"),
        write_program("nan", "echo accuracy nan"),
        write_program("other", 'echo \'{"f1": 0.5, "loss": 1}\''),
        write_program("broken", "echo no such layer >&2; exit 3"),
        write_program("hanging", hang),
        write_program("unwritten", "true", metrics="{directory}/metrics.json"),
        write_program("outside", f'echo x > "$5/../../../outside"; {POOR}'),
        write_program("leaving", leave),
    ]
    options = ["--strategy", "non_adaptive_fb", "--budget", 20, "--max-failures", 1, "--time-limit", 2, "--workers", 2]
    status, output = call(*candidates, *bad, "-s", run, *METRIC, *options)
    assert status == 0, output
    said = [
        r"failed: silent-0 error: the last line of the program's standard output is missing: it printed nothing",
        r"failed: nan-0 error: the program reported accuracy = nan, which is not a finite number",
        r"failed: other-0 metric: .* no metric 'accuracy', .* or 'eval_accuracy'; it reported: f1, loss",
        r"failed: broken-0 error: the program ended with exit status 3. The end of its output: no such layer",
        r"failed: hanging-0 timeout: out of time: it ran longer than --time-limit 2 seconds",
        r"failed: unwritten-0 error: the program ended with exit status 0 but did not write its metrics to .*/metrics",
    ]
    for message in said:
        assert re.search(message, output), output
    withdrawn = {"silent", "nan", "other", "broken", "hanging", "unwritten"}
    summary = summary_of(run)
    assert {entry["name"] for entry in summary["candidates"] if entry["withdrawn"]} == withdrawn
    assert summary["best"] == "able"
    assert "no such layer" in next((run / "failures").glob("broken-0.*.log")).read_text()
    assert (run / "outside").exists(), "nothing prevents it"
    assert not list(run.glob("evaluations/*/data"))
    for name in ("hung", "left"):
        pid = int((run / name).read_text())
        until(lambda pid=pid: not psutil.pid_exists(pid) or not still_runs(psutil.Process(pid)))


def test_a_killed_selection_recovers_to_the_uninterrupted_one(candidates: List[str], run: Path, call: Any) -> None:
    slow = [f"able={candidates[0]}", candidates[1]]
    for path in candidates:
        config = json.loads(Path(path).read_text())
        config["command"][2] = f"sleep 0.15; {config['command'][2]}"
        Path(path).write_text(json.dumps(config))
    options = [*METRIC, "--strategy", "non_adaptive_fb", "--budget", "8", "--seed", "77"]
    process = start(*slow, "-s", run, *options)
    until(lambda: num_finished(run) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    assert 2 <= num_finished(run) < 8
    status, output = call("-s", run, "--recover")
    assert status == 0, output
    call(*slow, "-s", run.with_name("whole"), *options)
    assert scores_of(run) == scores_of(run.with_name("whole")) and len(scores_of(run)) == 8


def test_a_program_that_is_killed_runs_again_with_the_same_seeds(
    candidates: List[str], write_program: Write, run: Path, call: Any
) -> None:
    die_once = 'died="$5/../../died"; [ -e "$died" ] || { touch "$died"; kill -9 $$; }'
    given = [candidates[0], write_program("dying", f"{die_once}; {POOR}")]
    status, output = call(*given, "-s", run, *METRIC, "--strategy", "non_adaptive_fb", "--budget", 4)
    assert status == 0, output
    assert "dying-0 killed: the program was killed by signal 9 (SIGKILL), on Linux often for lack of memory" in output
    assert {(name, replicate) for name, replicate, _ in scores_of(run)} >= {("dying", "0"), ("dying", "1")}


def test_an_edited_script_is_noted_and_edited_data_are_refused(
    write_program: Write, reviews: Path, run: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reviews)
    (reviews / "score.sh").write_text('echo "accuracy 0.$4"')
    given = [write_program(name, "", command=["sh", "score.sh", *SETS, "{seed}"]) for name in ("one", "other")]
    options = ["--strategy", "non_adaptive_fb", *METRIC]
    status, output = call(*given, "-s", run, *options, "--budget", 2)
    assert status == 0, output
    assert "the configs of one and other are equal apart from seeds" in output
    status, output = call("-s", run, "--recover", "--budget", 4)
    assert "the code of" not in output
    (reviews / "score.sh").write_text('echo "accuracy 0.5$4"')
    status, output = call("-s", run, "--recover", "--budget", 6)
    assert status == 0, output
    assert "Note: the code of score.sh has changed since this selection last ran." in output
    (reviews / "test.jsonl").write_text('{"text": "x", "label": "y"}\n')
    status, output = call("-s", run, "--recover", "--budget", 8)
    assert status == 2 and "scores on different data cannot be compared" in output
    assert f"{reviews / 'test.jsonl'} changed after the selection" in output and "Restore the original data" in output


def test_only_the_winners_best_model_is_kept(write_program: Write, run: Path, call: Any) -> None:
    save = 'mkdir "$5/model"; echo x > "$5/model/weights"'
    given = [write_program(name, f"{save}; {script}") for name, script in (("good", GOOD), ("poor", POOR))]
    status, output = call(*given, "-s", run, *METRIC, "--strategy", "non_adaptive_fb", "--budget", 6, "--keep", "best")
    assert status == 0, output
    best = max((row for row in scores_of(run) if row[0] == "good"), key=lambda row: float(row[2]))
    assert [path.parent.parent.name for path in run.glob("evaluations/*/output/model")] == [f"good-{best[1]}"]


def test_a_dry_run_tells_the_command_and_runs_nothing(
    candidates: List[str], reviews: Path, run: Path, call: Any
) -> None:
    with (reviews / "test.jsonl").open("a") as test:
        test.write('{"text": "nobody", "label": "knows"}\n')
    before = sorted(reviews.rglob("*"))
    status, output = call(*candidates, "-s", run, *METRIC, "--dry-run")
    assert status == 0, output
    assert (
        "Note: some labels occur in a single record, so a run can train or test on them, but never both: 'knows'."
        in output
    )
    assert re.search(r"blind +- +known after a run", output)
    assert "Every split: train 40, validation 12, test 21; no groups." in output
    sets = " ".join(f"{run}/evaluations/able-0/data/{part}.jsonl" for part in ("train", "validation", "test"))
    assert f"{sets} 1 {run}/evaluations/able-0/output" in output
    assert sorted(reviews.rglob("*")) == before


def test_a_program_of_no_known_type_is_refused(
    candidates: List[str], write_program: Write, run: Path, call: Any
) -> None:
    status, output = call(candidates[0], write_program("misnamed", GOOD, type="progam"), "-s", run, *METRIC)
    assert status == 2, output
    assert 'With a \'command\' it is a program: add "type": "program"' in output
    assert not (run / "evaluations").exists()


def test_the_metric_must_be_named(candidates: List[str], run: Path, call: Any) -> None:
    status, output = call(*candidates, "-s", run)
    assert status == 2 and "--metric is missing. What a program reports is not known before its first run" in output
