"""The next runs for a table of scores: a selection that is replayed through the table decides the same."""

import runpy
from pathlib import Path
from typing import Any, Dict, List, Tuple

import joblib
import pytest

from fiesta_allennlp import next_runs
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.selecting.results.candidate_table import show
from tests.score_tables import score_rows
from tests.selecting.loop_test import MEANS, Run

HEADER = "candidate,split,seed,score\n"
OFFICIAL = "candidate,seed,score\nbase,1,.800\nbase,2,.810\nnew,1,.812\nnew,2,.818\nother,1,.75\nother,2,.76\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("strategy", ["top_two", "ttts", "bts", "non_adaptive_fc"])
def test_a_selection_through_the_table_decides_the_same(tmp_path: Path, strategy: str) -> None:
    made = Run(RunDirectory(tmp_path / "run"), {"type": strategy, "confidence": 0.99})
    decision = made.go()
    rows: List[Dict[str, Any]] = []
    choice = {"belief": "student_t", "strategy": strategy, "confidence": 0.99, "seed": made.seed}
    for row in made.rows:
        answer = next_runs(rows, candidates=list(MEANS), **choice)
        assert answer.decision.stopped_by is None
        (run,) = answer.runs
        assert run.candidate == row["candidate"]
        split = str(row["split_seed"])
        known = {each["split"] for each in rows}
        assert run.split == split if split in known else run.split not in known
        rows.append({"candidate": run.candidate, "split": split, "seed": row["random_seed"], "score": row["score"]})
    answer = next_runs(rows, **choice)
    assert (answer.decision.best, answer.decision.stopped_by, answer.runs) == (decision.best, decision.stopped_by, ())
    assert answer.decision.prob_best == pytest.approx(decision.prob_best)


def runs(answer: Any) -> List[Tuple[str, str, str]]:
    return [(run.candidate, run.split, run.seed) for run in answer.runs]


def test_an_empty_table_names_the_first_runs_and_each_next_split(tmp_path: Path) -> None:
    path = write(tmp_path / "s.csv", HEADER)
    first = runs(next_runs(path, candidates=["a", "b"], workers=3))
    assert first == [("a", "0", "1"), ("b", "0", "2"), ("a", "1", "3")]
    path.write_text(HEADER + "a,x,0,.5\nb,y,3,.4\n")
    assert runs(next_runs(path, workers=2)) == [("a", "y", "4"), ("b", "x", "5")], "nobody has these seeds"
    assert runs(next_runs(path, workers=2, splits="independent")) == [("a", "0", "4"), ("b", "1", "5")]
    path.write_text(HEADER + "a,5,5,.5\nb,5,5,.4\nb,7,7,.4\n")  # one number decides both
    assert runs(next_runs(path, candidates=["c"], workers=3)) == [("c", "5", "5"), ("a", "7", "7"), ("c", "7", "7")]


def test_the_runs_that_p_best_lacks_are_counted() -> None:
    rows = score_rows({"a": [0.0, 0.1, 0.2], "b": [0.0]})
    (_, first, *_) = show(next_runs(rows, candidates=["c"]))
    assert first.endswith(": 1 run of b, 2 runs of c.")
    assert next_runs([{**row, "task": task} for task in "xy" for row in rows]).num_missing == {"b": 2}


def test_open_and_failed_runs_count_and_a_score_takes_the_place_of_its_open_row(tmp_path: Path) -> None:
    path = write(tmp_path / "s.csv", HEADER + "a,0,0,\nb,0,0,.5\na,0,0,.6\nb,1,1,\na,1,1,failed\n")
    answer = next_runs(path, max_failures=3)
    assert [e.request.candidate for e in answer.history.evaluations] == ["b", "a"]
    assert [r.candidate for r in answer.history.pending] == ["b"]
    assert [f.request.candidate for f in answer.history.failures] == ["a"]
    assert runs(answer) == [("a", "2", "2")]
    assert next_runs(path, max_failures=1).decision.stopped_by == "failures"


def test_without_splits_only_seeds_vary_and_columns_may_have_other_names(tmp_path: Path) -> None:
    rows = "".join(f"a,0.1{i},{i}\nb,0.9{i},{i}\n" for i in range(12))
    path = write(tmp_path / "s.csv", f"model,test_loss,n\n{rows}")
    columns = {"candidate": "model", "score": "test_loss", "seed": "n"}
    answer = next_runs(path, columns=columns, minimise=True)
    assert (answer.result.splits, answer.decision.best, answer.decision.stopped_by) == ("official", "a", "confidence")
    path.write_text("model,test_loss,n\na,0.1,0\nb,0.2,7\n")
    assert runs(next_runs(path, columns=columns, workers=2, minimise=True)) == [("a", "", "8"), ("b", "", "9")]
    path.write_text("model,test_loss\na,0.1\nb,0.2\n")
    columns.pop("n" if "n" in columns else "seed")
    fresh = [int(run.seed) for run in next_runs(path, columns=columns, workers=2, minimise=True).runs]
    assert fresh[0] >= 10**5 and fresh[1] == fresh[0] + 1, "the seeds of the rows are unknown"


@pytest.mark.parametrize(
    ("text", "settings", "named"),
    [
        (HEADER, {}, "at least 2 .* --candidates"),
        (HEADER, {"worker": 2}, "'worker' .* 'workers'"),
        (
            HEADER + "a,0,0,1\nb,0,0,2\n",
            {"max_evaluations": 3},
            "--max-evaluations must .*--budget 3.*--stop bayesian",
        ),
        (OFFICIAL, {"done": ["bse"]}, "--done: .* 'bse'.* 'base'"),
        (OFFICIAL, {"done": ["base", "new", "other"]}, "--done names all candidates"),
        (OFFICIAL, {"done": ["late"], "candidates": ["late"]}, "--done: .*'late' has 0 of the 2"),
        (OFFICIAL, {"done": "base"}, "done must be"),
    ],
)
def test_what_cannot_be_answered_is_refused(tmp_path: Path, text: str, settings: Dict[str, Any], named: str) -> None:
    with pytest.raises(FiestaError, match=named):
        next_runs(write(tmp_path / "s.csv", text), **settings)


def test_a_selection_with_a_candidate_that_is_done_ends(tmp_path: Path) -> None:
    """The stopping rule asks for no run that nobody can make, also of a candidate with the fewest scores."""
    rows = [{"candidate": "base", "seed": seed, "score": 0.7 + seed / 100} for seed in range(2)]
    for number in range(60):
        runs = next_runs(rows, candidates=["new"], done=["base"], splits="official").runs
        if not runs:
            break
        rows.append({"candidate": runs[0].candidate, "seed": runs[0].seed, "score": 0.8 + (number * 7 % 5) / 100})
    answer = next_runs(rows, done=["base"], splits="official")
    assert (answer.decision.best, answer.decision.stopped_by) == ("new", "confidence")
    assert [row["candidate"] for row in rows].count("base") == 2
    assert answer.decision.prob_best["base"] > 0 and "base gets no further" in answer.notes[-1]


def test_the_example_with_joblib_chooses_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = Path(__file__).parents[2] / "examples" / "tables" / "joblib_loop.py"
    with joblib.parallel_config(backend="threading"):
        runpy.run_path(str(script))["main"](tmp_path / "s.csv")
    assert capsys.readouterr().out.startswith("bert is the best with probability ")


def test_the_answer_prints_as_a_table_with_the_runs_to_make(tmp_path: Path) -> None:
    answer = next_runs(write(tmp_path / "s.csv", OFFICIAL), workers=2)
    lines = str(answer).splitlines()
    assert (lines[0].strip(), lines[2].split()) == ("score", ["candidate", "runs", "mean", "sd", "P(best)", "tier"])
    assert [f"  {run.candidate}, seed {run.seed}" for run in answer.runs] == lines[-2:]
    assert "--workers" in lines[-3] or "repeat this command" in lines[-3]


TIMED = (
    "candidate,seed,score,runtime\na,1,.81,2400\na,2,.82,2401\na,3,.80,\nb,1,.82,1200\nb,2,.825,3600\nb,3,.815,2399\n"
)


def test_hours_are_runs_of_the_column_of_seconds(tmp_path: Path) -> None:
    path = write(tmp_path / "s.csv", TIMED)
    assert next_runs(path, columns={"seconds": "runtime"}, workers=2).forecast.seconds_per_run == 1200
    assert next_runs(path, seconds=600).forecast.seconds_per_run == 600
    assert next_runs(path, columns={"seconds": ""}).forecast.seconds_per_run == 0
    wrong = write(tmp_path / "wrong.csv", TIMED.replace("3600", "1:00"))
    with pytest.raises(FiestaError, match=r"line 6: 'runtime' must .*'1:00'"):
        next_runs(wrong, columns={"seconds": "runtime"})


def test_a_forecast_counts_all_runs_that_are_pending_or_listed(tmp_path: Path) -> None:
    answer = next_runs(write(tmp_path / "s.csv", TIMED + "a,4,,\n"), workers=7)
    assert len(answer.runs) == 7 and answer.forecast.low == 8


def test_a_complete_table_with_as_many_runs_as_the_limit_goes_on() -> None:
    rows = [
        {"candidate": name, "split": split, "score": 0.5 + 0.01 * (split % 7) + gain * (0.004 + 0.03 * (-1) ** split)}
        for split in range(60)
        for name, gain in (("a", 1), ("b", 0))
    ]
    answer = next_runs(rows)
    assert answer.decision.stopped_by is None and 0.8 < (answer.result.confidence or 0) < 0.95
    assert runs(answer)[0][1] == "60", "a new split"
    assert next_runs(rows[:-1]).decision.stopped_by == "max_evaluations", "the last split is not complete"
    assert next_runs(rows, max_evaluations=100).decision.stopped_by == "max_evaluations"


def test_a_single_run_of_a_candidate_that_left_leaves_the_noise_of_the_others() -> None:
    scores = {"a": (0.9, 0.93, 0.92), "b": (0.8, 0.84, 0.81), "c": (0.1, *["failed"] * 3)}
    rows = [
        {"candidate": name, "split": split, "seed": split, "score": score}
        for name, own in scores.items()
        for split, score in enumerate(own)
    ]
    assert next_runs(rows, max_failures=3).result.best == "a"
