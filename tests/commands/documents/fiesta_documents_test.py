"""The whole command on programs and servers that answer by rule: what is decided, asked, paid, kept, and survived."""

import json
import os
import random
import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, List, Set, Tuple

import pytest

from tests.commands.documents.conftest import LEARNED, QUICK
from tests.commands.machine_test import failures_of
from tests.conftest import until
from tests.document_systems import Endpoint, asked, serving, write_documents, write_program
from tests.run_files import entry_of, rows_of, summary_of
from tests.warm import Command


def scores_of(run: Path) -> Set[Tuple[str, ...]]:
    """Everything about the evaluations but when they were made."""
    timed = ("seconds", "started_at")
    return {tuple(value for name, value in row.items() if name not in timed) for row in rows_of(run)}


def test_a_selection_decides_and_leaves_its_files(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    systems = [
        write_program(tmp_path, "able", wrong=20, cost=0.5),
        write_program(tmp_path, "poor", wrong=2, cost=0.25),
    ]
    status, output = call(*systems, "--documents", documents, "-s", run, *QUICK, "--seed", 4)
    assert status == 0, output
    assert "able is the best with probability" in output
    summary = summary_of(run)
    assert (summary["best"], summary["stopped_by"]) == ("able", "confidence")
    assert summary["documents"] == {
        "file": str(documents),
        "num_documents": 60,
        "num_items": 60,
        "order": "shared",
        "batch_size": 1,
    }
    queries = {name: sum(asked(tmp_path, name).values()) for name in ("able", "poor")}
    for name, cost in (("able", 0.5), ("poor", 0.25)):
        entry = entry_of(run, name)
        assert entry["num_queries"] == queries[name] == entry["num_documents"] == entry["num_evaluations"]
        assert entry["cost"] == pytest.approx(cost * queries[name])
        rows = [row for row in rows_of(run) if row["candidate"] == name]
        assert entry["measure"] == pytest.approx(sum(float(row["score"]) for row in rows) / len(rows))
    assert summary["num_queries"] == sum(queries.values())
    assert summary["cost"] == pytest.approx(0.5 * queries["able"] + 0.25 * queries["poor"])
    assert f"{summary['num_queries']} queries were made, at a total cost of {summary['cost']:g}." in output
    assert summary["fixed_size"]["best"] == "able"
    assert f"would have needed {summary['fixed_size']['baseline_2']} documents" in output
    assert max(asked(tmp_path, "able").values()) == 1
    shared = set(asked(tmp_path, "able")) & set(asked(tmp_path, "poor"))
    assert len(shared) == min(queries.values())


def test_independent_orders_differ(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    systems = [write_program(tmp_path, name, wrong=2) for name in ("a", "b")]
    options = ["--documents", documents, "-s", run, *QUICK, "--documents-order", "independent", "--budget", 20]
    assert call(*systems, *options)[0] == 0
    assert set(asked(tmp_path, "a")) != set(asked(tmp_path, "b"))
    assert len({row["split_seed"] for row in rows_of(run)}) == 20


def test_all_documents_make_the_answer_exact(tmp_path: Path, run: Path, call: Any) -> None:
    documents = write_documents(tmp_path / "few.jsonl", 12)
    systems = [write_program(tmp_path, name, wrong=wrong) for name, wrong in (("a", 4), ("b", 3))]
    status, output = call(*systems, "--documents", documents, "-s", run, *QUICK, "--confidence", 0.999)
    assert status == 0, output
    summary = summary_of(run)
    assert (summary["best"], summary["stopped_by"], summary["num_evaluations"]) == ("a", "documents", 24)
    assert "The systems answered all 12 documents: a is the best on this file, with accuracy 0.7500" in output


def test_force_deletes_the_selection_and_keeps_the_answers(
    tmp_path: Path, documents: Path, run: Path, call: Any
) -> None:
    systems = [write_program(tmp_path, name, wrong=wrong) for name, wrong in (("a", 4), ("b", 2))]
    options = [*systems, "--documents", documents, "-s", run, *QUICK, "--budget", 20, "--seed", 3]
    assert call(*options)[0] == 0
    before = scores_of(run)
    status, output = call(*options)
    assert status == 2 and "this directory already has a selection" in output
    assert call(*options, "--force")[0] == 0
    assert scores_of(run) == before
    assert max(asked(tmp_path, "a").values()) == 1
    assert summary_of(run)["num_queries"] == 0


def test_a_failing_program_is_named_and_withdrawn(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    good = [write_program(tmp_path, name, wrong=wrong) for name, wrong in (("a", 20), ("b", 2))]
    bad = write_program(tmp_path, "bad", faults={"*": ["crash"]})
    status, output = call(*good, bad, "--documents", documents, "-s", run, *QUICK, "--max-failures", 2)
    assert status == 0, output
    assert summary_of(run)["best"] == "a"
    entry = entry_of(run, "bad")
    assert (entry["withdrawn"], entry["failures"], entry["num_evaluations"]) == (True, 2, 0)
    assert "dropped out: bad: 2 failures" in output
    reason = entry["failure_reasons"][0]
    assert "system 'bad', document 'd" in reason and "something broke" in reason, reason
    assert set(asked(tmp_path, "bad").values()) == {2}


def test_a_fault_now_and_then_loses_nothing(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    faults = {"d7": ["crash"], "d30": ["crash"]}
    systems = [
        write_program(tmp_path, "a", wrong=20, faults=faults, cost=1.0),
        write_program(tmp_path, "b", wrong=2),
    ]
    options = ["--documents", documents, "-s", run, *QUICK, "--strategy", "non_adaptive_fb", "--budget", 110]
    status, output = call(*systems, *options)
    assert status == 0, output
    entry = entry_of(run, "a")
    assert not entry["withdrawn"]
    assert entry["num_evaluations"] == 55
    finished = [row for row in rows_of(run) if row["candidate"] == "a" and row["status"] == "finished"]
    # Right but for each twentieth document: no answer was taken for another document's.
    assert sum(float(row["score"]) for row in finished) >= 52
    of_faulty = {word: asked(tmp_path, "a")[word] for word in faults}
    assert set(of_faulty.values()) <= {0, 2}
    assert entry["num_queries"] == entry["cost"] == 55


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_server_that_is_down_for_longer_than_its_retries_is_no_failure_of_the_system(
    tmp_path: Path, documents: Path, run: Path, call: Any, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    """After its first answers, for 12 requests or for ever."""
    monkeypatch.setattr("fiesta_allennlp.selection.loop.PAUSES", (0.01,) * 8 if comes_back else (0.01, 0.01))
    with serving(Endpoint(wrong=20)) as endpoint:
        endpoint.down = range(5, 17 if comes_back else 10**6)
        config = {"type": "http", "url": endpoint.url, "wait": 0.001, "retries": 2, "cost": 1.0}
        (tmp_path / "web.jsonnet").write_text(json.dumps(config))
        systems = [f"web={tmp_path / 'web.jsonnet'}", write_program(tmp_path, "b", wrong=2)]
        options = ["--documents", documents, "-s", run, *QUICK, "--strategy", "non_adaptive_fb", "--budget", 16]
        status, output = call(*systems, *options)
        if not comes_back:
            assert status == 2, output
            assert "error: web-" in output and "status 503" in output
            assert "then use --recover" in output and "--answers" in output and "--allow-removed" not in output
            endpoint.down = range(0)
            status, output = call("-s", run, "--recover")
    assert status == 0, output
    entry = entry_of(run, "web")
    assert (entry["withdrawn"], entry["num_evaluations"], entry["cost"]) == (False, 8, 8.0)
    kinds, withdrawn = failures_of(run)
    assert (set(kinds), withdrawn) == ({"machine"}, [])
    if comes_back:
        assert len(kinds) == 4  # three requests each
    else:
        assert len(kinds) >= 3  # once, and after each pause; again where an answer of the other system came between


def test_too_many_failures_make_no_comparison(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    systems = [write_program(tmp_path, "a"), write_program(tmp_path, "bad", faults={"*": ["rubbish"]})]
    status, output = call(*systems, "--documents", documents, "-s", run, *QUICK)
    assert status == 1
    assert "No comparison: after" in output and "only a is left" in output


def test_the_key_is_written_nowhere(
    tmp_path: Path, documents: Path, run: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEB_KEY", "sk-very-secret")
    with serving(Endpoint(wrong=2, faults={"d1": [403], "d2": [400]})) as endpoint:
        (tmp_path / "web.jsonnet").write_text(
            json.dumps({"type": "http", "url": endpoint.url, "key_variable": "WEB_KEY"})
        )
        systems = [f"web={tmp_path / 'web.jsonnet'}", write_program(tmp_path, "b", wrong=3)]
        options = ["--documents", documents, "-s", run, *QUICK, "--strategy", "non_adaptive_fb", "--budget", 116]
        status, output = call(*systems, *options)
        assert status == 0, output
        assert endpoint.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert entry_of(run, "web")["failures"] == 2
    assert "sk-very-secret" not in output
    for path in run.rglob("*"):
        assert not path.is_file() or b"sk-very-secret" not in path.read_bytes(), path


def test_spans_of_tags(tmp_path: Path, run: Path, call: Any) -> None:
    rng = random.Random(4)
    documents, good, poor = [], [], []
    for i in range(60):
        tags = [rng.choice(["O", "B-PER", "B-LOC"]) for _ in range(5)]
        documents.append({"key": i, "tokens": list("abcde"), "ner": tags})
        good.append({"id": i, "tags": tags if i % 10 else ["O"] * 5})
        poor.append({"id": i, "tags": [tag if rng.random() < 0.3 else "O" for tag in tags]})
    for name, lines in (("documents", documents), ("good", good), ("poor", poor)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    systems = [tmp_path / "good.jsonl", tmp_path / "poor.jsonl"]
    options = ["--documents", tmp_path / "documents.jsonl", "--task", "spans", "--fields", "id=key,tags=ner"]
    status, output = call(*systems, *options, "-s", run)
    assert status == 0, output
    summary = summary_of(run)
    assert (summary["best"], summary["metric"], summary["num_queries"]) == ("good", "f_measure", 0)
    assert summary["belief"] == {**LEARNED, "average": "binary"}
    assert all(row["metric:count:tn"] == "0.0" for row in rows_of(run))


def test_a_dry_run_asks_nothing_and_writes_nothing(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    systems = [write_program(tmp_path, name, cost=0.5) for name in ("a", "b")]
    systems[1] = write_program(tmp_path, "b", wrong=2)
    before = sorted(tmp_path.iterdir())
    status, output = call(*systems, "--documents", documents, *QUICK, "--dry-run")
    assert status == 0, output
    assert "60 documents with 60 items" in output
    assert "at least 20 and at most 120 evaluations by accuracy. Nothing was queried." in output
    assert sorted(tmp_path.iterdir()) == before
    assert call(*systems, "--documents", documents, "-s", run, *QUICK, "--budget", 8)[0] == 0
    status, output = call(*systems, "--documents", documents, "-s", run, *QUICK, "--dry-run")
    assert status == 0 and re.search(" 4$", output, re.MULTILINE)


def test_resuming_adds_evaluations_and_systems(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    systems = [write_program(tmp_path, name, wrong=wrong) for name, wrong in (("a", 20), ("b", 2))]
    options = ["-s", run, "--strategy", "non_adaptive_fb"]
    assert call(*systems, "--documents", documents, *options, *QUICK, "--budget", 8)[0] == 0
    assert call(*options, "--recover", "--budget", 12)[0] == 0
    assert summary_of(run)["num_evaluations"] == 12
    third = write_program(tmp_path, "third", wrong=3)
    assert call(*systems, third, *options, "--recover", "--budget", 18)[0] == 0
    assert [entry["name"] for entry in summary_of(run)["candidates"]] == ["a", "b", "third"]
    assert entry_of(run, "third")["num_evaluations"] == 6
    assert max(asked(tmp_path, "a").values()) == 1


def start(arguments: List[Any]) -> Command:
    """The command in a process of its own."""
    return Command(["-m", "fiesta_allennlp", "documents", *arguments], own_session=True)


def num_answers(run: Path) -> int:
    path = run / "answers.sqlite"
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # it is being made
        return 0


def test_kills_in_the_middle_lose_nothing_and_cost_nothing_twice(tmp_path: Path, documents: Path, call: Any) -> None:
    """`kill -9` to the parent at random moments; the final store equals that of an uninterrupted selection."""
    (tmp_path / "whole").mkdir()
    options = ["--documents", documents, *QUICK, "--confidence", 0.999, "--seed", 11]
    whole = [write_program(tmp_path / "whole", n, wrong=w, cost=1.0) for n, w in (("a", 5), ("b", 3))]
    assert call(*whole, "-s", tmp_path / "whole" / "run", *options)[0] == 0

    run, rng = tmp_path / "run", random.Random(5)
    systems = [write_program(tmp_path, n, wrong=w, cost=1.0, seconds=0.02) for n, w in (("a", 5), ("b", 3))]
    arguments = [*systems, "-s", run, *options]
    for number in (8, 25, 50):
        process = start(arguments)
        until(lambda n=number: num_answers(run) >= n or process.poll() is not None, seconds=120)  # noqa: B023
        time.sleep(rng.uniform(0, 0.1))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        arguments = ["-s", run, "--recover"]
    status, output = call(*arguments)
    assert status == 0, output
    assert scores_of(run) == scores_of(tmp_path / "whole" / "run")
    assert num_answers(run) == num_answers(tmp_path / "whole" / "run")
    summary = summary_of(run)
    assert summary["num_queries"] == summary["cost"] == summary["num_evaluations"]
    for name in ("a", "b"):
        twice = [word for word, number in asked(tmp_path, name).items() if number > 1]
        assert len(twice) <= 3  # what was under way when it was killed, and had no answer yet


def test_an_interrupt_keeps_the_answer_that_is_under_way(tmp_path: Path, documents: Path, run: Path, call: Any) -> None:
    systems = [write_program(tmp_path, n, wrong=w, seconds=0.1) for n, w in (("a", 5), ("b", 3))]
    process = start([*systems, "--documents", documents, "-s", run, *QUICK, "--confidence", 0.999])
    until(lambda: num_answers(run) >= 4, seconds=120)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Interrupted after" in output
    assert f"Continue with: python -m fiesta_allennlp documents -s {run} --recover" in output
    assert summary_of(run)["stopped_by"] == "interrupted"
    assert sum(asked(tmp_path, "a").values()) + sum(asked(tmp_path, "b").values()) == num_answers(run)
    assert call("-s", run, "--recover", "--max-evaluations", 60)[0] == 0
    assert max([*asked(tmp_path, "a").values(), *asked(tmp_path, "b").values()]) == 1
