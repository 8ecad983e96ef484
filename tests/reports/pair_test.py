import json
from pathlib import Path
from typing import Any, List, Optional, Tuple

import numpy as np
import pytest

from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.reports.record import build_checklist
from fiesta_allennlp.reports.report import report
from fiesta_allennlp.reports.settings import ReportSettings
from fiesta_allennlp.reports.source_data import SourceData
from fiesta_allennlp.reports.tables_and_pairs import read_pair, read_source
from fiesta_allennlp.selection.metrics import Metric
from tests.selections import write_selection


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.json").write_text(json.dumps({"old": [0.5, 0.6, 0.7, 0.6], "new": [0.8, 0.7, 0.9, 0.8]}))
    Path("one.json").write_text(json.dumps({"mine": [0.1, 0.2, 0.3]}))
    Path("same.json").write_text(json.dumps({"old": [0.4, 0.3]}))
    for name, splits in (("left", "xyz"), ("right", "zyw"), ("apart", "uvt")):
        lines = [f"{name},{split},0,0.{number}" for number, split in enumerate(splits, 1)]
        Path(f"{name}.csv").write_text("\n".join(["candidate,split,seed,score", *lines]))


def pair(first: str, second: str, source: Optional[str] = None, **options: Any) -> SourceData:
    settings = ReportSettings(**options)
    opened = None if source is None else read_source(Path(source), settings)
    return read_pair((first, second), opened, settings)


def scores(source: SourceData) -> List[Tuple[str, List[float], List[int]]]:
    history = source.history
    return [(n, history.scores(n).tolist(), history.split_seeds(n).tolist()) for n in history.candidates]


@pytest.mark.usefixtures("tables")
def test_two_of_one_source_keep_their_splits_and_those_of_two_tables_are_different_unless_paired() -> None:
    new, old = ("new", [0.8, 0.7, 0.9, 0.8], [0, 1, 2, 3]), ("old", [0.5, 0.6, 0.7, 0.6], [0, 1, 2, 3])
    for made in (
        pair("new", "old", "two.json"),
        pair("two.json:new", "two.json:old"),
        pair("new", "./two.json:old", "two.json"),
    ):
        assert scores(made) == [new, old] and made.decision.best == "new"
    apart = pair("two.json:new", "one.json")
    assert scores(apart) == [new, ("mine", [0.1, 0.2, 0.3], [4, 5, 6])]
    assert (apart.name, apart.adaptive) == ("two.json and one.json", False)
    assert apart.notes == ("It is unknown whether the two were scored on the same data.",)
    assert [key.partition(":")[0] for key, _ in build_checklist(apart)][::4] == ["two.json", "one.json"]
    left, right = scores(pair("left.csv", "right.csv", paired=True))
    assert (left, right) == (("left", [0.1, 0.2, 0.3], [0, 1, 2]), ("right", [0.1, 0.2, 0.3], [2, 1, 3]))
    assert scores(pair("two.json:old", "one.json", paired=True))[1] == ("mine", [0.1, 0.2, 0.3], [0, 1, 2])
    assert pair("old", "same.json", "two.json").history.candidates == ("two.json:old", "same.json:old")


def test_selections_share_splits_only_of_equal_data(tmp_path: Path) -> None:
    options = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.6, 0.8]}
    for name, fingerprint in (("first", "x"), ("second", "x"), ("other", "y")):
        write_selection(tmp_path / name, options, fingerprint=fingerprint, failures=[("b", 3, "no")]).close()

    def shared(other: str, notes: str) -> int:
        made = pair(f"{tmp_path}/first:a", f"{tmp_path}/{other}:b")
        assert (made.adaptive, made.is_selection) == (True, False)
        assert notes in " ".join(made.notes)
        assert bool(made.notes) == bool(notes)
        assert made.num_parameters == {"a": 1234, "b": 1234}
        assert [failure.request.candidate for failure in made.history.failures] == ["b"]
        return len(np.intersect1d(made.history.split_seeds("a"), made.history.split_seeds("b")))

    assert (shared("second", ""), shared("other", "on different data")) == (3, 0)


@pytest.mark.usefixtures("tables")
def test_a_pair_knows_its_scored_set_and_official_splits() -> None:
    options = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.6, 0.8]}
    official = {"splits": "official", "score": "validation"}
    for name, settings in (("first", official), ("second", official), ("shared", {"score": "validation"})):
        write_selection(Path(name), options, **settings).close()
    both, one = (report(compare=("first:a", f"{other}:b")) for other in ("second", "shared"))
    assert (both.on_official_splits, both.scored) == (True, "validation") and "this one split" in both.decision[-1]
    assert (one.on_official_splits, one.scored) == (False, "validation")
    assert "validation set" in report(compare=("one.json", "shared:b")).decision[-1]


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "paired", "named"),
    [
        (("two.json:nwe", "one.json"), False, "two.json: .* 'nwe'. Did you mean 'new'"),
        (("two.json", "one.json"), False, "--compare two.json: found 2 candidates: old, new"),
        (("old", "old", "two.json"), False, "'old' and 'old' are the same candidate"),
        (("old", "new", "two.json"), True, "--paired is for two tables"),
        (("left.csv", "apart.csv"), True, "no split in common: their first splits are 'x' and 'u'"),
    ],
)
def test_what_is_wrong_is_said(arguments: Any, paired: bool, named: str) -> None:
    with pytest.raises(FiestaError, match=named):
        pair(*arguments, paired=paired)


@pytest.mark.usefixtures("tables")
def test_selections_know_their_splits_and_metrics(tmp_path: Path) -> None:
    for name, metric in (("first", "f1"), ("second", "accuracy"), ("third", "-f1")):
        write_selection(tmp_path / name, {"a": [0.5, 0.6], "b": [0.4, 0.6]}, metric=metric).close()
    for other, metric in (("second", "accuracy"), ("third", "f1 .lower is better")):
        with pytest.raises(FiestaError, match=f"first:a has scores of f1, but {other}:a has scores of {metric}"):
            pair("first:a", f"{other}:a")
    with pytest.raises(FiestaError, match="--paired is for two tables of scores"):
        pair("first:a", "one.json", paired=True)
    assert pair("one.json", "second:a").metric == Metric("accuracy")
    Path("named.csv").write_text("candidate,seed,score,metric\nx,0,0.5,eval_f1\nx,1,0.6,eval_f1\n")
    named = pair("named.csv", "first:a")
    assert named.metric == Metric("f1") and "The scores are eval_f1 on one side and f1 on the other." in named.notes[-1]
    assert pair("one.json", "named.csv").metric == Metric("eval_f1")
    assert pair("one.json", "third:a").metric == pair("third:a", "one.json").metric == Metric("f1", minimise=True)
