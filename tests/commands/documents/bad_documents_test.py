"""What is wrong with documents, systems and options is said in one message that names it, with exit status 2, before
anything is asked."""

import json
from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Sequence

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.documents.document_selection import DocumentSelection
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.selecting.session import StoredState
from tests.commands.documents.conftest import Choices
from tests.document_systems import asked, write_documents


@pytest.fixture
def refused(choices: Choices) -> Callable[..., None]:
    """Tries a selection of these systems, which must be refused with a message before a system is asked."""

    def check(message: str, systems: Sequence[str], *options: Any) -> None:
        choices.call.refused(*choices.typed(systems, *options), said=message)
        assert not (choices.run / "store.sqlite").exists()
        assert not asked(choices.root, "a")

    return check


@pytest.fixture
def systems(choices: Choices) -> List[str]:
    return choices.programs()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fields", "label=sentiment"], "line 1.*'sentiment'"),
        (["--batch-size", "30"], "at least 3 documents"),
        (["--belief", "dirichlet_f_measure"], "needs --positive-label"),
        (["--answers", "run/evaluations.csv", "-s", "run"], "--answers run/evaluations.csv is among the files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(systems: List[str], refused: Callable[..., None], options: List[str], message: str) -> None:
    refused(message, systems, *options)


GOOD = {"type": "command", "command": ["python3"]}
UNREADABLE = "".join(f'{{"id": "d{k}", "prediction": "good"}}\n' for k in range(60))


@pytest.mark.parametrize(
    ("text", "content", "message"),
    [
        ("c=model.tar.gz", None, "'c': model.tar.gz: .*not found"),
        ("c=answers.jsonl", None, r"'c' \(answers.jsonl\)"),
        ("c=c.jsonnet", {"command": ["x"]}, "c.jsonnet .*'type'"),
        ("c=c.jsonnet", {**GOOD, "commnd": 1}, "'c' .*commnd"),
        ("c=c.jsonnet", {**GOOD, "body": {"q": "${txt}"}}, "'c' .*'txt'"),
        ("p.jsonl", '{"id": "d0", "label": "good"}', "p.jsonl .*59 of 60"),
        ("p.jsonl", '{"id": "d0"}\n{"id": "d0"}', "p.jsonl, line 2: .*'d0'"),
        ("p.jsonl", UNREADABLE, "document 'd0': .*'label'"),
    ],
    ids=range(8),
)
def test_bad_systems(
    choices: Choices, systems: List[str], monkeypatch: pytest.MonkeyPatch, text: str, content: Any, message: str
) -> None:
    monkeypatch.chdir(choices.root)
    if content is not None:
        Path(text.rpartition("=")[2]).write_text(content if isinstance(content, str) else json.dumps(content))
    settings = DocumentSettings(systems=(*systems, text), documents=str(choices.documents))
    with pytest.raises(FiestaError, match=f"system {message}" if message.startswith("'") else message):
        DocumentSelection.check(settings, StoredState(RunDirectory(choices.root)))
    assert not asked(choices.root, "a")


def test_one_system_two_of_one_name_and_one_twice(systems: List[str], refused: Callable[..., None]) -> None:
    refused("at least 2 systems", systems[:1])
    refused("two systems are named 'a'", [*systems, systems[0]])
    refused("'a' and 'twin'", [*systems, "twin=" + systems[0].partition("=")[2]])


def test_what_must_not_change_on_resuming(choices: Choices, systems: List[str]) -> None:
    choices.begin(systems, "--budget", 8)
    refused = partial(choices.call.refused, "-s", choices.run, "--recover")
    before = (choices.run / "evaluations.csv").read_text()
    changed = choices.program("b2", wrong=3).partition("=")[2]
    for given, message in [
        (["--batch-size", "2", "--metric", "macro_f1"], r"--metric was .* and --batch-size was 1 and is now 2"),
        ([systems[0], f"other={changed}"], "system 'b'"),
        ([systems[0], f"b={changed}"], "system 'b' .* has changed"),
    ]:
        refused(*given, said=message)
    write_documents(choices.documents, 61)
    refused(said="documents.jsonl has changed")
    assert (choices.run / "evaluations.csv").read_text() == before
