"""Run directories made before the package was rearranged: each is reported on, and each can still be recovered.

`tests/fixtures/runs` has four of them, the project they were run in, and in `expected` what the same code said of them.
"""

import html
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

import pytest
from rich.console import Console

import fiesta_allennlp
from fiesta_allennlp import choose_system, report, select
from fiesta_allennlp.core.errors import ConfigError, StoreError
from fiesta_allennlp.documents.select import select_system
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.results import SelectionResult, SystemsResult
from fiesta_allennlp.selection.summary import number_text
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.sources import Sampling
from fiesta_allennlp.tables.table import open_scores
from fiesta_allennlp.trainings import preparation
from tests.run_files import rows_of

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"
EXPECTED = RUNS / "expected"

SELECTIONS = ("finished", "withdrawn", "interrupted", "documents")
REPLAY = {"confidence": 0.9, "repetitions": 20, "processes": 1, "seed": 11, "evaluations_per_split": 2}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all runs. The current directory is that of the project."""
    copied = tmp_path / "runs"
    shutil.copytree(RUNS, copied)
    monkeypatch.chdir(copied / "project")
    return copied


WORDING = ("title", "decision", "notes", "words")


def facts_of(made: Report) -> Any:
    """The content of a report as plain data, without its sentences."""

    def facts(items: List[Tuple[str, Any]]) -> Dict[str, Any]:
        return {key: value for key, value in items if key not in WORDING}

    return json.loads(json.dumps(asdict(made, dict_factory=facts)))


def about(value: Any, **tolerance: float) -> Any:
    """Plain data whose numbers need not agree in the last digits, which differ between versions of SciPy.

    Probabilities may differ more: the steps to a posterior end where it changes by a thousandth.
    """
    if isinstance(value, dict):
        loose = {"rel": 1e-3, "abs": 1e-4}
        return {
            key: about(child, **(loose if key.startswith(("prob", "confidence")) else tolerance))
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [about(child, **tolerance) for child in value]
    return pytest.approx(value, **(tolerance or {"rel": 1e-9})) if isinstance(value, float) else value


def summary_of(path: Path) -> Any:
    """A `selection.json`. The default strategy was called `ttts` when it was made."""
    return json.loads(path.read_text().replace('"ttts"', '"top_two"'))


def recovered(runs: Path, name: str) -> Path:
    directory = Path("..") / name
    if name == "documents":
        select_system({}, directory, console=Console(quiet=True), recover=True)
    else:
        fiesta_allennlp.select(directory=directory, recover=True)
    return directory


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", SELECTIONS)
def test_a_report_says_what_it_said(runs: Path, name: str) -> None:
    made = fiesta_allennlp.report(f"../{name}", output="report")
    expected = json.loads((EXPECTED / name / "report.json").read_text())
    assert facts_of(made) == about(expected)
    assert Path("report", "scores.csv").read_text() == (EXPECTED / name / "scores.csv").read_text()
    for file in ("report.md", "report.html", "table.tex"):
        text = Path("report", file).read_text()
        assert all(number_text(c.measure if made.by_documents else c.mean) in text for c in made.candidates)
        assert all(c.standing in html.unescape(text).replace("\\textless{}", "<") for c in made.candidates)


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_replay_reads_the_store_as_it_is_now(runs: Path, name: str) -> None:
    stored, written = (
        open_scores(ReplaySettings(scores=str(path))) for path in (f"../{name}", EXPECTED / name / "scores.csv")
    )
    assert stored.true_means() == written.true_means() and stored.minimise == written.minimise
    drawn = Sampling(shared_splits=False, with_replacement=False, length=10)
    assert stored.fewest_scores(drawn) == written.fewest_scores(drawn)
    with pytest.raises(ConfigError, match="--columns is for tables of scores"):
        open_scores(ReplaySettings(scores=f"../{name}", columns={"score": "f1"}))


@pytest.mark.parametrize("name", ["finished", "withdrawn"])
def test_a_selection_that_has_ended_is_recovered_as_it_was(runs: Path, name: str) -> None:
    pytest.importorskip("allennlp")
    directory = recovered(runs, name)
    before = summary_of(RUNS / name / "selection.json")
    before["seed"] = before.pop("entropy")
    before["lacking"] = {}  # the old version did not write it down
    before["is_decided"] = before["stopped_by"] == "confidence"  # nor this
    for each in before["candidates"]:
        each["removed"] = False
    if name == "withdrawn":  # a margin of 6.5, above the range of the scores
        before["credible_margin"] = None
    before["score"] = "test"  # nor this
    included = "official test set included"  # nor what the scores are about
    before["scored_on"] = f"Runs are scored on the test sets of random splits of all the data, {included}."
    before["strategy"]["stop"] = {"type": "bayesian"}  # not the default any more
    before.pop("fixed_size", None)  # not in the summary any more
    now = summary_of(directory / "selection.json")
    assert now.pop("leading") == now["best"] and "test" in now.pop("sets")
    states = {"diverging": "failed"}
    for each in now["candidates"]:
        assert each.pop("state") == states.get(each["name"], "taking part")
        failed = each.pop("failed_runs")
        assert len(failed) == each.pop("num_counted_failures") == each["failures"]
        assert [f"{one['run']} {one['kind']}: {one['error']}" for one in failed] == each["failure_reasons"]
    assert now.pop("expected_loss") >= 0 and not now.pop("collapsed", []) and now.pop("min_score", None) is None
    assert (now.pop("plain_loop", None) is not None) == (name == "finished")
    assert [candidate.pop("num_missed") for candidate in now["candidates"]] == [0] * len(before["candidates"])
    if name == "finished":  # the posterior is another one, and so is what it tells of a rival
        assert before.pop("confidence") > 0.95 and now.pop("confidence") > 0.95
        for each in (*before["candidates"], *now["candidates"]):
            del each["prob_best"], each["prob_within_margin"]
        ahead = {"of": "slow", "has_better_mean": False, "num_splits": 5, "difference": pytest.approx(0.22)}
        assert now.pop("ahead_on_shared_splits") == ahead and before.pop("ahead_on_shared_splits") is None
    assert now == about(before)
    assert (directory / "evaluations.csv").read_bytes() == (RUNS / name / "evaluations.csv").read_bytes()


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_result_of_an_earlier_version_is_read(name: str) -> None:
    before = json.loads((RUNS / name / "selection.json").read_text())
    now = (SystemsResult if name == "documents" else SelectionResult).read(RUNS / name)
    assert (now.leading, now.seed) == (before["best"], before["entropy"])
    content = json.loads(json.dumps(now.content(), default=asdict))
    for entry, earlier in zip(content.pop("candidates"), before.pop("candidates"), strict=True):
        assert {key: entry[key] for key in earlier} == about(earlier)
    kept = before.keys() - {"entropy", "fixed_size"}
    assert {key: content[key] for key in kept} == {key: about(before[key]) for key in kept}


def test_a_selection_by_a_posterior_of_an_earlier_version_goes_on_with_the_present_one(runs: Path) -> None:
    directory = recovered(runs, "documents")
    now, before = (summary_of(root / "selection.json") for root in (directory, RUNS / "documents"))
    assert before["belief"] == {"type": "dirichlet_f_measure", "learn_concentration": True, "average": "macro"}
    assert now["belief"] == {"type": "paired_measure", "average": "macro"}
    assert (now["best"], now["strategy"]["stop"]) == (before["best"], {"type": "bayesian"})
    rows = rows_of(RUNS / "documents")
    assert rows_of(directory)[: len(rows)] == rows


def test_an_interrupted_selection_goes_on_with_the_same_seeds(runs: Path) -> None:
    pytest.importorskip("allennlp")
    directory = recovered(runs, "interrupted")
    before, after = rows_of(RUNS / "interrupted"), rows_of(directory)
    assert after[: len(before)] == before
    identity = ("candidate", "replicate", "split_seed", "random_seed", "numpy_seed", "pytorch_seed")
    found = sorted(tuple(row[key] for key in identity) for row in after)
    expected = rows_of(EXPECTED / "interrupted")
    assert found == sorted(tuple(row[key] for key in identity) for row in expected)
    assert json.loads((directory / "selection.json").read_text())["stopped_by"] == "budget"


def test_a_replay_gives_what_it_gave(runs: Path) -> None:
    summary = dict(fiesta_allennlp.replay("scores.json", **REPLAY).summary)
    expected = summary_of(EXPECTED / "replay.json")
    del summary["seconds"], expected["seconds"]
    assert json.loads(json.dumps(summary)) == about(expected)


@pytest.fixture
def finished(runs: Path) -> Path:
    """A selection with what its checks left."""
    pytest.importorskip("allennlp")
    for name in ("checks/able.log", "checks/old.log", "vectors/old-123.txt"):
        (runs / "finished" / name).parent.mkdir(exist_ok=True)
        (runs / "finished" / name).write_text("old")
    return runs / "finished"


def files(root: Path) -> Dict[str, bytes]:
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != "store.lock"}


def test_force_deletes_nothing_for_one_that_cannot_begin(finished: Path) -> None:
    before = files(finished)
    Path("bad.jsonnet").write_text(Path("able.jsonnet").read_text().replace("basic_classifier", "basic_classifer"))
    with pytest.raises(ConfigError, match="candidate 'bad' .*basic_classifier"):
        select(["able.jsonnet", "bad.jsonnet"], directory=finished, force=True, metric="accuracy")
    assert files(finished) == before


def test_force_leaves_nothing_of_the_old_one(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: List[List[str]] = []

    def prepare_all(candidates: Mapping[str, Any], *args: Any) -> Any:
        prepared.append(sorted(candidates))
        return preparation.prepare_candidates(candidates, *args)

    monkeypatch.setattr("fiesta_allennlp.trainings.select.prepare_candidates", prepare_all)
    result = select(["able.jsonnet", "blind.jsonnet"], directory=finished, force=True, metric="accuracy", budget=2)
    assert result.num_evaluations == 2
    assert prepared == [["able", "blind"]], "once"
    logs = {path.name: path.read_text() for path in (finished / "checks").iterdir()}
    assert set(logs) == {"able.log", "blind.log"} and "old" not in logs.values()
    assert not (finished / "vectors" / "old-123.txt").exists()
    assert not (finished / "next").exists()


def test_answers_that_cannot_be_used_delete_no_selection_by_documents(runs: Path) -> None:
    before = files(runs / "documents")
    Path("junk.sqlite").write_text("no database")
    given = {"documents": "documents.jsonl", "answers": "junk.sqlite"}
    with pytest.raises(StoreError, match="junk.sqlite: file is not a database"):
        choose_system(["b=b.jsonl", "c=c.jsonl"], directory=runs / "documents", force=True, **given)
    assert files(runs / "documents") == before
    assert report(runs / "documents").best == "a"
