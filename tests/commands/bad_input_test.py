"""What is wrong is said in one message that names it, with exit status 2, before anything is trained."""

import argparse
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp import select
from fiesta_allennlp.commands import COMMANDS
from fiesta_allennlp.errors import ConfigError
from tests.commands.conftest import Call, Selections
from tests.conftest import classifier_config
from tests.run_files import summary_of

NO_PACKAGE = "--include-package no_such_package cannot be imported: No module .*PYTHON"
ACCURACY = ("--metric", "accuracy")


@pytest.fixture
def refused(trained: List[str], call: Call, run: Path) -> Callable[..., str]:
    """Tries a selection of the AllenNLP configs, which must be refused with a message, and returns it."""

    def check(message: str, *options: Any, candidates: Any = trained) -> str:
        output = call.refused(*candidates, "-s", run, *options)
        assert re.search(message, output, re.MULTILINE), output
        assert not (run / "evaluations").exists()
        return output

    return check


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*ACCURACY, "--max-evaluations", 5], r"at least 20 \(2 candidates x 3 starting runs, 14 more .*but got 5"),
        ([*ACCURACY, "--cuda-devices", "0,999"], r"--cuda-devices: no GPU"),
        ([*ACCURACY, "--group-by", "author"], r"candidate 'able'.*--group-by author: an instance has no such metadata"),
        ([*ACCURACY, "--overrides", "{bad"], r"--overrides .*able.jsonnet is not valid Jsonnet"),
        ([*ACCURACY, "--overrides", '{"trainer.num_epochs": "many"}'], r"'able'.*(num_epochs|many|int)"),
        (
            [*ACCURACY, "--overrides", '{"model.type": "basic_clasifier"}'],
            r"'able'.*[Dd]id you mean 'basic_classifier'",
        ),
        ([*ACCURACY, "--overrides", '{"model.seq2vec": "red"}'], r"'able'.*'seq2vec' is not a key of Model"),
        (["--metric", "macro_f1"], r"candidate 'able'.*'macro_f1'.*accuracy, loss. Choose.*--metric"),
        (["--metric", "loss"], r"--metric=-loss"),
        (["--metric", "-loss"], r"--metric: expected one argument.*--metric=-perplexity"),
        (["--recover"], r"there is no selection to recover"),
        (["--recover", "--force"], r"--recover continues a selection and --force deletes it"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_bad_options(refused: Callable[..., str], options: List[Any], message: str) -> None:
    refused(message, *options)


def test_a_second_selection_in_a_directory(selections: Selections, candidates: List[str], run: Path) -> None:
    selections.begin("--budget", 2)
    before = (run / "evaluations.csv").read_text()
    assert "this directory already has a selection" in selections.refused(*candidates, *ACCURACY, "--budget", 2)
    assert (run / "evaluations.csv").read_text() == before
    (run / "notes.txt").write_text("not ours")
    selections.begin("--budget", 2, "--force")
    assert (run / "evaluations.csv").read_text() != before
    assert (run / "notes.txt").exists()


def test_a_refused_resumption_changes_nothing(selections: Selections, candidates: List[str], run: Path) -> None:
    options = ["--strategy", '{"type": "bts", "num_starts": 4}', "--belief", "student_t", "--stop", "bayesian"]
    selections.begin(*options, "--seed", 4, "--max-evaluations", 8, "--confidence", 0.999999999)
    before = (run / "evaluations.csv").read_text()
    able, blind = candidates
    for given, message in [
        (["--metric", "f1"], '--metric was "accuracy" and is now "f1"'),
        (["--overrides", '{"environment": {}}'], "--overrides was"),
        ([able, f"other={blind}"], r"candidate 'blind' .* is missing, but belongs to the selection"),
        ([able, f"blind={able}"], r"candidate 'blind' .* has changed"),
        (["--budget", 1], "budget must be at least"),
        ([able, blind, "nowhere.jsonnet"], "no such config file"),
        (["--workers", 0], "--workers must be above 0"),
    ]:
        output = selections.refused(*given, "--recover")
        assert re.search(message, output), output
    config = Path(able).read_text()
    Path(able).write_text(config.replace("stdout", "{directory}/m.json"))
    output = selections.refused("--recover")
    assert "candidate 'able'" in output and "'metrics' was \"stdout\" and is now" in output
    assert (run / "evaluations.csv").read_text() == before
    Path(able).write_text(config)
    selections.resume("--seed", 4, "--confidence", 0.99999999, "--max-evaluations", 9)
    summary = summary_of(run)
    assert (summary["strategy"]["type"], summary["strategy"]["num_starts"]) == ("bts", 4)
    assert summary["num_evaluations"] in (8, 9)


def test_candidates_on_different_data(
    write_config: Callable[..., Path], reviews: Path, refused: Callable[..., str]
) -> None:
    (reviews / "more.jsonl").write_text((reviews / "train.jsonl").read_text() * 2)
    given = [write_config("one"), write_config("other", {"train_data_path": str(reviews / "more.jsonl")})]
    refused(r"candidates 'one' and 'other' do not read the same data", *ACCURACY, candidates=given)


BAD_LINE = '{"text": "x", "label": '


@pytest.mark.parametrize(
    ("files", "change", "message"),
    [
        ("train.jsonl", lambda text: "", r"'able'.*(at least|ratios|no|empty)"),
        ("train.jsonl", lambda text: BAD_LINE, r"'able'.*train.jsonl, after 0 instances: JSONDecodeError: Expecting"),
        (
            "*.jsonl",
            lambda text: text.replace('"bad"', '"good"'),
            r"'able'.*all 72 instances of .*train.jsonl.* have the label 'good', so there is nothing to learn",
        ),
    ],
    ids=("empty", "json", "one label"),
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
    said = refused("^error: 3 invalid candidates:$", *ACCURACY, candidates=[one, two, three])
    here = f"but no such file exists. The current directory is {root}/below."
    for message in (
        f"  candidate 'one' ({one}): 'train_data_path' is 'nowhere.jsonl', {here}\n",
        f"'test_data_path' is 'test.jsonl', {here}",
        f"({three}): 'model.text_field_embedder.token_embedders.tokens.pretrained_file' is '{root}/v.txt', but no",
    ):
        assert message in said
    (root / "v.txt").write_text("food 1 2\nand 3 4\n")
    message = r"'three'.*'embedding_dim' is 4 but the rows of .*v.txt have 2 numbers"
    refused(message, *ACCURACY, candidates=[three, write_config("four")])


def test_a_package_that_is_not_there(run: Path, refused: Callable[..., str]) -> None:
    (run.parent / "settings.jsonnet").write_text("{ include_package: ['no_such_package'] }")
    refused(r"'able'.*no_such_package", *ACCURACY, "--config", run.parent / "settings.jsonnet")


@pytest.mark.parametrize("name", ["report", "status", "plan", "replay", "next"])
def test_packages_are_imported_only_where_there_is_something_to_read(name: str, tmp_path: Path) -> None:
    """So a wrong path is answered before an import that may take seconds."""
    (tmp_path / "scores.csv").touch()
    parser = argparse.ArgumentParser()
    COMMANDS[name].add_arguments(parser)
    for path, refusal in (("nowhere.csv", nullcontext()), ("scores.csv", pytest.raises(ConfigError, match=NO_PACKAGE))):
        args = parser.parse_args([str(tmp_path / path)])
        args.include_package = ["no_such_package"]
        with refusal:
            COMMANDS[name].checked(args)


def test_what_is_typed_wrong_is_told_before_packages_are_imported(trained: List[str], run: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere.jsonnet: no such config file"):
        select([trained[0], "nowhere.jsonnet"], directory=run, metric="accuracy", include_package="no_such_package")
