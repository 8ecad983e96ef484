"""Tables in the forms that people have, as excerpts of published ones, and tables that contradict themselves."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from fiesta_allennlp import next_runs, replay, report
from fiesta_allennlp.core.errors import DataError, FiestaError
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.reports.paragraph import build_checklist, compose_paragraph
from fiesta_allennlp.selecting.workspace import write_csv
from fiesta_allennlp.tables.next_runs import NextRuns
from fiesta_allennlp.tables.simulation.score_sources import read_score_table
from fiesta_allennlp.tables.table_reader import read_brought_runs
from fiesta_allennlp.tables.table_settings import BroughtSettings, ReplaySettings, parse_columns
from tests.score_tables import score_rows, split_rows
from tests.selections import write_selection

WANDB = """Name,State,model,params.seed,f1,Runtime,Notes
r1,finished,bert,0,.86,10,"- a
- b"
r2,finished,bert,1,.87,11,
r3,finished,bert,2,.86,12,
r4,crashed,bert,3,.21,3,
r5,running,bert,4,.25,4,
r6,finished,cnn,0,.83,10,
r7,finished,cnn,1,.83,10,
r8,finished,cnn,2,,10,
r9,killed,,,,0,
"""


AUTOML = """id,task,framework,constraint,fold,type,result,metric,seed,info
1,iris,rf,1h8c,0,binary,0.91,auc,11,
1,iris,rf,1h8c,1,binary,,auc,12,MemoryError: 8 GB
1,iris,rf,1h8c,2,binary,0.92,auc,13,
1,iris,xgb,1h8c,0,binary,0.90,auc,11,
1,iris,xgb,1h8c,1,binary,0.89,auc,12,
2,wine,rf,1h8c,0,multiclass,-0.3,neg_logloss,11,
2,wine,xgb,1h8c,0,multiclass,-0.2,neg_logloss,11,
"""
UCR = {
    "HC2": "folds:,0,1,2\nArrowHead,0.87,0.88,0.86\nBeef,0.5,0.6,0.7\n",
    "ROCKET": "folds:,0,1,2\nArrowHead,0.81,0.83,0.82\nBeef,0.8,0.8,0.8\n",
}
BLUM = """Size,Radius,FruitFly,Shukla,Ikeda
1000,0.15,223,213,214
1000,0.17,240,231,229
2000,0.20,300,290,280
"""


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def told(found: NextRuns) -> Dict[str, List[Any]]:
    """The scores of each candidate, then how many of its runs failed and are pending."""
    history = found.history
    failed = [failure.request.candidate for failure in history.failures]
    return {
        name: [*history.scores(name).tolist(), failed.count(name), history.num_pending(name)]
        for name in history.candidates
    }


OF_WANDB: Dict[str, Any] = {"columns": {"candidate": "model", "score": "f1"}, "ignore": ["Runtime"]}
OF_AUTOML: Dict[str, Any] = {
    "columns": {"candidate": "framework", "split": "fold", "score": "result", "error": "info"},
    "where": {"task": "iris"},
}
OF_BLUM: Dict[str, Any] = {"wide": ["FruitFly", "Shukla"], "where": ["Size=1000"]}


@pytest.mark.parametrize(
    ("text", "settings", "expected", "said"),
    [
        (
            WANDB,
            OF_WANDB,
            {"bert": [0.86, 0.87, 0.86, 1, 1], "cnn": [0.83, 0.83, 1, 0]},
            [
                r"5 runs of 2 candidates \(bert 3, cnn 2\), f1 from 0\.83 to 0\.87, the highest",
                "official split, .*; 2 failed, 1 not finished, 1 left out",
                "columns: candidate = model, seed = params.seed, score = f1, state = State$",
            ],
        ),
        (
            AUTOML,
            OF_AUTOML,
            {"rf": [0.91, 0.92, 1, 0], "xgb": [0.9, 0.89, 0, 0]},
            [
                "columns: candidate = framework, task = task, split = fold, seed = seed, score = result, "
                "metric = metric, error = info$"
            ],
        ),
        (
            BLUM,
            OF_BLUM,
            {"FruitFly": [223, 240, 0, 0], "Shukla": [213, 231, 0, 0]},
            [r"2 splits \(rows of a wide table\)"],
        ),
    ],
)
def test_published_forms_are_read_as_they_are_and_the_answer_says_so(
    tmp_path: Path, text: str, settings: Dict[str, Any], expected: Dict[str, List[Any]], said: List[str]
) -> None:
    path = write(tmp_path / "t.csv", text)
    answer = next_runs(path, max_failures=9, **settings)
    assert told(answer) == expected
    assert all(re.search(part, "\n".join(answer.table.lines), re.MULTILINE) for part in said)
    made = report(path, **settings)
    assert made.read_back is not None and made.read_back.data == answer.table.data
    assert {each.name: each.num_evaluations for each in made.result.candidates} == {
        name: len(row) - 2 for name, row in expected.items()
    }


def test_a_file_for_each_candidate_with_a_column_for_each_split(tmp_path: Path, undrawn: None) -> None:
    files = [write(tmp_path / f"{name}.csv", text) for name, text in UCR.items()]
    given: Dict[str, Any] = {"score": "{split}", "where": ["folds:=ArrowHead"]}
    found = next_runs(files, confidence=0.9999, **given)
    assert found.table.lines[0].startswith(f"{files[0]}, {files[1]}: 6 runs")
    assert told(found) == {"HC2": [0.87, 0.88, 0.86, 0, 0], "ROCKET": [0.81, 0.83, 0.82, 0, 0]}
    assert found.history.split_seeds("HC2").tolist() == found.history.split_seeds("ROCKET").tolist() == [0, 1, 2]
    assert found.runs[0].split == "3" and int(found.runs[0].seed) >= 10**5, "the seeds of these runs are unknown"
    made = report(files, output=tmp_path / "out", **given)
    assert made.result.leading == "HC2" and "ROCKET.csv, SHA-256 " in dict(build_checklist(made))["scores"]
    assert replay(files, **given, repetitions=2, seed=1).best == "HC2"


@pytest.mark.parametrize(("state", "outcome"), [("FINISHED", [0.5, 0, 0]), ("Killed", [1, 0]), ("Waiting", [0, 1])])
def test_a_state_decides_what_a_score_means(state: str, outcome: List[Any]) -> None:
    def rows(state: str) -> List[Dict[str, Any]]:
        return score_rows({"a": [0.5], "b": [0.5]}, how=state)

    assert told(next_runs(rows(state), columns={"state": "how"}))["a"] == outcome
    assert told(next_runs(rows(state)))["a"] == [0.5, 0, 0]
    remedies = r"\n    finished=\('gone',\)\n    columns=\{'state': ''\}"
    with pytest.raises(DataError, match=rf"row 1: 'how' is 'gone', .*{remedies}"):
        next_runs(rows("gone"), columns={"state": "how"})
    assert told(next_runs(rows("gone"), columns={"state": "how"}, finished=["gone"]))["a"] == [0.5, 0, 0]


def test_the_same_runs_in_any_form_are_the_same_history(tmp_path: Path) -> None:
    """Row objects, JSON, JSONL, CSV and wide; `table_files_test.py` has separators and encodings."""
    scores = {"a": [0.81, 0.83, 0.8], "b": [0.79, 0.8, 0.78]}
    rows = split_rows(scores)
    lines = [", ".join(map(str, row.values())) for row in rows]
    wide = [f"{split},{scores['a'][split]},{scores['b'][split]}" for split in range(3)]
    tables: List[Any] = [
        rows,
        write(tmp_path / "rows.json", json.dumps(rows)),
        write(tmp_path / "rows.jsonl", "\n".join(map(json.dumps, rows))),
        write(tmp_path / "a.csv", "\n".join(["candidate, split, seed, score", *lines])),
    ]
    found = [next_runs(table) for table in tables]
    found.append(next_runs(write(tmp_path / "wide.csv", "split,a,b\n" + "\n".join(wide)), wide=["a", "b"]))
    found.append(next_runs(rows, columns={"seed": ""}))
    first = found[0].decision.prob_best
    for each in found[1:]:
        assert told(each) == told(found[0]) and each.decision.prob_best == pytest.approx(first)


def test_a_missing_score_of_a_data_frame_needs_a_state() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"candidate": ["a", "b"], "seed": [1, 1], "score": [0.5, np.nan]})
    with pytest.raises(DataError, match="row 2: a score must .* 'nan'"):
        next_runs(frame)
    assert told(next_runs(frame.assign(state=["COMPLETE", "RUNNING"]))) == {"a": [0.5, 0, 0], "b": [0, 1]}
    with pytest.raises(DataError, match="'seed' appears twice"):
        next_runs(frame.set_axis(["candidate", "seed", "seed"], axis=1), columns={"score": "seed"})


HEADER = "candidate,seed,score\n"


@pytest.mark.parametrize(
    ("text", "settings", "named"),
    [
        ("candidate,seed,SCORE,Score\na,0,1,2\n", {}, "'score' appears twice: 'SCORE' and 'Score'"),
        (HEADER + "a,0,1\nb,0,1\na,00,1\n", {}, "line 4: .*'a', seed 0 already .*line 2"),
        (HEADER + "a,0,1_000\nb,0,1\n", {}, "line 2: a score must .* '1_000'"),
        (HEADER + "a,0,1e308\nb,0,1\n", {}, r"line 2: a score must .* 1e\+100 .* '1e308'"),
        (HEADER + "a,0,1\n,1,.3\n", {}, "line 3: 'candidate' is empty.* candidate, seed"),
        ("candidate,seed,eval_loss\na,0,1\n", {"score": "eval_loss"}, "'eval_loss' has 'loss'(.*\n)+    minimise=True"),
        ("candidate,seed,score,metric\na,0,1,rmse\n", {}, "line 2: 'rmse' has 'rmse'"),
        (
            "candidate,seed,score,metric\na,0,1,f1\na,1,1,f1\nb,0,1,acc\nb,1,1,acc\nc,0,1,rec\n",
            {},
            r"line 4: the metric is acc, .*line 2 .* f1\. .*\n    where=\('metric=f1',\)",
        ),
        ("candidate,seed,score,task\na,0,1,x\n", {"where": ["task=z"]}, "no row has --where task=z.*: x"),
        ("a,b\n1,2\n", {}, "no column is .* --columns candidate=COLUMN. .*: a, b"),
        (HEADER + "a,0,1\n", {"score": "f1"}, r"'f1' is missing.*\n    score='score'"),
        (
            "candidate,step,score\na,1,.5\na,1,.6\n",
            {"where": ["step=last"]},
            "line 3: candidate 'a' already .*line 2. Remove one",
        ),
        (
            "candidate,step,score\na,1,.5\na,x,.5\n",
            {"where": ["step=last"]},
            "line 3: --where step=last needs numbers .* 'x'",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, text: str, settings: Dict[str, Any], named: str) -> None:
    with pytest.raises(FiestaError, match=named):
        next_runs(write(tmp_path / "t.csv", text), **settings)


@pytest.mark.parametrize(
    ("settings", "best"),
    [
        ({"minimise": True}, "a"),
        ({"minimise": False}, "b"),
        ({"columns": {"score": "-loss"}}, "a"),
        ({"columns": {"score": "+loss"}, "minimise": False}, "b"),
    ],
)
def test_a_loss_has_the_direction_that_was_typed(settings: Dict[str, Any], best: str) -> None:
    rows = [{"candidate": name, "seed": seed, "loss": ord(name) + seed / 100} for name in "ab" for seed in range(3)]
    settings = {"columns": {"score": "loss"}, **settings}
    assert next_runs(rows, **settings).decision.best == report(rows, **settings).result.leading == best


def test_one_value_in_each_cell_however_odd(tmp_path: Path) -> None:
    """A cell of more than 131,072 characters, ends of lines of Unicode, a comma in the name of a column."""
    rows = "".join(f'{n},{s},0.{s},"{n}\u2028\x0c\u0085{"y" * 200_000 * (1 - s)}"\n' for n in "ab" for s in range(2))
    path = write(tmp_path / "t.csv", '"model, size",seed,score,config\n' + rows)
    columns = parse_columns('"candidate=model, size",score=score')
    assert told(next_runs(path, columns=columns)) == {n: [0.0, 0.1, 0, 0] for n in "ab"}


def test_the_last_step_of_a_run_counts() -> None:
    def rows_of(*steps: Any) -> List[Dict[str, Any]]:
        return [{"candidate": name, "seed": 0, "step": step, "score": score} for name in "ab" for step, score in steps]

    rows, last = rows_of((1, 0.1), (10, 0.3), (2, 0.9)), {"a": [0.3, 0, 0], "b": [0.3, 0, 0]}
    assert told(next_runs(rows, where={"step": "last"})) == last
    assert told(next_runs(rows, where={"step": 2})) == {"a": [0.9, 0, 0], "b": [0.9, 0, 0]}
    with pytest.raises(DataError, match=r"step \(1, 2, 10\).*\n    where=\('step=10',\)\n    ignore=\('step',\)$"):
        next_runs(rows)
    without_seeds = [{name: value for name, value in row.items() if name != "seed"} for row in rows]
    assert told(next_runs(without_seeds, where={"step": "last"})) == last
    unscored = rows_of((1, 0.1), (10, None), (5, 0.3), (2, 0.2))
    assert told(next_runs(unscored, where={"step": "last"})) == last, "a step without a score takes none away"
    logged = [{**row, "state": "finished"} for row in rows_of((1, 0.1), (10, 0.3), (11, None))]
    assert told(next_runs(logged, where={"step": "last"})) == last, "a finished run may log a step without a score"
    failed = rows_of((1, 0.1), (10, "failed"), (5, 0.3))
    assert told(next_runs(failed, where={"step": "last"})) == {"a": [1, 0], "b": [1, 0]}


def test_steps_that_rise_within_candidates_are_no_runs() -> None:
    curves = {"bert": [(500, 0.87), (1000, 0.88), (1500, 0.92)], "cnn": [(190, 0.90), (230, 0.906), (270, 0.909)]}
    rows = [{"candidate": name, "step": k, "score": score} for name, curve in curves.items() for k, score in curve]
    with pytest.raises(DataError, match=r"step \(190, 230.*\n    where=\('step=last',\)\n    ignore=\('step',\)$"):
        next_runs(rows)
    assert told(next_runs(rows, where={"step": "last"})) == {"bert": [0.92, 0, 0], "cnn": [0.909, 0, 0]}
    rows = [row for pair in zip(rows[:3], rows[3:], strict=True) for row in pair]  # written by turns
    with pytest.raises(DataError, match="step=last"):
        next_runs(rows)
    best_epochs = [{**row, "step": step} for row, step in zip(rows, (3, 2, 5, 4, 6, 1), strict=True)]
    assert next_runs(best_epochs).history.num_finished("bert") == 3


def test_rows_that_are_all_there_twice_are_refused() -> None:
    values = (0.9, 0.91, 0.93, 0.9, 0.89, 0.92)
    rows = [{"candidate": name, "score": score} for name, score in zip("aaabbb", values, strict=True)]
    assert told(next_runs(rows))["a"] == [0.9, 0.91, 0.93, 0, 0]
    with pytest.raises(DataError, match="every row is there 2 times"):
        next_runs([*rows, *rows])
    answers = [{"candidate": name, "score": score} for name in "ab" for score in (0, 1, 1, 0)]
    assert next_runs(answers).history.num_finished("a") == 4, "answers of 0 and 1 repeat without being copies"


def test_a_loss_that_a_cell_or_an_option_names_needs_a_direction() -> None:
    rows = [
        {"candidate": name, "seed": k, "measure": measure, "value": mean + k / 100}
        for name, mean in (("a", 0.3), ("b", 0.5))
        for k in range(3)
        for measure in ("loss", "mae")
    ]
    for settings in ({"where": {"measure": "loss"}}, {"columns": {"task": "measure"}, "allow": ["units"]}):
        with pytest.raises(DataError, match="has '(loss|mae)' in its name"):
            next_runs(rows, score="value", **settings)


def test_a_score_replaces_other_rows_of_its_run(tmp_path: Path) -> None:
    text = "candidate,seed,state,score\na,0,finished,.5\na,0,crashed,\nb,0,crashed,\nb,0,finished,.4\nb,1,running,\n"
    found = next_runs(write(tmp_path / "t.csv", text))
    assert told(found) == {"a": [0.5, 0, 0], "b": [0.4, 0, 1]}
    assert (found.table.num_failed, found.table.num_unfinished) == (0, 1)


SCORES = {"a": [0.5, 0.6, 0.55], "b": [0.4, 0.6, 0.5]}


def test_numbers_that_are_splits_and_seeds_may_be_seeds_of_one_official_split() -> None:
    rows = [{**row, "split": row["seed"]} for row in score_rows(SCORES)]
    paired, official = report(rows), report(rows, splits="official")
    assert paired.read_back is not None and official.read_back is not None
    assert [made.are_splits_assumed for made in (paired.read_back, official.read_back)] == [True, False]
    assert re.search(r"3 splits \(equal to the seeds\) .* --splits official$", paired.read_back.lines[1])
    assert [made.comparisons[0].paired for made in (paired, official)] == [True, False]
    assert official.result.on_official_splits and not paired.result.on_official_splits


def test_the_runs_of_a_selection_are_read_from_its_own_file(tmp_path: Path) -> None:
    store = write_selection(tmp_path / "run", SCORES, failures=[("b", 3, "out of memory")])
    write_csv(store.rows(), tmp_path / "evaluations.csv")
    store.close()
    answer = next_runs(tmp_path / "evaluations.csv")
    assert {name: [*answer.history.scores(name)] for name in SCORES} == SCORES
    assert answer.result.splits == "shared"
    assert [failure.request.candidate for failure in answer.history.failures] == ["b"]


def test_a_report_drops_a_candidate_as_fiesta_next_does() -> None:
    rows = score_rows({"a": [0.91, 0.92, 0.93, *["failed"] * 3], "b": [0.71, 0.72, 0.73], "c": [0.61, 0.62, 0.63]})
    assert next_runs(rows).decision.best == "b"
    dropped = report(rows)
    assert (dropped.result.leading, dropped.candidate("a").state) == ("b", "failed")
    assert report(rows, max_failures=4).result.leading == "a"


@pytest.mark.parametrize(
    ("text", "settings", "metric"),
    [
        ("candidate,seed,eval_f1\n", {"columns": {"score": "eval_f1"}}, Metric("eval_f1")),
        ("candidate,seed,eval_loss\n", {"columns": {"score": "-eval_loss"}}, Metric("eval_loss", minimise=True)),
        ("candidate,seed,value,metric\n", {"columns": {"score": "value"}}, Metric("auc")),
    ],
)
def test_the_metric_column_names_the_metric_or_else_the_score_column(
    tmp_path: Path, undrawn: None, text: str, settings: Dict[str, Any], metric: Metric
) -> None:
    end = ",auc" * (text.count(",") - 2)
    rows = "".join(f"{name},{k},0.{digit}{k}{end}\n" for name, digit in (("a", 9), ("b", 1)) for k in range(3))
    path = write(tmp_path / "table.csv", text + rows)
    reported = report(path, output=tmp_path / "report", **settings)
    assert reported.result.metric_text == metric.display_name and f"by {metric.display_name}" in reported.title
    assert f"by {metric.display_name}, over" in compose_paragraph(reported)
    assert next_runs(path, **settings).result.metric == metric.option_text
    assert read_score_table(path, ReplaySettings(**settings)).metric == metric
    assert report(tmp_path / "report" / "scores.csv").result.metric_text == metric.display_name


def test_a_named_index_of_a_data_frame_is_read() -> None:
    pd = pytest.importorskip("pandas")
    rows = [("a", 1, 0.7), ("a", 2, 0.6), ("b", 1, 0.9), ("b", 2, 0.8)]
    frame = pd.DataFrame(rows, columns=["candidate", "seed", "score"])
    indexed = frame.set_index(["candidate", "seed"])
    expected = {"a": [0.7, 0.6, 0, 0], "b": [0.9, 0.8, 0, 0]}
    assert told(next_runs(indexed)) == told(next_runs(indexed["score"].unstack(), score="{seed}")) == expected
    with pytest.raises(DataError, match="candidate 'a', seed 1 already"):
        next_runs(frame.assign(seed=1).set_index("seed"))
    with pytest.raises(DataError, match="several levels"):
        next_runs(indexed.unstack("candidate"))


def test_the_time_of_runs_that_exist_is_not_that_of_the_selection() -> None:
    rows = [{"candidate": "a", "seed": 1, "score": 0.5, "seconds": 3600}]
    runs, _ = read_brought_runs(BroughtSettings(), {"splits": "official"}, rows)
    assert [run.seconds for run in runs.outcomes] == [0]
