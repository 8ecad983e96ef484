"""What is wrong with documents, systems and options is said in one message that names it, with exit status 2, before
anything is asked."""

import json
import re
from pathlib import Path
from typing import Any, List

import pytest

from tests.commands.documents.conftest import QUICK
from tests.document_systems import asked, write_documents, write_program


def assert_refused(result: Any, message: str, run: Path) -> None:
    status, output = result
    assert status == 2, output
    assert re.search(message, output), output
    assert "Traceback" not in output
    assert len(output.splitlines()) < 12 and len(output) < 12 * 160, "an error has to fit a screen"
    assert not (run / "store.sqlite").exists()


@pytest.fixture
def systems(tmp_path: Path) -> List[str]:
    return [write_program(tmp_path, name, wrong=wrong) for name, wrong in (("a", 20), ("b", 2))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "tagging"], r"--task must be one of classification, spans but got 'tagging'"),
        (["--documents-order", "paired"], r"--documents-order must be one of shared, independent but got 'paired'"),
        (
            ["--positive-label", "neutral"],
            r"documents.jsonl: no item has the label 'neutral' .* The labels are: bad, good",
        ),
        (["--metric", "bleu"], r"--metric must be macro_f1 or accuracy .* but got 'bleu'"),
        (["--task", "spans", "--positive-label", "good"], r"--positive-label is for --task classification"),
        (["--task", "spans"], r"--metric must be f_measure for --task spans but got 'accuracy'"),
        (["--fields", "label=sentiment"], r"line 1: lacks the gold annotation 'sentiment'; the fields are text, label"),
        (["--fields", "lable=x"], r"--fields: 'lable=x' must be NAME=FIELD .* Did you mean 'label'"),
        (["--fields", "id=key"], r"line 1: every document needs a text or a number as 'key'"),
        (["--batch-size", "0"], r"--batch-size must be at least 1 but got 0"),
        (["--batch-size", "30"], r"at least 3 documents, or batches of them, .* but there are 2"),
        (["--workers", "0"], r"--workers must be at least 1 but got 0"),
        (["--time-limit", "0"], r"--time-limit must be above 0 but got 0"),
        (["--max-failures", "0"], r"--max-failures must be at least 1 but got 0"),
        (["--seed", "-1"], r"--seed must not be negative but got -1"),
        (["--confidence", "95"], r"confidence must be above 0 and below 1.*95"),
        (["--confidence", "0.9", "--budget", "9"], r"--confidence and --budget are mutually exclusive"),
        (["--margin", "-1"], r"margin must"),
        (["--max-evaluations", "3"], r"max_evaluations must be at least 6 .*but got 3"),
        (["--budget", "1"], r"budget must be at least 2"),
        (["--strategy", "tts"], r"--strategy tts .*[Dd]id you mean 'ttts'"),
        (["--belief", "dirichlet"], r"--belief dirichlet.*'dirichlet'"),
        (
            ["--belief", '{"type": "dirichlet_f_measure", "average": "macro"}'],
            r"contradicts 'average': macro in --belief",
        ),
        (["--stop", "glrr"], r"glrr.*glr"),
        (["--documents", "nowhere.jsonl"], r"nowhere.jsonl: cannot be read: No such file"),
        (["--config", "nowhere.jsonnet"], r"--config nowhere.jsonnet: there is no such file"),
        (["--recover"], r"there is no selection to recover"),
        (["--recover", "--force"], r"--recover goes on with a selection and --force deletes it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    tmp_path: Path,
    options: List[str],
    message: str,
) -> None:
    given = ["--documents", documents, "-s", run, *QUICK, *options]
    assert_refused(call(*systems, *given), message, run)
    assert not asked(tmp_path, "a")


def test_no_directory_and_no_documents(systems: List[str], documents: Path, run: Path, call: Any) -> None:
    assert_refused(call(*systems, "--documents", documents), r"-s is missing", run)
    assert_refused(call(*systems, "-s", run), r"--documents is missing: give a JSONL file", run)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", r"documents.jsonl has no documents"),
        ('{"id": "a", "label"', r"documents.jsonl, line 1: is not valid JSON"),
        ('{"id": "a", "text": "x y", "label": "x"}\n[]', r"documents.jsonl, line 2: must be a JSON object"),
        ('{"text": "x y", "label": "x"}', r"line 1: every document needs a text or a number as 'id' but has null"),
        ('{"id": 1, "label": "x"}\n{"id": "1", "label": "y"}', r"line 2: the id '1' appears twice, first in line 1"),
        ('{"id": "a", "text": "x"}', r"line 1: lacks the gold annotation 'label'"),
        ('{"id": "a", "label": "x"}\n{"id": "b", "label": "x"}', r"all 2 items have the label 'x'"),
    ],
    ids=range(7),
)
def test_bad_documents(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    lines: str,
    message: str,
) -> None:
    documents.write_text(lines)
    assert_refused(call(*systems, "--documents", documents, "-s", run, *QUICK), message, run)


GOOD = {"type": "command", "command": ["python3"]}


@pytest.mark.parametrize(
    ("text", "content", "message"),
    [
        ("https://host/label", None, r"system 'https://host/label': give it a name in front: NAME=https://host/label"),
        ("c=nothing", None, r"system 'c': nothing is none of the known forms. Give NAME=model.tar.gz"),
        ("c=model.tar.gz", None, r"system 'c' \(model.tar.gz\): model.tar.gz: there is no such archive"),
        ("c=answers.jsonl", None, r"system 'c' \(answers.jsonl\): answers.jsonl: cannot be read"),
        ("c=none.jsonnet", None, r"system 'c': none.jsonnet: there is no such config file"),
        ("a/b=answers.jsonl", None, r"system 'a/b=answers.jsonl': a name must not be empty nor contain"),
        (
            "c=http://127.0.0.1:9/label",
            None,
            r"system 'c' .*127.0.0.1:9 .* cannot be reached: .*refused.* Start the server",
        ),
        ("c=c.jsonnet", "{ type: ", r"system 'c': .*c.jsonnet: cannot be read as Jsonnet"),
        ("c=c.jsonnet", "[1]", r"c.jsonnet: must be an object with a 'type' among archive, command, http, predictions"),
        ("c=c.jsonnet", {"command": ["x"]}, r"c.jsonnet: must be an object with a 'type'"),
        ("c=c.jsonnet", {"type": "comand"}, r"system 'c' .*'type' is 'comand'.*Did you mean 'command'"),
        ("c=c.jsonnet", {"type": "command"}, r"system 'c' .*command"),
        ("c=c.jsonnet", {**GOOD, "commnd": 1}, r"system 'c' .*commnd"),
        (
            "c=c.jsonnet",
            {**GOOD, "command": ["no-such-program"]},
            r"'no-such-program', which is no program on the PATH",
        ),
        ("c=c.jsonnet", {**GOOD, "cost": -1}, r"system 'c' .*'cost' must be at least 0 but is -1"),
        (
            "c=c.jsonnet",
            {**GOOD, "body": {"q": "${txt}"}},
            r"system 'c' .*line 1: there is no field 'txt' for 'body'; .*Did you mean 'text'",
        ),
        (
            "c=c.jsonnet",
            {"type": "http", "url": "http://127.0.0.1:9/", "key_variable": "NO_SUCH_KEY_HERE"},
            r"'key_variable' is NO_SUCH_KEY_HERE, but that environment variable is not set",
        ),
        ("c=c.jsonnet", {"type": "http", "url": "http://me:pass@h/"}, r"'url' must not hold a user or a password"),
    ],
    ids=range(18),
)
def test_bad_systems(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    content: Any,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "c.jsonnet").write_text(content if isinstance(content, str) else json.dumps(content))
    assert_refused(call(*systems, text, "--documents", documents, "-s", run, *QUICK), message, run)
    assert not asked(tmp_path, "a")


def test_one_system_two_of_one_name_and_one_twice(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
) -> None:
    options = ["--documents", documents, "-s", run, *QUICK]
    assert_refused(call(systems[0], *options), r"at least 2 systems but got 1: a. Give each as NAME=model.tar.gz", run)
    assert_refused(call(*options), r"at least 2 systems but got 0: none", run)
    assert_refused(call(*systems, systems[0], *options), r"the system 'a' is given twice", run)
    twin = "twin=" + systems[0].partition("=")[2]
    assert_refused(call(*systems, twin, *options), r"the systems 'a' and 'twin' are the same one", run)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            '{"id": "d0", "label": "good"}',
            r"predictions.jsonl has no prediction for 59 of 60 .* the first of them 'd1'",
        ),
        ('{"id": "d0"}\n{"id": "d0"}', r"predictions.jsonl, line 2: the id 'd0' appears twice"),
        ('{"label": "good"}', r"predictions.jsonl, line 1: there is no 'id'"),
        ('{"id": "d0"', r"predictions.jsonl, line 1: is not valid JSON"),
        (
            "".join(f'{{"id": "d{k}", "prediction": "good"}}\n' for k in range(60)),
            r"document 'd0': expected an object with 'label' but it answered \{\"prediction\".*\"answer\": \"KEY\"",
        ),
    ],
    ids=range(5),
)
def test_bad_predictions(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    tmp_path: Path,
    lines: str,
    message: str,
) -> None:
    (tmp_path / "predictions.jsonl").write_text(lines)
    given = [*systems, str(tmp_path / "predictions.jsonl"), "--documents", documents, "-s", run, *QUICK]
    assert_refused(call(*given), message, run)


def test_an_archive_that_does_not_load(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    tmp_path: Path,
) -> None:
    (tmp_path / "model.tar.gz").write_bytes(b"no archive")
    result = call(*systems, f"c={tmp_path / 'model.tar.gz'}", "--documents", documents, "-s", run, *QUICK)
    assert_refused(result, r"system 'c' \(.*model.tar.gz\): the archive .*model.tar.gz cannot be loaded: ", run)


def test_a_file_of_answers_that_is_none(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    tmp_path: Path,
) -> None:
    (tmp_path / "answers.sqlite").write_text("no database, but a text that is long enough to be looked at" * 20)
    options = ["--documents", documents, "-s", run, *QUICK, "--answers", tmp_path / "answers.sqlite"]
    status, output = call(*systems, *options)
    assert status == 2
    assert re.search(r"answers.sqlite: the file of answers cannot be used: .*give another file with --answers", output)


def test_what_must_not_change_on_resuming(
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
    tmp_path: Path,
) -> None:
    options = [*systems, "--documents", documents, "-s", run, *QUICK, "--budget", 8]
    assert call(*options)[0] == 0
    before = (run / "evaluations.csv").read_text()
    changed = write_program(tmp_path, "b2", wrong=3).partition("=")[2]
    for given, message in [
        (["--metric", "macro_f1"], r'--metric was "accuracy" and is now "macro_f1"'),
        (["--documents-order", "independent"], r'--documents-order was "shared" and is now "independent"'),
        (["--batch-size", "2"], r"--batch-size was 1 and is now 2"),
        (["--batch-size", "2", "--metric", "macro_f1"], r"--metric was .* and --batch-size was 1 and is now 2"),
        ([systems[0], f"other={changed}"], r"system 'b' .* belongs to the selection .* but is not given"),
        ([systems[0], f"b={changed}"], r"system 'b' .* is not what it was when the selection .* began"),
    ]:
        status, output = call(*given, "-s", run, "--recover")
        assert status == 2, output
        assert re.search(message, output), output
    write_documents(documents, 61)
    status, output = call("-s", run, "--recover")
    assert status == 2
    assert "documents.jsonl is not what it was when the selection" in output
    assert (run / "evaluations.csv").read_text() == before


def test_debug_shows_the_traceback(systems: List[str], documents: Path, run: Path, call: Any) -> None:
    status, output = call(*systems, "--documents", documents, "-s", run, "--confidence", "2", "--debug")
    assert status == 2
    assert "Traceback" in output


def test_a_selection_does_not_begin_without_a_file_of_answers(
    tmp_path: Path,
    systems: List[str],
    documents: Path,
    run: Path,
    call: Any,
) -> None:
    rubbish = tmp_path / "rubbish.sqlite"
    rubbish.write_text("rubbish " * 500)
    begin = [*systems, "--documents", documents, "-s", run, *QUICK]
    assert_refused(call(*begin, "--answers", rubbish), r"rubbish.sqlite: .* file is not a database", run)
    assert rubbish.read_text() == "rubbish " * 500
    assert call(*begin)[0] == 0
