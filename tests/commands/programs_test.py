"""The whole command on programs: shell scripts that take no time, in real processes, with real kills."""

import json
import re
from pathlib import Path
from typing import Callable

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.reports.paragraph import build_checklist
from tests.commands.conftest import BLIND, EQUALLY, GOOD, POOR, Selections
from tests.run_files import entry_of, rows_of, scores_of, summary_of
from tests.running.conftest import until_ended

SETS = ("{train}", "{validation}", "{test}")


def test_programs_and_a_config_share_a_selection_and_its_report(
    selections: Selections, write_config: Callable[..., Path]
) -> None:
    pytest.importorskip("allennlp")
    run = selections.run
    assert "able leads" in selections.begin(write_config("stock", BLIND), *EQUALLY, "--budget", 6)
    rows = scores_of(run)
    assert {name for name, _, _ in rows} == {"able", "blind", "stock"} and len(rows) == 6
    seeds = {(run / "evaluations" / f"{name}-0" / "outcome.json") for name in ("able", "blind")}
    splits = {json.loads(path.read_text())["run"]["seeds"]["split_seed"] for path in seeds}
    config = json.loads((run / "evaluations" / "stock-0" / "config.json").read_text())
    assert splits == {config["dataset_reader"]["split_seed"]}

    made = report(run)
    parameters = {candidate.name: candidate.num_parameters for candidate in made.result.candidates}
    assert parameters["able"] is None and parameters["stock"] > 0
    commands = {name: command for name, command in build_checklist(made) if "to repeat one run" in name}
    assert list(commands) == ["command to repeat one run of able, blind", "command to repeat one run of stock"]
    assert "programs.repeat" in commands["command to repeat one run of able, blind"]


def test_each_way_to_fail_is_told_and_the_others_go_on(selections: Selections) -> None:
    """One that hangs, with its child, is killed; one that leaves a child behind, with its output, keeps its score."""
    run, write_program = selections.run, selections.write
    hang = 'sleep 601 & echo $! > "$5/../../../hung"; wait'
    leave = f'setsid sleep 602 & echo $! > "$5/../../../left"; {POOR}'
    bad = [
        write_program("broken", "echo no such layer >&2; exit 3"),
        write_program("nan", "echo '{\"accuracy\": NaN}'"),
        write_program("hanging", hang),
        write_program("outside", f'echo x > "$5/../../../outside"; {POOR}'),
        write_program("leaving", leave),
    ]
    options = ["--budget", 18, "--max-failures", 1, "--time-limit", 2, "--workers", 2]
    output = selections.begin(*bad, *EQUALLY, *options)
    for message in (
        "failed: broken-0 error: .*exited with status 3.*no such layer",
        "failed: nan-0 error: .*accuracy = nan",
        "failed: hanging-0 timeout: .*--time-limit 2",
    ):
        assert re.search(message, output), output
    summary = summary_of(run)
    assert summary["best"] == "able"
    withdrawn = {entry["name"] for entry in summary["candidates"] if entry["state"] == "failed"}
    assert withdrawn == {"nan", "broken", "hanging"}
    assert "no such layer" in next((run / "failures").glob("broken-0.*.log")).read_text()
    assert (run / "outside").exists(), "nothing prevents it"
    assert not list(run.glob("evaluations/*/data"))
    until_ended(int((run / name).read_text()) for name in ("hung", "left"))


@pytest.mark.parametrize("brings", [False, True])
def test_a_wrong_metric_ends_with_the_command_that_goes_on_without_a_lost_run(
    selections: Selections, reviews: Path, brings: bool
) -> None:
    """Also where runs were brought, which have no other name."""
    run, call, script = selections.run, selections.call, 'echo "{\\"test_accuracy\\": 0.DIGIT$4, \\"loss\\": 1}"'
    for name, digit in (("able", "9"), ("blind", "1")):
        selections.write(name, script.replace("DIGIT", digit))
    (reviews / "w.csv").write_text("candidate,score\nable,0.9\nable,0.91\nblind,0.1\nblind,0.11\n")
    options = ["--splits", "official", *(["--scores", reviews / "w.csv"] if brings else [])]
    status, output = call(
        *selections.candidates, "-s", run, "--metric", "test/accuracy", *options, *EQUALLY, "--budget", 8
    )
    assert status == 2 and re.search(r"able-0: .*'test/accuracy'.* loss = 1, test_accuracy = 0\.9", output, re.DOTALL)
    (again,) = re.findall(r"Continue with: \S+ \S+ (-s \S+ --recover --metric \S+)$", output, re.MULTILINE)
    made = json.loads((run / "evaluations" / "able-0" / "run.json").read_text())
    call.done(*again.split())
    assert summary_of(run)["best"] == "able" and summary_of(run)["num_evaluations"] == 8
    kept = json.loads((run / "evaluations" / "able-0" / "outcome.json").read_text())
    assert {name: kept[name] for name in made if name != "metric"} == {k: v for k, v in made.items() if k != "metric"}
    assert {row["metric"] for row in rows_of(run)} == {"test_accuracy"}


def test_equal_runs_of_a_candidate_are_asked_about_before_a_winner_is_named(selections: Selections) -> None:
    run, same = selections.run, selections.write("same", 'echo \'{"accuracy": 0.5, "loss": 1}\'')
    output = selections.begin(same, *EQUALLY, "--budget", 9)
    assert "All 3 runs of same are equal (accuracy 0.5). Is the seed used" in output and "dropped out" not in output
    assert (summary_of(run)["verdict"], summary_of(run)["best"]) == ("open", None)
    assert entry_of(run, "same")["sd"] == 0.0 and not summary_of(run)["num_failures"]
    selections.resume("--allow", "unseeded")
    assert (summary_of(run)["verdict"], summary_of(run)["best"]) == ("best", "able")


def test_a_first_run_without_a_metric_ends_the_selection_until_its_program_is_corrected(selections: Selections) -> None:
    run, wrong = selections.run, selections.write("wrong", "echo accuracy 0.5")
    status, output = selections.call(*selections.typed(wrong, *EQUALLY, "--budget", 6))
    assert status == 2 and "error: wrong-0: the " in output and "No run is lost." in output
    (again,) = re.findall(r"Continue with: \S+ \S+ (-s \S+ --recover)", output)
    selections.write("wrong", GOOD)
    selections.call.done(*selections.candidates, wrong, *again.split())
    assert {row[0] for row in scores_of(run)} == {"able", "blind", "wrong"} and not summary_of(run)["num_failures"]


def test_a_later_run_without_the_metric_is_a_failure_and_finished_runs_leave_few_files(selections: Selections) -> None:
    flaky = f'tries="$5/../../tries"; echo >> "$tries"; [ "$(wc -l < "$tries")" = 2 ] && exit; touch "$5/sure"; {GOOD}'
    output, run = selections.begin(selections.write("flaky", flaky), *EQUALLY, "--budget", 9), selections.run
    assert "failed: flaky-1 metric: " in output
    assert summary_of(run)["num_failures"] == 1 and summary_of(run)["num_evaluations"] == 9
    for name, files in (("able-0", []), ("blind-1", []), ("flaky-0", ["output", "output/sure"])):
        root = run / "evaluations" / name
        assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["log.txt", "outcome.json", *files]


def test_a_corrected_command_continues_until_a_run_of_it_has_finished(selections: Selections) -> None:
    run, candidates = selections.run, selections.candidates
    output = selections.begin(selections.write("wrong", "no-such-program"), *EQUALLY, "--budget", 6)
    assert "dropped out: wrong" in output
    (advice,) = re.findall("pass all candidates again, with the corrected .* of wrong: (.*)$", output, re.MULTILINE)
    assert advice.endswith(f"-s {run} --recover CANDIDATES")
    output = selections.resume(*candidates, selections.write("wrong", GOOD), "--budget", 9)
    assert "wrong: the config" in output and "dropped out" not in output
    summary = summary_of(run)
    assert not summary["num_failures"] and {row[0] for row in scores_of(run)} == {"able", "blind", "wrong"}
    selections.resume("--budget", 12)
    changed = selections.write("wrong", f"{GOOD}9")
    selections.refused(*candidates, changed, "--recover", "--budget", 15, said="'wrong'.* has changed since")


def test_an_edited_script_is_noted_and_edited_data_are_refused(
    selections: Selections, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reviews)
    (reviews / "score.sh").write_text('echo "{\\"accuracy\\": 0.$4}"')
    for name in ("able", "blind"):
        selections.write(name, "", command=["sh", "score.sh", *SETS, "{seed}"])
    selections.begin(*EQUALLY, "--budget", 2)
    assert "the code of" not in selections.resume("--budget", 2)
    (reviews / "score.sh").write_text('echo "{\\"accuracy\\": 0.5$4}"')
    assert "of score.sh has changed" in selections.resume("--budget", 4)
    (reviews / "test.jsonl").write_text('{"text": "x", "label": "y"}\n')
    selections.refused("--recover", "--budget", 6, said=f"the content of {reviews / 'test.jsonl'}")


def test_only_the_winners_best_model_is_kept_by_a_metric_to_minimise(selections: Selections, run: Path) -> None:
    """On independent splits. A loss keeps its natural sign wherever it is kept."""
    save = 'mkdir "$5/model"; echo x > "$5/model/weights"; echo "{\\"loss\\": 0.%s$4}"'
    given = [selections.write(name, save % digit) for name, digit in (("good", 1), ("poor", 9))]
    options = [*EQUALLY, "--budget", 6, "--keep", "best", "--splits", "independent"]
    selections.call.done(*given, "-s", run, "--metric=-loss", *options)
    assert (summary_of(run)["metric"], summary_of(run)["best"]) == ("-loss", "good")
    assert all(row["score"] == row["metric:loss"] for row in rows_of(run))
    assert len({row["split_seed"] for row in rows_of(run)}) == 6
    best = min((row for row in scores_of(run) if row[0] == "good"), key=lambda row: float(row[2]))
    assert [path.parent.parent.name for path in run.glob("evaluations/*/output/model")] == [f"good-{best[1]}"]


def test_a_dry_run_tells_the_plan_and_all_that_a_preset_set_and_runs_nothing(
    selections: Selections, reviews: Path
) -> None:
    before = sorted(reviews.rglob("*"))
    limits = ("at least 6 and at most 100", "as long as 3 consecutive runs")
    preset = ("Set by --preset paper: strategy ttts, belief student_t, splits independent.",)
    for options, facts in ((["--workers", 2], limits), (["--preset", "paper", "--stop", "glr"], preset)):
        output = " ".join(selections.begin("--dry-run", *options).split())
        assert all(fact in output for fact in ("test accuracy", "train 40, validation 12, test 20", *facts)), output
    assert sorted(reviews.rglob("*")) == before


def test_a_type_must_be_named(selections: Selections) -> None:
    misnamed = selections.write("misnamed", GOOD, type="progam")
    selections.refused(*selections.typed(misnamed), said="'type' is 'progam'.* 'program'")


def test_a_script_can_require_a_decision(selections: Selections, run: Path) -> None:
    twins, call = selections.of(selections.candidates[0], selections.write("twin", f"{GOOD}; true")), selections.call
    options = ["--require-decision", "--splits", "independent", "--seed", 2, "--max-evaluations", 6]
    status, output = call(*twins.typed(*options))
    assert status == 3 and "Open after 6 runs" in output, output
    assert [summary_of(run)[key] for key in ("verdict", "target", "gave_up")] == ["open", 0.95, False]
    assert call("-s", run, "--recover", "--max-evaluations", 7)[0] == 0, "it belongs to one command"
    wide = ["--margin", 1, "--max-evaluations", 20]
    assert call("-s", run, "--recover", *wide, "--require-decision")[0] == 0
    assert summary_of(run)["best"] is not None
