import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List

import pytest

from fiesta_allennlp import next_runs, plan, replay
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports.paragraph import build_checklist
from fiesta_allennlp.reports.report_files import report
from fiesta_allennlp.selecting.recovery import Retries, ScoreThreshold
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, missed_text
from fiesta_allennlp.selecting.store import RunStore
from tests.choosing.histories import history
from tests.selecting.loop_test import Normal, Run

T5 = [0.86, 0.85, 0.87, 0.05, 0.86, 0.85, 0.87, 0.86, 0.855, 0.865]
BERT = [0.80, 0.79, 0.81, 0.80, 0.795, 0.805, 0.79, 0.80, 0.81, 0.80]
ROWS = [
    {"candidate": name, "split": k, "seed": k, "score": score}
    for name, scores in (("t5", T5), ("bert", BERT))
    for k, score in enumerate(scores)
]


@dataclass(frozen=True)
class Collapsing(Normal):
    """Every run of `c`, and the second one of `b`, ends far below the others."""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        run = super().evaluate(request, directory)
        is_low = request.candidate == "c" or request.key == ("b", 1)
        return replace(run, score=0.01) if is_low else run


def test_worse_depends_on_the_direction() -> None:
    assert ScoreThreshold(0.5).is_missed_by(0.49) and not ScoreThreshold(0.5).is_missed_by(0.5)
    assert ScoreThreshold(7.0, minimise=True).is_missed_by(7.1) and not ScoreThreshold(7.0, minimise=True).is_missed_by(
        7.0
    )
    assert ScoreThreshold(0.0).is_missed_by(-0.1), "0 is a score like any other"
    assert not ScoreThreshold().is_missed_by(-1e99)
    assert ScoreThreshold.from_settings({"metric": "-loss", "min_score": 2}) == ScoreThreshold(2, minimise=True)


def test_the_mean_is_that_of_the_runs_that_work() -> None:
    judged = ScoreThreshold(0.5).apply_to(history({"t5": T5, "bert": BERT}))
    assert [(f.request.key, f.kind) for f in judged.failures] == [(("t5", 3), "score")]
    one = CandidateResult.from_history(judged, Decision(best=None), "t5")
    assert one.mean == pytest.approx(sum(T5[:3] + T5[4:]) / 9)
    assert (one.num_evaluations, one.failures, one.num_missed, missed_text(one)) == (9, 1, 1, "1 of 10 (10%)")


@pytest.mark.parametrize(("working", "missed", "counted"), [(0, 2, 2), (1, 3, 0), (1, 4, 1), (5, 15, 0), (5, 18, 3)])
def test_only_more_than_three_for_each_run_that_works_count(working: int, missed: int, counted: int) -> None:
    judged = ScoreThreshold(0.5).apply_to(history({"a": [0.8] * working + [0.1] * missed, "b": [0.8]}))
    assert judged.num_counted_failures("a") == counted
    assert ("a" in judged.with_withdrawn(max_failures=3).withdrawn) == (counted >= 3)


def with_min_score(directory: RunDirectory, score: Any) -> None:
    store = RunStore(directory, create=not directory.store.exists())
    store.set_meta(settings={"metric": "m", "min_score": score, "allow": ["unseeded"]}, kind="trainings")
    store.close()


def read_statuses(directory: RunDirectory) -> Dict[Any, str]:
    with closing(sqlite3.connect(directory.store)) as database:
        rows = database.execute("SELECT candidate, replicate, status FROM evaluations").fetchall()
    return {(candidate, replicate): status for candidate, replicate, status in rows}


def test_a_selection_keeps_the_scores_and_may_judge_them_again(tmp_path: Path) -> None:
    run = Run(RunDirectory(tmp_path / "run"), {"type": "top_two", "confidence": 0.9})
    with_min_score(run.directory, 0.5)
    decision = run.go(resume=True, evaluator=Collapsing(), slots=2)
    assert (decision.best, decision.stopped_by, run.history.withdrawn) == ("b", "confidence", {"c"})
    missed = {f.request.key for f in run.history.failures}
    assert missed == {("b", 1), ("c", 0), ("c", 1), ("c", 2)}
    kept: Dict[Any, Any] = {(row["candidate"], row["replicate"]): row for row in run.rows}
    assert {key for key, row in kept.items() if row["status"] == "failed"} == missed
    assert {kept[key]["score"] for key in missed} == {0.01}
    assert kept["b", 1]["error"] == "m 0.01 is below --min-score 0.5"
    assert run.go(resume=True, evaluator=Collapsing()) == decision and not run.executor.started
    assert read_statuses(run.directory) == {**{key: "finished" for key in kept}, **{key: "missed" for key in missed}}
    with_min_score(run.directory, 0.001)
    assert set(read_statuses(run.directory).values()) == {"finished"}
    with_min_score(run.directory, 0.5)
    assert {key for key, status in read_statuses(run.directory).items() if status == "missed"} == missed
    with_min_score(run.directory, None)
    store = RunStore(run.directory, create=False)
    assert not store.history(max_failures=3).failures and len(store.history(max_failures=3).evaluations) == len(kept)
    store.close()


def tables(tmp_path: Path, rows: List[Dict[str, Any]]) -> str:
    path = tmp_path / "s.csv"
    lines = [",".join(map(str, row.values())) for row in rows]
    path.write_text("candidate,split,seed,score\n" + "\n".join(lines))
    return str(path)


@pytest.mark.parametrize("minimise", [False, True])
def test_tables_judge_alike(tmp_path: Path, minimise: bool) -> None:
    sign = -1 if minimise else 1
    rows: List[Dict[str, Any]] = [{**row, "score": sign * float(str(row["score"]))} for row in ROWS]
    path = tables(tmp_path, rows)
    given: Dict[str, Any] = {"min_score": sign * 0.5, "minimise": minimise}
    asked = next_runs(rows, **given)
    assert asked.history.num_finished("t5") == 9 and asked.decision.best == "t5"
    made = report(path, **given)
    t5 = made.candidate("t5")
    assert (made.result.best, missed_text(t5), t5.mean) == ("t5", "1 of 10 (10%)", pytest.approx(sign * 0.86))
    assert dict(build_checklist(made))["min score"] == f"{sign * 0.5:g}"
    planned = plan(path, repetitions=2, **given)
    assert planned.simulator.true_means["t5"] == pytest.approx(sign * 0.86, abs=0.01)
    assert re.search("1 of 20 runs .* --min-score", planned.source.notes[-1])
    replayed = replay(path, repetitions=3, with_replacement=True, splits="independent", seed=1, **given)
    assert replayed.default.correct == 1 and replayed.best == "t5"
    assert {c.name: c.true_mean for c in replayed.candidates}["t5"] == pytest.approx(sign * 0.86)


def test_a_candidate_that_never_works_ends_a_replay(tmp_path: Path) -> None:
    path = tables(tmp_path, [*ROWS, {"candidate": "low", "split": 0, "seed": 0, "score": 0.1}])
    with pytest.raises(DataError, match="'low' miss --min-score 0.5"):
        replay(path, min_score=0.5, splits="independent")
    # once the few scores that work are drawn, the others only fail, and the candidate drops out
    mostly = [*ROWS, *({"candidate": "low", "split": k, "seed": k, "score": 0.1 if k else 0.9} for k in range(40))]
    made = replay(tables(tmp_path, mostly), min_score=0.5, splits="independent", with_replacement=True, repetitions=5)
    assert made.default.repetitions == 5


def test_a_run_is_hopeless_after_all_pauses_if_none_has_finished_since_its_last_but_one_failure() -> None:
    retries, request = Retries((0.0, 0.0)), make_request(1, "a", 0, shared_splits=True)
    found = []
    for finished in (False, False, True, False):
        if finished:
            retries.record_finish()
        retries.schedule(request)
        found.append(retries.is_hopeless(request, at_start=False))
    assert found == [False, False, False, True]
