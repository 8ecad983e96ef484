import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, List

import numpy as np
import pytest

from fiesta_allennlp.choosing.beliefs import ModeratedT, StudentT
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.records import Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports import record
from fiesta_allennlp.reports.paragraph import build_checklist, compose_paragraph
from fiesta_allennlp.reports.record import compute_belief_path
from fiesta_allennlp.reports.report_files import render_html, render_scores, report
from fiesta_allennlp.tables.simulation.score_sources import make_score_table
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import ReplaySettings
from tests.choosing.histories import history
from tests.score_tables import split_rows, write_split_table
from tests.selections import ENVIRONMENT, ORIGIN, write_selection

RNG = np.random.default_rng(11)


def normal(mean: float, number: int) -> List[float]:
    return [float(score) for score in RNG.normal(mean, 0.02, number)]


SCORES = {"good": normal(0.70, 9), "fair": normal(0.68, 7), "poor": normal(0.60, 2)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    failed: Any = {"failures": [("poor", 2, "no memory"), ("poor", 3, "no <memory>")], "max_failures": 2}
    write_selection(tmp_path / "run", SCORES, margin=0.001, **failed).close()
    return tmp_path / "run"


def negated(values: Any) -> Any:
    return tuple(None if value is None else pytest.approx(-value) for value in values)


def test_a_minimised_metric_is_shown_as_it_is_and_decided_by_its_negative(tmp_path: Path) -> None:
    errors = {name: [-score for score in row] for name, row in SCORES.items()}
    write_selection(tmp_path / "low", errors, metric="-f1").close()
    write_selection(tmp_path / "high", SCORES).close()
    low, high = report(tmp_path / "low"), report(tmp_path / "high")
    assert (low.result.metric, low.result.leading, low.result.confidence) == ("-f1", "good", high.result.confidence)
    assert (low.path, low.result.single_runs_wrong) == (high.path, high.result.single_runs_wrong)
    assert [c.name for c in low.result.ranked] == [c.name for c in high.result.ranked]
    for mine, theirs in zip(low.result.candidates, high.result.candidates, strict=True):
        assert (mine.mean, mine.min, mine.max) == negated((theirs.mean, theirs.max, theirs.min))
    for mine, theirs in zip(low.comparisons, high.comparisons, strict=True):
        assert (mine.mean_difference,) == negated((theirs.mean_difference,))
        assert mine.num_ahead == theirs.num_ahead
    (tmp_path / "scores.csv").write_text(render_scores(low))
    again = report(tmp_path / "scores.csv").result
    assert (again.leading, again.confidence, again.minimise) == ("good", pytest.approx(low.result.confidence), True)


def test_the_decision_is_the_selections_and_nothing_is_written_without_an_output(run: Path) -> None:
    before = sorted(run.rglob("*"))
    report_record = report(run)
    assert sorted(run.rglob("*")) == before
    good, scores = report_record.candidate("good"), SCORES["good"]
    assert report_record.result.confidence == good.prob_within_margin
    assert good.prob_best == pytest.approx(report_record.path[-1].prob_best["good"])
    assert (good.median, good.min, good.max) == (pytest.approx(np.median(scores)), min(scores), max(scores))
    assert report_record.decision[0].startswith("Interrupted after 18 runs")
    assert "36.0 s" in report_record.decision[2]
    poor = report_record.candidate("poor")
    assert [run.error for run in poor.failed_runs] == ["no memory", "no <memory>"] and poor.withdrawn


def test_a_running_selection_says_so_and_what_was_changed_on_the_way(tmp_path: Path) -> None:
    changes = [{"option": "confidence", "before": 0.999, "now": 0.95, "num_done": 3}]
    meta = {"environments": [ENVIRONMENT], "changes": changes}
    store = write_selection(tmp_path, SCORES, pending=[("good", 9)], meta=meta)
    report_record = report(tmp_path)
    store.close()
    assert (report_record.result.running, report_record.result.stopped_by) == (True, None)
    assert report_record.decision[0].startswith("The selection is running. ")
    (note,) = report_record.notes
    assert re.search(r"--confidence .* 0\.999 .* 0\.95 .* 3 runs", note) and not compose_paragraph(report_record)


def test_the_checklist_has_every_session_and_a_command_to_type(tmp_path: Path) -> None:
    sessions = [{**ENVIRONMENT, "code": {"a.py": "abc"}}, {**ENVIRONMENT, "code": {"a.py": "def"}}]
    meta = {"environments": sessions, "working_seconds": 61.0}
    options = {"workers": 2, "executor_option": ("num_threads=2",), "include_package": ("my models",)}
    choice = {"belief": {"type": "student_t"}, "confidence": 0.975}
    write_selection(tmp_path, SCORES, meta=meta, **options, **choice).close()
    made = report(tmp_path)
    (note,) = made.notes
    assert "code of a.py was changed" in note
    found = dict(build_checklist(made))
    assert found["command to repeat it all"] == (
        'python -m fiesta_allennlp select 0.jsonnet 1.jsonnet 2.jsonnet -s NEW --belief \'{"type": "student_t"}\' '
        "--confidence 0.975 --max-evaluations 200 --workers 2 --executor-option num_threads=2 --metric f1 "
        "--seed 7 --include-package 'my models'"
    )
    assert found["machine node1 (GPU 0)"].startswith("Some CPU, 2 cores, 7.5 GiB of memory, Some GPU; Linux; ")
    assert found["wall-clock time"] == "1 min 1 s"
    assert (found["code of a.py"], found["code of a.py after resumption 1"]) == ("SHA-256 abc", "SHA-256 def")
    assert found["data: groups"] == "60"


def test_machines_are_listed_with_their_versions(tmp_path: Path) -> None:
    with closing(write_selection(tmp_path, {"a": [0.8, 0.9], "b": [0.6, 0.7]})) as store:
        requests = [make_request(7, name, 9, shared_splits=True) for name in "ab"]
        store.reserve(requests)
        origin = replace(ORIGIN, host="node2", gpu="", gpu_names="", python="3.13.0", cores=4)
        store.record(Evaluation(requests[0], 0.5, "f1", 4.0, origin=origin))
        store.record(Failure(requests[1], "error", "no luck", origin=replace(origin, job="18")))
    report_record = report(tmp_path)
    assert "b-9 on node2: error: no luck" in render_html(report_record, {})
    machine = dict(build_checklist(report_record))["machine node2"]
    assert re.search(r"4 cores.*Python 3\.13\.0, torch 2\.0; 1 finished .* 1 failed", machine)


def test_a_table_is_believed_as_a_whole(tmp_path: Path) -> None:
    scores = {"a": [0.5, 0.6, 0.7, 0.4], "b": [0.8, 0.7, 0.9, 0.9]}
    path = write_split_table(tmp_path / "scores.csv", scores, 2)
    report_record = report(path)
    assert (report_record.result.leading, report_record.is_selection) == ("b", False)
    assert report_record.candidate("a").split_seeds == (0, 0, 1, 1)
    assert [point.num_evaluations for point in report_record.path] == [4, 5, 6, 7, 8]
    assert report_record.comparisons[0].paired_differences == pytest.approx((0.2, 0.35))
    assert ["share a split" in note for note in report_record.notes] == [False, False, False, True]
    again = report(write_split_table(path, scores))
    assert again.read_back is not None and again.notes == again.read_back.lines
    assert again.result.confidence == pytest.approx(ModeratedT().posterior(again.history).prob_best()[1])


def test_the_page_is_there_where_drawing_fails(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise MemoryError

    out = tmp_path / "out"
    monkeypatch.setattr("matplotlib.figure.Figure.draw", fail)
    with pytest.raises(MemoryError):
        report(run, output=out)
    assert {path.name for path in out.iterdir()} == {"report.html", "table.tex", "table.csv", "scores.csv"}
    assert '<h2 id="candidates">' in (out / "report.html").read_text(encoding="utf-8")


def test_files_are_written_and_the_scores_can_be_replayed(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    report(run, output=out)
    figures = {f"figures/{name}.pdf" for name in ("distributions", "differences", "path")}
    names = {"report.html", "table.tex", "table.csv", "scores.csv", "figures", *figures}
    assert {str(path.relative_to(out)) for path in out.rglob("*")} == names
    table = make_score_table(read_run_table(out / "scores.csv", ReplaySettings()))
    assert {name: sorted(scores) for name, scores in table.scores.items()} == {n: sorted(s) for n, s in SCORES.items()}


@pytest.mark.usefixtures("undrawn")
def test_one_evaluation_of_each_says_that_nothing_is_known(tmp_path: Path) -> None:
    write_selection(tmp_path, {"a": [0.5], "b": [0.6]}).close()
    report_record = report(tmp_path, output=tmp_path / "out")
    result = report_record.result
    assert (result.leading, result.confidence, result.single_runs_wrong) == (None, None, None)
    assert report_record.path == report_record.comparisons == ()
    assert "Interrupted after 2 runs" in report_record.decision[0]
    write_selection(tmp_path / "one", {"a": [0.5], "b": []}).close()
    assert "Interrupted after 1 run" in report(tmp_path / "one", output=tmp_path / "one" / "report").decision[0]
    pair = report(tmp_path, compare=("a", "b"), output=tmp_path / "pair")
    assert pair.decision[0].startswith("a minus b is -0.1000")


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        (("run",), {"min_score": 0.5}, "--min-score is for"),
        (("run",), {"compare": ("good",)}, "--compare takes two .* 1"),
        (("table.csv",), {"compare": ("a", "a")}, "--compare: 'a' is named twice"),
        (("table.csv",), {"compare": ("a", "bb")}, "table.csv: .*'bb'.* 'b'"),
        ((), {"compare": ("a", "b")}, "pass the directory"),
        (("run",), {"output": "taken/deeper"}, "--output taken/deeper: .*Not a directory"),
        (("table.csv",), {"belief": "studentt"}, "--belief studentt: .* Did you mean 'student_t'"),
    ],
)
def test_what_is_wrong_is_said(
    run: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, options: Any, named: str
) -> None:
    monkeypatch.chdir(run.parent)
    write_split_table(Path("table.csv"), {"a": [1.5, 2.5], "b": [3, 4]})
    Path("taken").touch()
    with pytest.raises(FiestaError, match=named):
        report(*arguments, **options)


NOISE = np.random.default_rng(2)
HISTORY = history({name: NOISE.normal(ord(name) / 50, 0.01, 6).tolist() for name in "abc"})


@pytest.mark.parametrize(("belief", "begin"), [(ModeratedT(), 6), (StudentT(), 9)])
def test_every_point_is_the_belief_of_that_moment(belief: Any, begin: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compute_belief_path(HISTORY, belief)
    assert [point.num_evaluations for point in path] == list(range(begin, 19))
    for point in path:
        expected = belief.posterior(HISTORY.first_evaluations(point.num_evaluations)).prob_best()
        assert list(point.prob_best.values()) == pytest.approx(expected)
    monkeypatch.setattr(record, "MAX_PATH_POINTS", 5)
    fewer = compute_belief_path(HISTORY, belief)
    assert len(fewer) <= 5 and fewer[-1] == path[-1]


def test_one_that_joined_late_is_there_from_then_on_and_a_withdrawn_one_has_no_part() -> None:
    late = sorted(HISTORY.evaluations, key=lambda evaluation: evaluation.request.candidate == "c")
    path = compute_belief_path(replace(HISTORY, evaluations=tuple(late)), ModeratedT())
    numbers = {point.num_evaluations: len(point.prob_best) for point in path if point.num_evaluations > 10}
    assert numbers == {11: 2, 12: 2, 14: 3, 15: 3, 16: 3, 17: 3, 18: 3}
    without = compute_belief_path(replace(HISTORY, withdrawn=frozenset("b")), ModeratedT())
    assert set(without[-1].prob_best) == {"a", "c"}
    assert compute_belief_path(History(("a", "b")), ModeratedT()) == ()


def test_two_candidates_keep_their_splits_and_get_a_decision_of_their_own(run: Path, tmp_path: Path) -> None:
    scores = {"old": [0.5, 0.6, 0.7, 0.6], "new": [0.8, 0.7, 0.9, 0.8], "third": [0.1, 0.9, 0.4, 0.2]}
    table = report(split_rows(scores), compare=("new", "old"))
    assert [(c.name, c.scores, c.split_seeds) for c in table.result.candidates] == [
        ("new", (0.8, 0.7, 0.9, 0.8), (0, 1, 2, 3)),
        ("old", (0.5, 0.6, 0.7, 0.6), (0, 1, 2, 3)),
    ]
    assert table.decision[0].startswith("new is better than old with probability")
    assert re.search(r"new minus old is \+0\.2000 .*4 shared splits", table.decision[1])
    pair = report(run, compare=("fair", "good"), output=tmp_path / "pair")
    assert (pair.title, pair.result.leading, pair.result.margin) == ("fair against good", "good", 0.001)
    assert build_checklist(pair) == build_checklist(report(run)) and not compose_paragraph(pair)
    assert len(pair.comparisons) == 1 and pair.comparisons[0].first == "fair"
    assert pair.result.candidates[0].num_parameters == 1234


def test_a_candidate_with_failed_runs_alone_takes_no_part_in_a_table(tmp_path: Path) -> None:
    rows = ["a,0,.7", "a,1,.72", "b,0,.8", "b,1,.79", "dead,0,failed", "begun,0,"]
    (tmp_path / "scores.csv").write_text("\n".join(["candidate,seed,score", *rows]))
    made = report(tmp_path / "scores.csv", output=tmp_path / "out")
    dead = made.candidate("dead")
    assert (dead.state, dead.failures, dead.num_evaluations, dead.mean) == ("failed", 1, 0, None)
    assert made.result.leading == "b" and made.result.confidence is not None
    assert [c.name for c in made.result.ranked] == ["b", "a", "dead"]
    assert "\ndead,0,0,0,1," in (tmp_path / "out" / "table.csv").read_text(encoding="utf-8")
    assert report(tmp_path / "out" / "scores.csv").result.on_official_splits, "as the table, which has no splits"
