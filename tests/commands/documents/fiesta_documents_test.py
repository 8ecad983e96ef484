"""The whole command on programs and servers that answer by rule: what is decided, asked, paid, kept, and survived."""

import json
import random
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Set, Tuple

import pytest

from tests.commands.conftest import EQUALLY, Call
from tests.commands.documents.conftest import DEFAULT, Choices
from tests.conftest import until
from tests.document_systems import asked, write_documents
from tests.run_files import entry_of, rows_of, summary_of
from tests.warm import Command


def scores_of(run: Path) -> Set[Tuple[str, ...]]:
    """Everything about the evaluations but when they were made."""
    timed = ("seconds", "started_at")
    return {tuple(value for name, value in row.items() if name not in timed) for row in rows_of(run)}


def test_a_selection_decides_and_leaves_its_files(choices: Choices, documents: Path, run: Path) -> None:
    systems = [choices.program("able", wrong=20, cost=0.5), choices.program("poor", wrong=2, cost=0.25)]
    assert "able is the best with probability" in choices.begin(systems, "--seed", 4)
    summary = summary_of(run)
    assert (summary["best"], summary["stopped_by"]) == ("able", "confidence")
    facts = {"num_documents": 60, "num_items": 60, "order": "shared", "batch_size": 1}
    assert summary["documents"] == {"file": str(documents), **facts}
    questions = {name: asked(choices.root, name) for name in ("able", "poor")}
    queries = {name: sum(found.values()) for name, found in questions.items()}
    for name, cost in (("able", 0.5), ("poor", 0.25)):
        entry = entry_of(run, name)
        assert entry["num_queries"] == queries[name] == entry["num_documents"] == entry["num_evaluations"]
        assert entry["cost"] == pytest.approx(cost * queries[name])
        rows = [row for row in rows_of(run) if row["candidate"] == name]
        assert entry["measure"] == pytest.approx(sum(float(row["score"]) for row in rows) / len(rows))
    assert summary["num_queries"] == sum(queries.values())
    assert summary["cost"] == pytest.approx(0.5 * queries["able"] + 0.25 * queries["poor"])
    assert max(questions["able"].values()) == 1
    assert len(set(questions["able"]) & set(questions["poor"])) == min(queries.values())


def test_independent_orders_differ(choices: Choices, run: Path) -> None:
    choices.begin(choices.programs(a=2), "--documents-order", "independent", "--budget", 20)
    assert set(asked(choices.root, "a")) != set(asked(choices.root, "b"))
    assert len({row["split_seed"] for row in rows_of(run)}) == 20


def test_without_a_document_left_the_better_one_leads_openly(choices: Choices, documents: Path, run: Path) -> None:
    write_documents(documents, 12)
    choices.begin(choices.programs(a=4, b=3), "--confidence", 0.999)
    summary = summary_of(run)
    assert (summary["leading"], summary["stopped_by"], summary["num_evaluations"]) == ("a", "documents", 24)
    assert (summary["best"], summary["verdict"]) == (None, "open"), "P(best) is about other documents"


def test_a_system_none_of_whose_answers_is_a_gold_label_raises_a_question(choices: Choices, run: Path) -> None:
    answers = [json.dumps({"id": f"d{k}", "label": "GOOD"}) for k in range(60)]
    (choices.root / "loud.jsonl").write_text("\n".join(answers))
    choices.begin([choices.program("a", wrong=4), choices.root / "loud.jsonl"])
    summary = summary_of(run)
    assert (summary["verdict"], summary["stopped_by"]) == ("open", "questions")
    assert "No answer of loud is a gold label. Map them" in summary["questions"][0]


def test_force_deletes_the_selection_and_keeps_the_answers(choices: Choices, run: Path) -> None:
    systems = choices.programs(a=4)
    assert "the answers file" in choices.call.refused(*choices.typed(systems, "--answers", ""))
    choices.begin(systems, "--budget", 20)
    before = scores_of(run)
    assert "already contains a selection" in choices.call.refused(*choices.typed(systems, "--budget", 20))
    choices.begin(systems, "--budget", 20, "--force")
    assert scores_of(run) == before
    assert max(asked(choices.root, "a").values()) == 1
    assert summary_of(run)["num_queries"] == 0


def test_too_many_failures_make_no_comparison(choices: Choices) -> None:
    systems = [choices.program("a"), choices.program("bad", faults={"*": ["rubbish"]})]
    status, output = choices.call(*choices.typed(systems))
    assert status == 1 and "No comparison" in output


def test_predicted_spans_need_no_query(tmp_path: Path, run: Path, call: Call) -> None:
    rng = random.Random(4)
    gold = [[rng.choice(["O", "B-PER", "B-LOC"]) for _ in range(5)] for _ in range(60)]
    good = [tags if i % 10 else ["O"] * 5 for i, tags in enumerate(gold)]
    poor = [[tag if rng.random() < 0.3 else "O" for tag in tags] for tags in gold]
    for name, known in (("documents", gold), ("good", good), ("poor", poor)):
        lines = [json.dumps({"id": i, "tokens": list("abcde"), "tags": tags}) for i, tags in enumerate(known)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    options = ["--documents", tmp_path / "documents.jsonl", "--task", "spans", "-s", run]
    call.done(tmp_path / "good.jsonl", tmp_path / "poor.jsonl", *options)
    summary = summary_of(run)
    assert (summary["best"], summary["metric"], summary["num_queries"]) == ("good", "f_measure", 0)
    assert summary["belief"] == {**DEFAULT, "average": "binary"}


def test_the_posterior_of_the_paper_is_for_one_f_measure(choices: Choices, run: Path) -> None:
    systems = choices.programs()
    choices.begin(systems, "--belief", "dirichlet_f_measure", "--positive-label", "bad", "--metric", "f_measure")
    assert summary_of(run)["belief"] == {"type": "dirichlet_f_measure"}


@pytest.mark.parametrize(
    "options",
    [
        ["--margin", 0.1, "--batch-size", 4, "--workers", 3],
        ["--budget", 30],
        ["--max-evaluations", 60, "--documents-order", "independent", "--stop", "early_looks"],
        ["--strategy", "non_adaptive_fc"],
        ["--strategy", '{"type": "top_two", "belief": "paired_measure"}'],
    ],
)
def test_the_default_posterior_goes_with_other_options(choices: Choices, run: Path, options: List[Any]) -> None:
    choices.begin(choices.programs(), "--belief", "paired_measure", *options)
    summary = summary_of(run)
    assert (summary["best"], summary["belief"]) == ("a", {**DEFAULT, "average": "accuracy"})
    assert summary["stopped_by"] == ("budget" if "--budget" in options else "confidence")
    if "--batch-size" in options:
        assert summary["strategy"]["stop"] == {"type": "enough_documents", "batch_size": 4}
    if "--budget" not in options and "--stop" not in options:
        assert min(entry["num_documents"] for entry in summary["candidates"]) >= 12


def test_a_dry_run_asks_nothing_and_writes_nothing(choices: Choices) -> None:
    systems = choices.programs(cost=0.5)
    before = sorted(choices.root.iterdir())
    output = choices.begin(systems, "--dry-run")
    assert "60 documents" in output and "24 and at most 120" in output
    assert sorted(choices.root.iterdir()) == before


def test_resuming_adds_evaluations_and_systems(choices: Choices, run: Path, call: Call) -> None:
    systems = choices.programs()
    choices.begin(systems, *EQUALLY, "--budget", 8)
    call.done("-s", run, *EQUALLY, "--recover", "--budget", 12)
    assert summary_of(run)["num_evaluations"] == 12
    call.done(*systems, choices.program("third", wrong=3), "-s", run, *EQUALLY, "--recover", "--budget", 18)
    assert [entry["name"] for entry in summary_of(run)["candidates"]] == ["a", "b", "third"]
    assert entry_of(run, "third")["num_evaluations"] == 6
    assert max(asked(choices.root, "a").values()) == 1


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


def test_kills_in_the_middle_lose_nothing_and_cost_nothing_twice(choices: Choices, run: Path) -> None:
    """`kill -9` to the parent at random moments; the final store equals that of an uninterrupted selection."""
    whole = replace(choices, root=run.with_name("whole"), run=run.with_name("whole") / "run")
    whole.root.mkdir()
    options = (*EQUALLY, "--budget", 40, "--seed", 11)
    whole.begin(whole.programs(a=5, b=3, cost=1.0), *options)

    rng = random.Random(5)
    arguments = choices.typed(choices.programs(a=5, b=3, cost=1.0, seconds=0.02), *options)
    for number in (8, 25):
        process = start(arguments)
        until(lambda n=number: num_answers(run) >= n or process.poll() is not None)  # noqa: B023
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
        arguments = ["-s", run, "--recover"]
    choices.call.done(*arguments)
    assert scores_of(run) == scores_of(whole.run)
    assert num_answers(run) == num_answers(whole.run)
    summary = summary_of(run)
    assert summary["num_queries"] == summary["cost"] == summary["num_evaluations"]
    for name in ("a", "b"):
        twice = [word for word, number in asked(choices.root, name).items() if number > 1]
        assert len(twice) <= 3  # what was under way when it was killed, and had no answer yet


def test_an_interrupt_keeps_the_answer_that_is_under_way(choices: Choices, run: Path, call: Call) -> None:
    process = start(choices.typed(choices.programs(a=5, b=3, seconds=0.1), "--confidence", 0.999))
    until(lambda: num_answers(run) >= 4)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130, output
    assert f"python -m fiesta_allennlp documents -s {run} --recover" in output
    assert summary_of(run)["stopped_by"] == "interrupted"
    assert sum(sum(asked(choices.root, name).values()) for name in "ab") == num_answers(run)
    call.done("-s", run, "--recover", "--max-evaluations", 60)
    assert max(max(asked(choices.root, name).values()) for name in "ab") == 1
