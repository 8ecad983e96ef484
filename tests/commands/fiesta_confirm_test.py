"""`fiesta confirm` on programs, in real processes, with real kills."""

import json
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from fiesta_allennlp import confirm, report, select
from fiesta_allennlp.confirming.confirmation import Confirmation
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.reports.paragraph import compose_paragraph
from fiesta_allennlp.reports.report_files import render_html, render_latex
from tests.commands.conftest import EQUALLY, GOOD, POOR, Call, Selections, history_of
from tests.conftest import until, write_all_reviews
from tests.programs import program_config
from tests.run_files import num_finished, rows_of, scores_of, summary_of
from tests.warm import Command

SEED = 7
SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")
NOISY = 'echo "{\\"accuracy\\": 0.5$4}"'
"""Scores around 0.55, by the seed, as those of any program with this script."""


@pytest.fixture
def confirming(call: Call) -> Call:
    return call.command("confirm")


@pytest.fixture(scope="module")
def decided_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a selection on random splits that named `able`."""
    root = write_all_reviews(tmp_path_factory.mktemp("decided"))
    for name, script in (("able", GOOD), ("blind", POOR)):
        (root / f"{name}.jsonnet").write_text(json.dumps(program_config(root, script)))
    options = {"metric": "accuracy", "strategy": EQUALLY[1], "budget": 6, "seed": SEED}
    return select(sorted(root.glob("*.jsonnet")), directory=root / "run", **options).directory


@pytest.fixture
def decided(decided_once: Path, run: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(decided_once, run))


@pytest.fixture
def slow(selections: Selections) -> Path:
    """A selection whose runs take long enough to be stopped."""
    for name, script in (("able", GOOD), ("blind", POOR)):
        selections.write(name, f"sleep 0.15; {script}")
    selections.begin(*EQUALLY, "--budget", 4, "--seed", SEED)
    return selections.run


def confirmation_of(run: Path, number: int = 1) -> Path:
    return RunDirectory(run).confirmation(number).root


def confirmations_of(run: Path) -> List[Confirmation]:
    return list(Confirmation.read_all(RunDirectory(run)))


def states_of(status: Call, run: Path) -> Tuple[bool, List[bool]]:
    """Whether the selection is running, and each of its confirmations."""
    written = json.loads(status.done(run, "--json"))
    return written["running"], [confirmation["running"] for confirmation in written["confirmations"]]


def seeds_of(run: Path, *columns: str) -> "set[str]":
    return {row[column] for row in rows_of(run) for column in columns}


def test_fresh_runs_share_new_splits_and_confirm_the_winner(decided: Path, confirming: Call) -> None:
    output = confirming.done(decided, "--runs", 4)
    assert re.search("able against blind: 4 runs each, 8 in all, .*new splits and seeds", output)
    assert "4 runs each confirm" in output
    assert re.search(r"Confirmed: able is better than blind\. Over 4 .*able minus blind is \+0\.", output)
    assert "on 4 shared splits (95% interval 0." in output and "paired t-test, one-sided p < 0.001" in output
    fresh = confirmation_of(decided)
    assert {(name, replicate) for name, replicate, _ in scores_of(fresh)} == {
        (name, str(k)) for name in ("able", "blind") for k in range(4)
    }
    assert len(seeds_of(fresh, "split_seed")) == 4
    assert not seeds_of(fresh, "split_seed", *SEEDS) & seeds_of(decided, "split_seed", *SEEDS)
    settings = json.loads((fresh / "selection.json").read_text())
    assert (settings["strategy"]["type"], settings["strategy"]["budget"]) == ("non_adaptive_fb", 8)
    written = json.loads((fresh / "confirmation.json").read_text())
    assert (written["is_over"], written["comparisons"][0]["verdict"]) == (True, "confirmed")
    assert (written["winner"], written["num_runs"], written["verdict"]) == ("able", 4, "confirmed")
    assert summary_of(decided)["num_evaluations"] == 6, "the selection is as it was"


def test_official_splits_get_new_seeds_and_an_unpaired_test(selections: Selections, confirming: Call) -> None:
    selections.begin(*EQUALLY, "--budget", 6, "--splits", "official")
    output = confirming.done(selections.run, "--runs", 3)
    assert "with new seeds." in output and "Welch's t-test" in output and "shared split" not in output
    (only,) = confirmations_of(selections.run)
    assert only.comparisons[0].num_pairs == 0
    assert not seeds_of(confirmation_of(selections.run), *SEEDS) & seeds_of(selections.run, *SEEDS)


def test_a_confirmation_that_is_killed_recovers_to_the_undisturbed_one(slow: Path, confirming: Call) -> None:
    whole = shutil.copytree(slow, slow.with_name("whole"))
    process = Command(["-m", "fiesta_allennlp", "confirm", slow, "--runs", 3, "--seed", 5])
    fresh = confirmation_of(slow)
    until(lambda: num_finished(fresh) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    recorded = {(e.request.candidate, str(e.request.replicate), str(e.score)) for e in history_of(fresh).evaluations}
    assert 1 <= len(recorded) < 6
    assert confirmations_of(slow)[0].comparisons == (), "nobody looks before the last run"
    assert "is not finished" in confirming.refused(slow)
    confirming.refused(slow, "--recover", "--runs", 8, said="--runs was fixed")
    confirming.done(slow, "--recover", "--workers", 2)
    confirming.done(whole, "--runs", 3, "--seed", 5)
    assert recorded <= scores_of(fresh) == scores_of(confirmation_of(whole))
    assert confirmations_of(slow)[0].comparisons == confirmations_of(whole)[0].comparisons
    confirming.done(slow, "--recover")
    assert num_finished(fresh) == 6, "there is nothing left to do"


def test_an_interrupted_confirmation_says_how_to_continue(slow: Path, call: Call) -> None:
    status = call.command("status")
    process = Command(["-m", "fiesta_allennlp", "confirm", slow, "--runs", 40])
    until(lambda: num_finished(confirmation_of(slow)) >= 1 or process.poll() is not None)
    assert states_of(status, slow) == (False, [True])
    assert " is running and has " in status.done(slow)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130 and f"confirm {slow} --recover" in output.partition("Continue with: ")[2]
    assert "no verdict yet" in status.done(slow)
    assert states_of(status, slow) == (False, [False]) and not confirmations_of(slow)[0].is_over
    said = "with allennlp fiesta-confirm .*run --recover"
    call.command("select").refused("-s", confirmation_of(slow), "--recover", "--budget", 6, said=said)
    assert re.search("of 80 fresh runs, .*no verdict yet", status.done(confirmation_of(slow)))
    assert "no verdict yet" in compose_paragraph(report(slow))


def test_every_report_lists_every_confirmation_and_the_paragraph_rests_on_them(decided: Path, confirming: Call) -> None:
    confirming.done(decided, "--runs", 3)
    assert "Confirmed: able" in confirming.done(decided, "--runs", 4, "--require-decision")
    made = report(decided)
    assert [confirmation.num_runs for confirmation in made.confirmations] == [3, 4]
    paragraph, page = compose_paragraph(made), render_html(made, {})
    for text in (" ".join(made.decision), confirming.command("status").done(decided), paragraph, page):
        for num_runs in (3, 4):
            assert f"Confirmed: able is better than blind. Over {num_runs} fresh" in text
    assert "No fresh runs" not in paragraph and 'id="confirmation"' in page and "verdict" in render_latex(made)
    confirming.command("report").refused(confirmation_of(decided), said=f"is a confirmation.*{decided}\\.")


def test_named_rivals_are_compared_together(selections: Selections, confirming: Call) -> None:
    selections.begin(selections.write("twin", f"{GOOD}; true"), *EQUALLY, "--budget", 9, "--seed", SEED)
    leader = summary_of(selections.run)["leading"]
    other = {"able": "twin", "twin": "able"}[leader]
    confirming.refused(selections.run, "--against", "blnd", said=f"'blnd'.* 'blind'.*Rivals of {leader}: ")
    confirming.refused(selections.run, "--against", leader, said="is the winner itself")
    output = confirming.done(selections.run, "--runs", 4, "--against", f"blind,{other}")
    assert f"Confirmed: {leader} is better than blind." in output and "Bonferroni's method for 2" in output
    assert "one-sided p " in output and " by Holm's method; " in output
    (only,) = confirmations_of(selections.run)
    assert [comparison.rival for comparison in only.comparisons] == ["blind", other]
    assert len(scores_of(confirmation_of(selections.run))) == 12


def test_an_undecided_selection_can_be_confirmed_and_equal_models_are_not(
    selections: Selections, confirming: Call, run: Path
) -> None:
    for name in ("able", "blind"):
        selections.write(name, f"{NOISY}; : {name}")
    selections.begin("--max-evaluations", 6, "--splits", "independent", "--seed", SEED)
    assert summary_of(run)["best"] is None
    dry = confirming.done(run, "--dry-run")
    assert "with probability" in dry and "Nothing was started." in dry
    assert not confirmation_of(run).exists()
    status, output = confirming(run, "--runs", 5, "--seed", 3, "--require-decision")
    (only,) = confirmations_of(run)
    assert status == (0 if only.verdict == "confirmed" else 3)
    assert f"{only.comparisons[0].verdict.capitalize()}: " in output


def test_a_confirmation_needs_neither_the_result_of_its_selection_nor_the_configs(slow: Path, confirming: Call) -> None:
    (slow / "selection.json").unlink()  # as after a kill
    slow.with_name("able.jsonnet").write_text("{}")
    assert "Confirmed: able" in confirming.done(slow, "--runs", 3)


def test_what_cannot_be_confirmed_is_refused(
    decided: Path, selections: Selections, confirming: Call, tmp_path: Path
) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("candidate,score,seed\na,1,1\nb,2,1\n")
    confirming.refused(table, said="is a table of scores")
    confirming.refused(tmp_path / "nothing", said="no selection found")
    confirming.done(decided, "--runs", 3)
    confirming.refused(confirmation_of(decided), said=f"is a confirmation itself. .*{decided}")
    confirming.refused(decided, "--runs", 2, said="--runs must .* 3 .* 2")
    confirming.refused(decided, "--seed", SEED, said="--seed 7 would repeat")
    replace(selections, run=tmp_path / "other").begin(*EQUALLY, "--budget", 2)
    confirming.refused(tmp_path / "other", "--recover", said="no confirmation to continue")
    data = tmp_path / "test.jsonl"
    data.write_text(data.read_text().replace("good", "bad"))
    confirming.refused(tmp_path / "other", said="the content of .*test.jsonl")
    assert not confirmation_of(tmp_path / "other").joinpath("evaluations").exists()


def test_a_candidate_whose_fresh_runs_fail_is_not_dropped_in_silence(
    selections: Selections, confirming: Call, run: Path
) -> None:
    broken = run.with_name("broken")
    selections.write("able", f"[ ! -e {broken} ] || exit 3; {GOOD}")
    selections.begin(*EQUALLY, "--budget", 6)
    broken.touch()
    output = confirming.done(run, "--runs", 4)
    assert "Not confirmed: able against blind. Too few" in output
    assert "able has 0 of 4 scores (3 fresh runs failed)" in output
    broken.unlink()
    assert "Confirmed: able" in confirming.done(run, "--recover", "--max-failures", 6)
    (only,) = confirmations_of(run)
    assert [candidate.failures for candidate in only.result.candidates] == [3, 0]
    assert only.comparisons[0].num_pairs == 0, "no shared splits are left"
    assert "3 fresh runs of able failed" in " ".join(report(run).decision)


def test_a_new_selection_in_the_directory_has_no_confirmation(
    decided: Path, selections: Selections, confirming: Call
) -> None:
    confirming.done(decided, "--runs", 3)
    selections.begin(*EQUALLY, "--budget", 4, "--force")
    assert not confirmation_of(decided).exists() and report(decided).confirmations == ()


def test_the_call_returns_the_facts(decided: Path) -> None:
    result = confirm(decided, runs=3, against="blind", workers=2)
    assert result.verdicts == {"blind": "confirmed"} and result.num_runs == 3
    assert "Confirmed: able" in repr(result)
    assert confirm(decided, recover=True) == result
    wrong: List[Dict[str, Any]] = [{"budget": 9}, {"wrkers": 2}]
    for resources in wrong:
        with pytest.raises(FiestaError, match=f"'{next(iter(resources))}' is not"):
            confirm(decided, **resources)
    with pytest.raises(FiestaError, match="a table of scores"):
        confirm([{"candidate": "a", "score": 1}])  # type: ignore[arg-type]
