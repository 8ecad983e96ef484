"""What is wrong is said in one message that names it, with exit status 2, before anything is trained."""

import argparse
import re
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp.commands import COMMANDS, DOCS_HINT, add_command
from tests.commands.conftest import Call, Selections
from tests.conftest import classifier_config
from tests.run_files import summary_of

ACCURACY = ("--metric", "accuracy")


@pytest.fixture
def refused(trained: List[str], call: Call, run: Path) -> Callable[..., str]:
    """Tries a selection of the AllenNLP configs, which must be refused with a message, and returns it."""

    def check(message: str, *options: Any, candidates: Any = trained) -> str:
        output = call.refused(*candidates, "-s", run, *options, said=message)
        assert not (run / "evaluations").exists()
        return output

    return check


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*ACCURACY, "--cuda-devices", "0,999"], r"--cuda-devices: no GPU"),
        ([*ACCURACY, "--group-by", "author"], r"candidate 'able'.*--group-by author: an instance has no such metadata"),
        ([*ACCURACY, "--overrides", '{"model.type": "basic_clasifier"}'], r"'able'.*'basic_classifier'"),
        (["--metric", "macro_f1"], r"candidate 'able'.*'macro_f1'.*accuracy, loss"),
        (["--metric", "-loss"], r"--metric: expected one argument.*--OPTION=-VALUE"),
        (["--recover"], "nothing to recover"),
        (["--recover", "--force"], "--recover .*--force"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_bad_options(refused: Callable[..., str], options: List[Any], message: str) -> None:
    refused(message, *options)


@pytest.mark.parametrize("flags", [["--arch", "a", "--seed", "{seed}"], ["{seed}"], ["--arch", "a", "{seed}"]])
def test_a_command_without_quotes_is_told_to_have_them(run: Path, call: Call, flags: List[str]) -> None:
    said = r"the placeholder {seed} stands alone. Put every command into quotes: 'NAME=python train.py {seed}'"
    call.refused("a=python", "train.py", *flags, *ACCURACY, "-s", run, said=said)


@pytest.mark.parametrize("name", ["next", "plan", "replay", "report"])
def test_the_metric_of_a_table_is_a_column(name: str, in_process: Callable[[str], Call]) -> None:
    said = "unrecognized arguments: --metric f1. Did you mean '--score NAME'?"
    in_process(name).refused("scores.csv", "--metric", "f1", said=re.escape(said))


def test_a_refused_resumption_changes_nothing(selections: Selections, candidates: List[str], run: Path) -> None:
    options = ["--strategy", '{"type": "bts", "num_starts": 4}', "--belief", "student_t", "--stop", "bayesian"]
    selections.begin(*options, "--seed", 4, "--max-evaluations", 8, "--confidence", 0.999999999)
    before = (run / "evaluations.csv").read_text()
    able, blind = candidates
    for given, message in [
        (["--metric", "f1"], '--metric was "accuracy" and is now "f1"'),
        ([able, f"other={blind}"], "candidate 'blind'"),
        ([able, f"blind={able}"], "candidate 'blind' .* has changed"),
        (["--budget", 1], "error: --budget must be at least"),
    ]:
        selections.refused(*given, "--recover", said=message)
    config = Path(able).read_text()
    Path(able).write_text(config.replace("stdout", "{directory}/m.json"))
    selections.refused("--recover", said="candidate 'able'.*'metrics' was \"stdout\" and is now")
    assert (run / "evaluations.csv").read_text() == before
    Path(able).write_text(config)
    selections.resume("--seed", 4, "--confidence", 0.99999999, "--max-evaluations", 9)
    summary = summary_of(run)
    assert (summary["strategy"]["type"], summary["strategy"]["num_starts"]) == ("bts", 4)
    assert summary["num_evaluations"] in (8, 9)


BAD_LINE = '{"text": "x", "label": '


@pytest.mark.parametrize(
    ("files", "change", "message"),
    [
        ("train.jsonl", lambda text: BAD_LINE, r"'able'.*train.jsonl, after 0 instances: .*Expecting"),
        (
            "*.jsonl",
            lambda text: text.replace('"bad"', '"good"'),
            "'able'.*all 72 instances .*'good'",
        ),
    ],
    ids=("json", "one label"),
)
def test_bad_data(reviews: Path, refused: Callable[..., str], files: str, change: Any, message: str) -> None:
    for path in reviews.glob(files):
        path.write_text(change(path.read_text()))
    refused(message, *ACCURACY)


def test_a_missing_data_file_and_vectors_of_another_width(
    write_config: Callable[..., Path], run: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = run.parent
    (root / "below").mkdir()
    monkeypatch.chdir(root / "below")
    one = write_config("one", {"train_data_path": "nowhere.jsonl"})
    two = write_config("two", {"test_data_path": "test.jsonl"})
    vectors = classifier_config(root)["model"]["text_field_embedder"]
    vectors["token_embedders"]["tokens"]["pretrained_file"] = str(root / "v.txt")
    three = write_config("three", text_field_embedder=vectors)
    said = refused("^error: 3 invalid candidates", *ACCURACY, candidates=[one, two, three])
    for place in ("nowhere.jsonl", "test.jsonl", "v.txt"):
        assert place in said
    (root / "v.txt").write_text("food 1 2\nand 3 4\n")
    refused(r"'three'.*'embedding_dim' is 4.*v.txt", *ACCURACY, candidates=[three, write_config("four")])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_before_options_and_ends_in_the_guides(name: str) -> None:
    parser = add_command(
        argparse.ArgumentParser(prog="fiesta").add_subparsers(), name, command_name=name, program="fiesta"
    )
    text = parser.format_help()
    assert 0 < text.index(f"examples:\n  fiesta {name}") < text.index("options:\n") < text.index(DOCS_HINT)
