"""`fiesta-report` on what `fiesta-documents` left."""

import json
from contextlib import closing
from pathlib import Path
from typing import Callable, Dict

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.reports.words import selection_in_words
from fiesta_allennlp.selection.store import RunStore
from tests.commands.conftest import Call
from tests.commands.documents.conftest import Choices
from tests.run_files import summary_of


@pytest.fixture
def made(choices: Choices, documents: Path, run: Path, call: Call) -> Path:
    """A selection with the default belief, which is about measures."""
    options = ["--documents", documents, "-s", run, "--seed", 4, "--max-evaluations", 40]
    status, output = call(*choices.programs(cost=0.5), *options)
    assert status in (0, 1), output
    return run


def files(root: Path) -> Dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def change_store(run: Path, change: Callable[[RunStore], None]) -> None:
    with closing(RunStore(RunDirectory(run), create=False)) as store:
        change(store)


def test_a_report_tells_what_the_selection_told(made: Path, in_process: Callable[[str], Call]) -> None:
    before = files(made)
    told = report(made)
    assert files(made) == before
    summary = summary_of(made)
    assert told.best == summary["best"] == "a"
    systems = [SystemSummary(**entry) for entry in summary["candidates"]]
    assert told.decision == selection_in_words({**summary, "candidates": systems})
    for entry in summary["candidates"]:
        candidate = told.candidate(entry["name"])
        asked = candidate.asked
        assert asked is not None
        assert (asked.num_documents, asked.measure) == (entry["num_documents"], entry["measure"])
        assert (asked.num_queries, asked.cost) == (entry["num_queries"], entry["cost"])
        assert candidate.prob_best == entry["prob_best"]
        assert candidate.interval is not None and 0 <= candidate.interval[0] < candidate.interval[1] <= 1
    assert told.path[-1].prob_best == {entry["name"]: entry["prob_best"] for entry in summary["candidates"]}
    in_process("report").done(made)
    there = {path.name for path in (made / "report").rglob("*") if path.is_file()}
    figures = {f"{name}{ending}" for name in ("measures", "path", "allocation") for ending in (".png", ".pdf")}
    assert there == {"report.html", "report.md", "table.tex", "scores.csv", *figures}
    checklist = dict(told.checklist)
    assert checklist["documents"].endswith("documents.jsonl: 60 with 60 items, 1 a query")
    typed = f"--max-evaluations 40 --documents {summary['documents']['file']} --seed 4"
    assert checklist["command to repeat it all"].endswith(typed)


def test_without_the_answers_the_costs_are_unknown(made: Path) -> None:
    (made / "answers.sqlite").unlink()
    told = report(made)
    asked = told.candidate("a").asked
    assert asked is not None and (asked.num_queries, asked.cost) == (None, None)
    assert not any("queries" in sentence or "query" in sentence for sentence in told.decision)


def test_another_belief_has_no_interval(choices: Choices, tmp_path: Path, run: Path) -> None:
    choices.begin(choices.programs(), "--batch-size", 25, "--budget", 6)
    told = report(run, output=tmp_path / "out")
    asked = told.candidate("a").asked
    assert asked is not None and (asked.num_documents, told.candidate("a").interval) == (60, None)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "The posterior of this selection, student\\_t, is about the mean score of a document" in text
    assert "Each stroke is one of the answered batches" in text


def test_two_systems_alone_are_not_compared(made: Path, tmp_path: Path) -> None:
    table = tmp_path / "scores.json"
    table.write_text(json.dumps({"x": [0.1, 0.2]}))
    for compare, source in ((["a", "b"], made), ([f"{made}:a", str(table)], None)):
        with pytest.raises(ConfigError, match="selections of fiesta documents. Remove --compare"):
            report(source, compare=compare)


def test_a_store_that_lacks_the_facts_is_refused(made: Path, call: Call) -> None:
    change_store(made, lambda store: store.set_meta(document_facts=None))
    with pytest.raises(StoreError, match=r"made by an older version.* fiesta documents -s .* --recover"):
        report(made)
    assert call("-s", made, "--recover")[0] in (0, 1)
    assert report(made).best == "a"
