"""What is wrong with documents, systems and options is said in one message that names it, with exit status 2, before
anything is asked."""

import json
import re
from pathlib import Path
from typing import Any, Callable, List, Sequence

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.select import Documents
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.selection.family import Resumed
from tests.commands.conftest import Call
from tests.commands.documents.conftest import Choices
from tests.document_systems import asked, write_documents


@pytest.fixture
def refused(choices: Choices) -> Callable[..., None]:
    """Tries a selection of these systems, which must be refused with a message before a system is asked."""

    def check(message: str, systems: Sequence[str], *options: Any) -> None:
        output = choices.call.refused(*choices.typed(systems, *options))
        assert re.search(message, output), output
        assert not (choices.run / "store.sqlite").exists()
        assert not asked(choices.root, "a")

    return check


@pytest.fixture
def systems(choices: Choices) -> List[str]:
    return choices.programs()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--documents-order", "paired"], r"--documents-order must be one of shared, independent but got 'paired'"),
        (["--fields", "label=sentiment"], r"line 1: no gold annotation 'sentiment'; the fields are text, label"),
        (["--batch-size", "30"], r"at least 3 documents, .* only 2"),
        (["--belief", '{"type": "dirichlet_f_measure", "average": "macro"}'], r"contradicts 'average': macro in --bel"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(systems: List[str], refused: Callable[..., None], options: List[str], message: str) -> None:
    refused(message, systems, *options)


def test_no_directory_and_no_documents(systems: List[str], documents: Path, run: Path, call: Call) -> None:
    assert "-s is missing" in call.refused(*systems, "--documents", documents)
    assert "--documents is missing: pass a JSONL file" in call.refused(*systems, "-s", run)


GOOD = {"type": "command", "command": ["python3"]}
UNREADABLE = "".join(f'{{"id": "d{k}", "prediction": "good"}}\n' for k in range(60))


@pytest.mark.parametrize(
    ("text", "content", "message"),
    [
        ("https://host/label", None, r"'https://host/label': put a name in front: NAME=https://host/label"),
        ("c=nothing", None, r"'c': nothing has an unknown format. Pass NAME=model.tar.gz"),
        ("c=model.tar.gz", None, r"'c' \(model.tar.gz\): no archive found at model.tar.gz"),
        ("c=answers.jsonl", None, r"'c' \(answers.jsonl\): answers.jsonl cannot be read"),
        ("c=c.jsonnet", "{ type: ", r"'c': .*c.jsonnet is not valid Jsonnet"),
        (
            "c=c.jsonnet",
            {"command": ["x"]},
            r"c.jsonnet must be an object whose 'type' is one of archive, command, http",
        ),
        ("c=c.jsonnet", {**GOOD, "commnd": 1}, r"'c' .*commnd"),
        ("c=c.jsonnet", {**GOOD, "body": {"q": "${txt}"}}, r"'c' .*no field 'txt' for 'body'; .*Did you mean 'text'"),
        ("p.jsonl", '{"id": "d0", "label": "good"}', r"p.jsonl has no prediction for 59 of 60 .* 'd1'"),
        ("p.jsonl", '{"id": "d0"}\n{"id": "d0"}', r"p.jsonl, line 2: the id 'd0' appears twice"),
        ("c=none.jsonnet", None, r"'c': none.jsonnet: config file not found"),
        ("p.jsonl", '{"label": "good"}', r"p.jsonl, line 1: 'id' is missing"),
        ("p.jsonl", '{"id": "d0"', r"p.jsonl, line 1: not valid JSON"),
        ("p.jsonl", UNREADABLE, r"document 'd0': expected an object with 'label' but it answered .*\"answer\":"),
    ],
    ids=range(14),
)
def test_bad_systems(
    choices: Choices, systems: List[str], monkeypatch: pytest.MonkeyPatch, text: str, content: Any, message: str
) -> None:
    monkeypatch.chdir(choices.root)
    if content is not None:
        Path(text.rpartition("=")[2]).write_text(content if isinstance(content, str) else json.dumps(content))
    settings = DocumentSettings(systems=(*systems, text), documents=str(choices.documents))
    with pytest.raises(FiestaError, match=f"system {message}" if message.startswith("'") else message):
        Documents().check(settings, Resumed(RunDirectory(choices.root)), allow_removed=False)
    assert not asked(choices.root, "a")


def test_one_system_two_of_one_name_and_one_twice(systems: List[str], refused: Callable[..., None]) -> None:
    refused(r"at least 2 systems but got 1: a. Pass each as NAME=model.tar.gz", systems[:1])
    refused(r"at least 2 systems but got 0: none", [])
    refused(r"the system 'a' is given twice", [*systems, systems[0]])
    refused(r"the systems 'a' and 'twin' are the same", [*systems, "twin=" + systems[0].partition("=")[2]])


def test_what_must_not_change_on_resuming(
    choices: Choices, systems: List[str], documents: Path, run: Path, call: Call
) -> None:
    choices.begin(systems, "--budget", 8)
    before = (run / "evaluations.csv").read_text()
    changed = choices.program("b2", wrong=3).partition("=")[2]
    for given, message in [
        (["--batch-size", "2", "--metric", "macro_f1"], r"--metric was .* and --batch-size was 1 and is now 2"),
        ([systems[0], f"other={changed}"], r"system 'b' .* belongs to the selection .* but is missing"),
        ([systems[0], f"b={changed}"], r"system 'b' .* has changed since the selection .* began"),
    ]:
        output = call.refused(*given, "-s", run, "--recover")
        assert re.search(message, output), output
    write_documents(documents, 61)
    assert "documents.jsonl has changed since the selection" in call.refused("-s", run, "--recover")
    assert (run / "evaluations.csv").read_text() == before


def test_a_selection_does_not_begin_without_a_file_of_answers(
    choices: Choices, systems: List[str], refused: Callable[..., None]
) -> None:
    rubbish = choices.root / "rubbish.sqlite"
    rubbish.write_text("rubbish " * 500)
    refused(r"rubbish.sqlite: file is not a database", systems, "--answers", rubbish)
    assert rubbish.read_text() == "rubbish " * 500
    choices.begin(systems)
