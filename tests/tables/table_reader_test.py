"""Tables in the forms that people have: excerpts in the form of published ones, and what is ambiguous is refused."""

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import numpy as np
import pytest

from fiesta_allennlp import next_runs, replay, report
from fiesta_allennlp.core.errors import DataError, FiestaError
from fiesta_allennlp.reports.pages import compose_paragraph
from fiesta_allennlp.selection.metrics import Metric, check_metric_sign, scale_notes
from fiesta_allennlp.tables.next_runs import NextRuns
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.table import open_scores

WANDB = """Name,State,model,seed,f1,Runtime,Notes
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
MLFLOW = """run_id,experiment_id,status,artifact_uri,metrics.test_f1,params.model,params.seed
a1,0,FINISHED,x,0.86,bert,0
a2,0,FINISHED,x,0.87,bert,1
a3,0,FAILED,x,0.2,bert,2
a4,0,SCHEDULED,x,,bert,3
a5,0,FINISHED,x,0.83,cnn,0
a6,0,KILLED,x,,cnn,1
a7,0,RUNNING,x,0.1,cnn,2
"""
OPTUNA = """number,value,datetime_start,params_model,params_seed,state
0,0.86,x,bert,0,COMPLETE
1,0.87,x,bert,1,COMPLETE
2,0.4,x,bert,2,PRUNED
3,,x,bert,3,FAIL
4,0.83,x,cnn,0,COMPLETE
5,,x,cnn,1,WAITING
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
RECYCLING = """pretrain_model,seed,20_newsgroup,ag_news,AVG
bert,0,0.81,0.9,0.85
bert,1,0.82,0.9,0.86
roberta,0,0.84,0.9,0.87
roberta,1,0.85,0.9,0.87
"""
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


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        (
            WANDB,
            {"columns": {"candidate": "model", "score": "f1", "seed": "seed"}},
            {"bert": [0.86, 0.87, 0.86, 1, 1], "cnn": [0.83, 0.83, 1, 0]},
        ),
        (
            MLFLOW,
            {"columns": {"candidate": "params.model", "score": "metrics.test_f1", "seed": "params.seed"}},
            {"bert": [0.86, 0.87, 1, 1], "cnn": [0.83, 1, 1]},
        ),
        (
            OPTUNA,
            {"columns": {"candidate": "params_model", "score": "value", "seed": "params_seed"}},
            {"bert": [0.86, 0.87, 2, 0], "cnn": [0.83, 0, 1]},
        ),
        (
            AUTOML,
            {"columns": {"candidate": "framework", "split": "fold", "score": "result"}, "where": {"task": "iris"}},
            {"rf": [0.91, 0.92, 1, 0], "xgb": [0.9, 0.89, 0, 0]},
        ),
        (
            RECYCLING,
            {"columns": {"candidate": "pretrain_model", "score": "20_newsgroup"}},
            {"bert": [0.81, 0.82, 0, 0], "roberta": [0.84, 0.85, 0, 0]},
        ),
        (
            BLUM,
            {"wide": "candidate=FruitFly,Shukla", "where": ["Size=1000"]},
            {"FruitFly": [223, 240, 0, 0], "Shukla": [213, 231, 0, 0]},
        ),
    ],
)
def test_published_forms_are_read_as_they_are(
    tmp_path: Path, text: str, settings: Dict[str, Any], expected: Dict[str, List[Any]]
) -> None:
    path = write(tmp_path / "t.csv", text)
    assert told(next_runs(path, max_failures=9, **settings)) == expected
    made = report(path, **settings)
    assert {each.name: each.num_evaluations for each in made.candidates} == {
        name: len(row) - 2 for name, row in expected.items()
    }


def test_a_file_for_each_candidate_with_a_column_for_each_split(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.csv", text) for name, text in UCR.items()]
    given: Dict[str, Any] = {"wide": "split", "where": ["folds:=ArrowHead"]}
    found = next_runs(files, confidence=0.9999, **given)
    assert told(found) == {"HC2": [0.87, 0.88, 0.86, 0, 0], "ROCKET": [0.81, 0.83, 0.82, 0, 0]}
    assert found.history.split_seeds("HC2").tolist() == found.history.split_seeds("ROCKET").tolist() == [0, 1, 2]
    assert (found.runs[0].split, found.runs[0].seed) == ("3", "1")
    made = report(files, output=tmp_path / "out", **given)
    assert made.best == "HC2" and "ROCKET.csv, SHA-256 " in dict(made.checklist)["scores"]
    assert made.decision[0].startswith("HC2 is the best with probability ")
    near = report(files, wide="split", where=["folds:=Beef"])
    assert near.decision[0].startswith("ROCKET leads with P(best) ") and "not decided: target 0.95" in near.decision[0]
    options: Dict[str, Any] = {"budget": 6, "strategy": "non_adaptive_fb", "repetitions": 2, "processes": 1, "seed": 1}
    assert replay(files, **given, **options).best == "HC2"


@pytest.mark.parametrize(("state", "outcome"), [("FINISHED", [0.5, 0, 0]), ("Killed", [1, 0]), ("Waiting", [0, 1])])
def test_a_state_decides_what_a_score_means(state: str, outcome: List[Any]) -> None:
    rows = [{"candidate": name, "seed": 1, "score": 0.5, "how": state} for name in "ab"]
    assert told(next_runs(rows, columns={"state": "how"}))["a"] == outcome
    assert told(next_runs(rows))["a"] == [0.5, 0, 0]
    with pytest.raises(DataError, match=r"row 1: 'how' is 'gone', .*Known states: finished.* --columns state=\."):
        next_runs([{**row, "how": "gone"} for row in rows], columns={"state": "how"})


def test_the_same_runs_in_any_form_are_the_same_history(tmp_path: Path) -> None:
    """Lists, row objects, JSONL, CSV of three dialects, wide, and Python's own objects."""
    scores = {"a": [0.81, 0.83, 0.8], "b": [0.79, 0.8, 0.78]}
    rows = [
        {"candidate": name, "split": split, "seed": split + 1, "score": score}
        for name, column in scores.items()
        for split, score in enumerate(column)
    ]
    lines = [",".join(map(str, row.values())) for row in rows]
    wide = [f"{split},{scores['a'][split]},{scores['b'][split]}" for split in range(3)]
    tables: List[Any] = [
        rows,
        scores,
        {name: np.array(column) for name, column in scores.items()},
        write(tmp_path / "lists.json", json.dumps(scores)),
        write(tmp_path / "rows.json", json.dumps(rows)),
        write(tmp_path / "rows.jsonl", "\n".join(map(json.dumps, rows))),
        write(
            tmp_path / "a.csv", "candidate, split, seed, score\n" + "\n".join(line.replace(",", ", ") for line in lines)
        ),
        write(
            tmp_path / "b.csv", "candidate;split;seed;score\n" + "\n".join(lines).replace(",", ";").replace(".", ",")
        ),
        write(tmp_path / "c.tsv", "\t".join(rows[0]) + "\n" + "\n".join(lines).replace(",", "\t")),
    ]
    found = [next_runs(table) for table in tables]
    found.append(next_runs(write(tmp_path / "wide.csv", "split,a,b\n" + "\n".join(wide)), wide="candidate"))
    found.append(next_runs(rows, columns={"seed": ""}))
    first = found[0].decision.prob_best
    for each in found[1:]:
        assert told(each) == told(found[0]) and each.decision.prob_best == pytest.approx(first)


class Frame:
    """What of a pandas data frame is used."""

    def __init__(self, rows: List[Mapping[str, Any]], columns: Optional[List[str]] = None) -> None:
        self._rows, self.columns = rows, columns or list(rows[0])

    def to_dict(self, orient: str) -> List[Mapping[str, Any]]:
        assert orient == "records"
        return self._rows


def test_a_data_frame_is_read_and_a_missing_score_needs_a_state() -> None:
    rows = [{"candidate": name, "seed": np.int64(1), "score": score} for name, score in (("a", 0.5), ("b", np.nan))]
    with pytest.raises(DataError, match="row 2: a score must be a number .* 'nan'"):
        next_runs(Frame(rows))
    stated = [{**row, "state": state} for row, state in zip(rows, ("COMPLETE", "RUNNING"), strict=True)]
    assert told(next_runs(Frame(stated))) == {"a": [0.5, 0, 0], "b": [0, 1]}
    with pytest.raises(DataError, match="the column 'seed' appears twice"):
        next_runs(Frame(rows, ["candidate", "seed", "seed"]))


HEADER = "candidate,seed,score\n"


@pytest.mark.parametrize(
    ("text", "settings", "named"),
    [
        ("candidate,seed,score,score\na,0,1,2\n", {}, "line 1: the columns 'score' and 'score' have the same name"),
        ("candidate,seed,score,Score\na,0,1,2\n", {}, "line 1: the columns 'score' and 'Score'.* --columns score="),
        (
            HEADER + "ours,0,1\nOurs,1,1\n",
            {},
            "line 3: candidate 'Ours' and candidate 'ours' in .*line 2 are one number, or differ only",
        ),
        (HEADER + "a b,0,1\na\u00a0b,1,1\n", {}, r"line 3: candidate 'a\\xa0b' and candidate 'a b'"),
        (HEADER + "\u00e9,0,1\ne\u0301,1,1\n", {}, r"line 3: candidate 'e\\u0301' and candidate '\\xe9'"),
        (HEADER + "a\u200b,0,1\na,1,1\n", {}, r"line 2: the name 'a\\u200b' contains an invisible character"),
        (HEADER + "a,0,1\nb,0,1\n", {"candidates": ["A"]}, "candidates 'a' and 'A' differ only in case"),
        ("candidate,split,seed,score\na,x,0,1\nb,X,0,1\n", {}, "line 3: split 'X' and split 'x' in .*line 2"),
        (HEADER + "a,0,1\nb,0,1\na,00,1\n", {}, "line 4: candidate 'a', seed 0 already appears in .*line 2. Remove"),
        (HEADER + "a,1.0,1\nb,0,1\na ,1,1\n", {}, "line 4: candidate 'a', seed 1 already appears in .*line 2"),
        ("candidate;seed;score\na;0;1,011\nb;0;978\n", {}, "line 2: '1,011' can be read in two ways.* '978'"),
        ("candidate;seed;score\na;0;0,81\nb;0;0.8\n", {}, "line 2: '0,81' can be read in two ways.* '0.8'"),
        (HEADER + 'a,0,"1,011"\nb,0,1\n', {}, "line 2: a score must be a number .* '1,011'"),
        (HEADER + "a,0,1_000\nb,0,1\n", {}, "line 2: a score must be a number .* '1_000'"),
        (
            "candidate,seed,eval_loss\na,0,1\n",
            {"columns": {"score": "eval_loss"}},
            "'eval_loss' has 'loss'.* --minimise",
        ),
        ("candidate,seed,score,metric\na,0,1,rmse\n", {}, "'rmse' has 'rmse' in its name.* --no-minimise"),
        (
            "candidate,seed,score,metric\na,0,1,f1\na,1,1,f1\nb,0,1,acc\nb,1,1,acc\nc,0,1,rec\n",
            {},
            "line 4: the metric is acc, but .*line 2 it is f1",
        ),
        ("candidate,seed,score,metric\na,0,1,\nb,0,1,val_loss\nb,1,1,val_loss\n", {}, "line 3: 'val_loss' has 'loss'"),
        ("candidate,seed,score,task\na,0,1,x\na,0,1,y\n", {}, "differ in task. .* --where 'task=y'"),
        ("candidate,split,score\na,0,1\na,0,2\n", {}, "line 3: candidate 'a', split 0 already .*Add a seed column"),
        ("candidate,seed,score,task\na,0,1,x\n", {"where": ["task=z"]}, "no row has --where task=z.* Values .*: x"),
        ("candidate,seed,score,task\na,0,1,x\n", {"where": ["tsk=x"]}, "--where tsk=x: must be .* Did you mean 'task'"),
        ("a,b\n1,2\n", {}, "line 1: the column 'candidate' is missing.* --wide candidate"),
        ("a,a\n1,2\n", {"wide": "candidate"}, "line 1: the column 'a' appears twice"),
        ("a,b\n1,2\n", {"wide": "model"}, "--wide must be candidate, split or seed"),
        ("candidate,seed,score," + "x" * 10**6 + "\na,0\n", {"columns": {"score": "f1"}}, "missing.{1,400}$"),
        (HEADER + "1e-3,0,.5\n0.001,1,.6\n", {}, "line 3: candidate '0.001' and candidate '1e-3' in .*one number"),
        (HEADER + "2,0,.5\n2.0,1,.6\n", {}, "line 3: candidate '2.0' and candidate '2' in .*one number"),
        (HEADER + "a,0,.5\na,mean,.5\n", {}, "line 3: the seed 'mean' looks like a summary"),
        ("candidate,split,score\na,0,.5\na,All,.5\n", {}, "line 3: the split 'All' looks like a summary"),
        (
            "model,s0_test_acc,s1_test_acc,s0_train_acc\na,.5,.5,.9\nb,.6,.6,.8\n",
            {"wide": "split", "columns": {"candidate": "model"}},
            "the split is 's0_train_acc', but in .* it is 's0_test_acc', which names a set.* --wide split=COLUMN",
        ),
        ("candidate,score,iter\na,.5,1\na,.6,2\n", {}, "line 3: 'iter' is 2, but in .*line 2 .* --where iter=last"),
        ("model,s0,acc_std\na,.5,.1\n", {"wide": "split", "columns": {"candidate": "model"}}, "split 'acc_std' looks"),
        (
            "candidate,split,seed,score\na,train,0,1\na,test,0,.5\n",
            {},
            "line 3: the split is 'test', but in .*line 2 it is 'train', .*--where 'split=test'",
        ),
        ("candidate,score,epoch\na,.5,1\na,.6,2\n", {}, "line 3: 'epoch' is 2, but in .*line 2 .* --where epoch=last"),
        ("Step,a,b\n1,.5,.6\n2,.6,.7\n", {"wide": "candidate"}, "line 3: 'Step' is 2, but in .*line 2 it is 1"),
        (HEADER + "a,0,.5\nN/A,1,.9\n", {}, "line 3: 'candidate' is 'N/A'. Every row needs candidate, seed and score."),
        (
            "candidate,seed,score,task\na,0,.5,iris\nb,0,.6,Iris\n",
            {"where": ["task=iris"]},
            "'iris' and 'Iris' in the column 'task' .* differ only in case",
        ),
        (
            "candidate,seed,score,lr\na,0,.5,0.001\nb,0,.6,1e-3\n",
            {"where": ["lr=1e-3"]},
            "'1e-3' and '0.001' in the column 'lr' are one number",
        ),
        ("candidate,fold,score\na,0,.5\n", {}, "'split' is missing.* --columns split=fold, or ignore it"),
        (
            "run,a - loss,a - loss__MIN,b - loss\n1,.5,.1,.6\n2,.6,.1,.6\n",
            {"wide": "candidate", "columns": {"split": "run"}},
            "'loss' has 'loss' in its name.* --minimise",
        ),
    ],
)
def test_what_can_be_misread_is_refused(tmp_path: Path, text: str, settings: Dict[str, Any], named: str) -> None:
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
def test_a_loss_has_the_direction_that_was_typed(tmp_path: Path, settings: Dict[str, Any], best: str) -> None:
    rows = "".join(f"{name},{seed},{mean + seed / 100}\n" for name, mean in (("a", 1), ("b", 2)) for seed in range(3))
    path = write(tmp_path / "t.csv", "candidate,seed,loss\n" + rows)
    settings = {**settings, "columns": settings.get("columns", {"score": "loss"})}
    assert next_runs(path, **settings).decision.best == report(path, **settings).best == best


def test_one_value_in_each_cell_however_odd(tmp_path: Path) -> None:
    """A cell of more than 131,072 characters, ends of lines of Unicode, a comma in the name of a column."""
    rows = "".join(f'{n},{s},0.{s},"x\u2028\x0c\u0085{"y" * 200_000 * (1 - s)}"\n' for n in "ab" for s in range(2))
    path = write(tmp_path / "t.csv", '"model, size",seed,score,config\n' + rows)
    assert told(next_runs(path, columns={"candidate": "model, size"})) == {n: [0.0, 0.1, 0, 0] for n in "ab"}


def test_the_last_step_of_a_run_counts() -> None:
    rows = [
        {"candidate": name, "seed": 0, "step": step, "score": score}
        for name in "ab"
        for step, score in ((1, 0.1), (10, 0.3), (2, 0.9))
    ]
    assert told(next_runs(rows, where={"step": "last"})) == {"a": [0.3, 0, 0], "b": [0.3, 0, 0]}
    assert told(next_runs(rows, where={"step": 2})) == {"a": [0.9, 0, 0], "b": [0.9, 0, 0]}
    with pytest.raises(DataError, match="differ in step"):
        next_runs(rows)
    without_seeds = [{name: value for name, value in row.items() if name != "seed"} for row in rows]
    assert told(next_runs(without_seeds, where={"step": "last"})) == {"a": [0.3, 0, 0], "b": [0.3, 0, 0]}


def test_a_last_step_without_a_score_takes_none_away() -> None:
    steps = [(1, 0.1), (10, None), (5, 0.3), (2, 0.2)]
    rows = [{"candidate": name, "seed": 0, "step": step, "score": score} for name in "ab" for step, score in steps]
    assert told(next_runs(rows, where={"step": "last"})) == {"a": [0.3, 0, 0], "b": [0.3, 0, 0]}


def test_one_set_is_no_split() -> None:
    rows = [
        {"candidate": name, "split": split, "seed": seed, "score": score - seed / 100}
        for name, *scores in (("big", 0.99, 0.80), ("small", 0.90, 0.84))
        for split, score in zip(("Train", "test"), scores, strict=True)
        for seed in range(3)
    ]
    found = next_runs(rows, where={"split": "test"})
    assert found.decision.best == "small" and found.splits == "official"
    assert next_runs(rows, where={"split": "Train"}).decision.best == "big"
    with pytest.raises(DataError, match="row 4: the split is 'test', but in rows, row 1 it is 'Train'"):
        report(rows)


@pytest.mark.parametrize("column", ["dataset", "params.lr", "config/optimizer", "Task", "lr", "task_name"])
def test_runs_of_several_kinds_are_noted(column: str) -> None:
    rows = [
        {"candidate": name, "seed": kind + seed, "score": 0.5, column: kind} for name in "ab" for kind, seed in KINDS
    ]
    assert any(f"differ in '{column}': x, y. " in note for note in next_runs(rows).notes)
    for other in ("params.seed", "params_run_name", "model"):
        renamed = [{other if name == column else name: value for name, value in row.items()} for row in rows]
        assert not any("differ in" in note for note in next_runs(renamed).notes)
    assert not any("differ in" in note for note in next_runs(rows, where={column: "x"}).notes)
    assert not any("differ in" in note for note in next_runs(rows, columns={"split": column}).notes)


def test_a_column_that_all_candidates_share_in_equal_parts_is_a_setting() -> None:
    rows = [
        {"candidate": name, "name": kind, "run": f"{name}{kind}{seed}", "score": score + seed / 100}
        for name, *scores in (("a", 0.9, 0.2), ("b", 0.7, 0.6))
        for kind, score in zip(("BLEU", "TER"), scores, strict=True)
        for seed in range(2)
    ]
    doubt = "The runs of a, b differ in 'name': BLEU, TER. Compare runs of one kind: add --where 'name=BLEU'."
    assert doubt in next_runs(rows, columns={"seed": "run"}).notes
    assert (
        f"{doubt} If it tells runs apart, map it with --columns split=name or seed=name." in next_runs(rows[::2]).notes
    )
    for fewer in (rows[1:], rows[::2], rows[:2] + rows[4:6]):
        assert not any("differ in" in note for note in next_runs(fewer, columns={"seed": "run"}).notes)


@pytest.mark.parametrize(("column", "is_noted"), [("dataset", True), ("eval_set", True), ("pretrain_data", False)])
def test_candidates_on_different_data_are_noted(tmp_path: Path, column: str, is_noted: bool) -> None:
    kinds = {"a": "val", "b": "test"}
    rows = [{"candidate": name, "seed": seed, "score": 0.5, column: kinds[name]} for name in "ab" for seed in range(3)]
    files = [
        write(tmp_path / f"{name}.json", json.dumps([row for row in rows if row["candidate"] == name])) for name in "ab"
    ]
    for table in (rows, files):
        notes = next_runs(table).notes
        assert any(f"The runs of a, b differ in '{column}': val, test." in note for note in notes) == is_noted


def test_runs_of_other_lengths_are_noted() -> None:
    ends = {"a": (1, 10), "b": (10, 9)}
    rows = [
        {"candidate": name, "seed": seed, "score": 0.5, "epoch": epoch}
        for name, epochs in ends.items()
        for seed, epoch in enumerate(epochs)
    ]
    assert any("The runs of a differ in 'epoch': 1, 10. " in note for note in next_runs(rows).notes)
    assert not any("differ in" in note for note in next_runs(rows[1:]).notes)


def test_parents_among_their_runs_are_noted() -> None:
    column = "tags.mlflow.parentRunId"
    rows: List[Dict[str, Any]] = [
        {"candidate": name, "seed": f"{name}{run}", "score": 0.5, column: parent}
        for name in "ab"
        for run, parent in enumerate((None, f"{name}0", f"{name}0"))
    ]
    assert any(f"differ in '{column}'" in note for note in next_runs(rows).notes)
    assert not any("differ in" in note for note in next_runs([row for row in rows if row[column]]).notes)


def test_a_step_that_comes_twice_is_noted() -> None:
    """Longer runs hide shorter ones where nothing tells runs apart."""
    rows = [
        {"candidate": name, "step": step, "score": step / 10}
        for name in "ab"
        for last in (4, 3)
        for step in range(1, last)
    ]
    doubt = "The rows of a have 'step' 1 twice, and only the last step counts. "
    assert any(note.startswith(doubt) for note in next_runs(rows, where={"step": "last"}).notes)
    assert not any("twice" in note for note in next_runs(rows[:3] + rows[5:8], where={"step": "last"}).notes)


def test_a_last_step_on_another_set_is_noted() -> None:
    rows = [
        {"candidate": name, "seed": seed, "step": step, "tag": tag, "score": 0.5}
        for name in "ab"
        for seed in range(3)
        for tag, step in (("val/acc", 100), ("train/acc", 110))
    ]
    found = next_runs(rows, where={"step": "last"})
    assert any("differ in 'tag': val/acc, train/acc" in note for note in found.notes)
    assert not any("differ in" in note for note in next_runs(rows, where={"step": "last", "tag": "val/acc"}).notes)


KINDS = [("x", "1"), ("x", "2"), ("y", "1")]


@pytest.mark.parametrize("name", ["value", "values_0", "avg_rank", "fit_time", "acc_std", "PSNR-B ↓"])
def test_a_score_of_any_direction_is_noted(name: str) -> None:
    rows = [{"candidate": candidate, "seed": seed, name: seed} for candidate in "ab" for seed in range(3)]
    doubt = f"The highest mean of '{name}' wins. If lower is better, add --minimise."
    assert doubt in next_runs(rows, columns={"score": name}).notes
    assert doubt not in next_runs(rows, columns={"score": name}, minimise=True).notes
    assert doubt not in next_runs(rows, columns={"score": f"-{name}"}).notes


@pytest.mark.parametrize("name", ["index", "run", "trial_id", "Repeat"])
def test_a_column_that_numbers_rows_is_no_candidate(name: str) -> None:
    rows = [{name: row, "bert": 0.85 + row / 100, "cnn": 0.83, "big": "OOM"} for row in range(3)]
    found = next_runs(rows, wide="candidate")
    assert told(found) == {"bert": [0.85, 0.86, 0.87, 0, 0], "cnn": [0.83, 0.83, 0.83, 0, 0]}
    assert f"Read the columns bert, cnn as the candidate of their scores, but not {name}, big." in found.notes
    best = [{**row, "Best": 0.9} for row in rows]
    with pytest.raises(DataError, match="row 1: the candidate 'Best' looks like a summary"):
        next_runs(best, wide="candidate")
    assert next_runs(best, wide="candidate=bert,Best").decision.best == "Best"


def test_a_score_replaces_other_rows_of_its_run(tmp_path: Path) -> None:
    text = "candidate,seed,state,score\na,0,finished,.5\na,0,crashed,\nb,0,crashed,\nb,0,finished,.4\nb,1,running,\n"
    found = next_runs(write(tmp_path / "t.csv", text))
    assert told(found) == {"a": [0.5, 0, 0], "b": [0.4, 0, 1]}
    assert "Runs by column 'state': 2 finished, 0 failed, 1 not finished." in found.notes


def test_lists_of_seeds_on_one_split_are_not_paired(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", json.dumps({"a": [0.5, 0.6, 0.55], "b": [0.4, 0.6, 0.5]}))
    paired, official = report(path), report(path, splits="official")
    assert any(note.startswith("Scores at equal positions") for note in paired.decision)
    assert [made.comparisons[0].paired for made in (paired, official)] == [True, False]
    assert dict(official.checklist)["splits"] == "one official split; each score has its own seed"
    assert official.on_official_splits and not paired.on_official_splits


def test_notes_name_what_is_doubtful() -> None:
    rows = [
        {"candidate": name, "seed": seed, "score": scale * (0.7 + seed % 3 / 100)}
        for name, scale in (("percent", 100), ("fraction", 1))
        for seed in range(6)
    ]
    notes = " ".join(next_runs(rows).notes)
    assert "on two scales: fraction with fractions such as 0.72, and percent with percentages such as 72" in notes
    assert "Every score of percent, fraction is in the table more than once" in notes
    assert scale_notes({"a": [0.8, 80.1, 0.81], "b": [0.7]})
    assert scale_notes({"a": [0.85, 0.86], "b": [83, 3.1, 84]})  # 3.1 is a collapsed run
    assert not scale_notes({"a": [0.8, 0.9], "b": [1.2, 1.5]})


@pytest.mark.parametrize("crashed", [0, -1])
def test_a_crash_that_counts_as_the_best_score_is_noted(crashed: float) -> None:
    scores = {"a": [0.25, 0.26, crashed, 0.24, 0.25], "b": [0.22, 0.21, 0.23, 0.22, 0.22]}
    doubt = f"a has 1 of 5 scores at {crashed}, far below its others"
    assert any(note.startswith(doubt) for note in next_runs(scores, minimise=True).notes)
    assert not any("far below its others" in note for note in next_runs(scores).notes)
    high = {"a": [0.8, 0.81, 999, 0.79, 0.8], "b": [0.82, 0.81, 0.83, 0.82, 0.82]}
    assert any(note.startswith("a has 1 of 5 scores at 999, far above its others") for note in next_runs(high).notes)
    assert not any("far above" in note for note in next_runs({**high, "a": [80, 81, 99.9, 79, 80]}).notes)
    near = {**scores, "a": [0.02, 0.01, 0, 0.03, 0.02]}
    assert not any("far below its others" in note for note in next_runs(near, minimise=True).notes)


def test_a_candidate_that_drops_out_with_scores_is_noted() -> None:
    rows = [{"candidate": name, "seed": seed, "score": 0.8 + seed / 100} for name in "ab" for seed in range(5)]
    rows += [{"candidate": "a", "seed": seed, "score": "failed"} for seed in range(5, 8)]
    note = "a takes no part, although it has 5 scores: 3 of its runs failed."
    assert any(text.startswith(note) for text in next_runs(rows).notes)
    assert not any("takes no part" in text for text in next_runs(rows, max_failures=4).notes)


def test_a_report_drops_a_candidate_as_fiesta_next_does() -> None:
    rows = [
        {"candidate": name, "seed": seed, "score": score + int(seed) / 100}
        for name, score in (("a", 0.9), ("b", 0.7), ("c", 0.6))
        for seed in "123"
    ]
    rows += [{"candidate": "a", "seed": seed, "score": "failed"} for seed in "456"]
    assert next_runs(rows).decision.best == "b"
    report_of_all = report(rows)
    assert report_of_all.leading == "b" and {c.name: c.state for c in report_of_all.candidates}["a"] == "failed"
    assert report(rows, max_failures=4).leading == "a"


def test_the_target_of_ones_own_strategy_is_told() -> None:
    rows = [{"candidate": name, "seed": seed, "score": seed / 10} for name in "ab" for seed in range(3)]
    assert next_runs(rows, strategy={"type": "top_two", "confidence": 0.8}).confidence == 0.8
    assert next_runs(rows, budget=9).confidence is None


def test_a_replay_that_runs_out_of_scores_draws_them_again() -> None:
    scores = {"a": [0.5, 0.6, 0.7, 0.65], "b": [0.5, 0.61, 0.69, 0.66]}
    options: Dict[str, Any] = {"repetitions": 2, "processes": 1, "seed": 3}
    found = replay(scores, **options)
    assert found.default.with_replacement and found.default.repetitions == 2
    with pytest.raises(DataError, match="ran out of scores.*--with-replacement"):
        replay(scores, **options, with_replacement=False)


def test_a_list_that_is_called_as_a_column_is_no_candidate() -> None:
    with pytest.raises(DataError, match="'seed' would be a candidate"):
        next_runs({"seed": [1, 2, 3], "bert": [0.8, 0.7, 0.9], "cnn": [0.7, 0.8, 0.6]})


@pytest.mark.parametrize(
    "name",
    ["accuracy", "mAP50", "f1-measure-overall", "macro avg.f1-score", "tokens_per_s", "chrF2", "negLogLoss", "R2Score"],
)
def test_a_score_is_no_error(name: str) -> None:
    check_metric_sign(name)


@pytest.mark.parametrize(
    "name",
    [
        "logloss",
        "val_log_loss",
        "valLoss",
        "top1_err",
        "test-mlogloss",
        "smape",
        "MSELoss",
        "cross_entropy",
        "loss2",
        "losses",
    ],
)
def test_a_log_loss_is_a_loss_and_its_negative_is_not(name: str) -> None:
    with pytest.raises(FiestaError, match="usually minimized"):
        check_metric_sign(name)
    check_metric_sign(f"neg_{name}")


@pytest.mark.parametrize(
    ("text", "settings", "metric"),
    [
        ("candidate,seed,eval_f1\n", {"columns": {"score": "eval_f1"}}, Metric("eval_f1")),
        ("candidate,seed,eval_loss\n", {"columns": {"score": "-eval_loss"}}, Metric("eval_loss", minimise=True)),
        ("candidate,seed,rmse\n", {"columns": {"score": "+rmse"}}, Metric("rmse")),
        ("candidate,seed,value,metric\n", {"columns": {"score": "value"}}, Metric("auc")),
        ("candidate,seed,value,measure\n", {"columns": {"score": "value", "metric": "measure"}}, Metric("auc")),
        ("candidate,seed,score\n", {}, Metric("score")),
    ],
)
def test_the_metric_column_names_the_metric_or_else_the_score_column(
    tmp_path: Path, text: str, settings: Dict[str, Any], metric: Metric
) -> None:
    end = ",auc" * (text.count(",") - 2)
    rows = "".join(f"{name},{k},0.{digit}{k}{end}\n" for name, digit in (("a", 9), ("b", 1)) for k in range(3))
    path = tmp_path / "table.csv"
    path.write_text(text + rows)
    reported = report(path, output=tmp_path / "report", **settings)
    assert reported.metric_text == metric.display_name and f"by {metric.display_name}" in reported.title
    assert f"in terms of {metric.display_name}." in compose_paragraph(reported)
    assert next_runs(path, **settings).result.metric == metric.option_text
    assert open_scores(ReplaySettings(scores=str(path), **settings)).metric == metric
    assert report(tmp_path / "report" / "scores.csv").metric_text == metric.display_name


def test_a_candidate_that_may_lack_a_name_is_noted(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", HEADER + "bert,0,.5\nbert,1,.6\nNone,0,.8\nNone,1,.9\n")
    assert any(note.startswith("One candidate is called None. ") for note in next_runs(table).notes)


def test_a_named_index_of_a_data_frame_is_read() -> None:
    pd = pytest.importorskip("pandas")
    rows = [("a", 1, 0.7), ("a", 2, 0.6), ("b", 1, 0.9), ("b", 2, 0.8)]
    frame = pd.DataFrame(rows, columns=["candidate", "seed", "score"])
    indexed = frame.set_index(["candidate", "seed"])
    expected = {"a": [0.7, 0.6, 0, 0], "b": [0.9, 0.8, 0, 0]}
    assert told(next_runs(indexed)) == told(next_runs(indexed["score"].unstack(), wide="seed")) == expected
    with pytest.raises(DataError, match="candidate 'a', seed 1 already appears"):
        next_runs(frame.assign(seed=1).set_index("seed"))
    with pytest.raises(DataError, match="several levels"):
        next_runs(indexed.unstack("candidate"), wide="candidate")
