"""What is wrong is said in one message that names it, with exit status 2, before anything is trained."""

import argparse
import json
import re
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import fiesta_allennlp.trainings.preparation
from fiesta_allennlp import select
from fiesta_allennlp.commands import COMMANDS
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors.processes import run_apart
from tests.commands.conftest import Selections
from tests.conftest import classifier_config
from tests.run_files import summary_of

NO_PACKAGE = "--include-package no_such_package cannot be imported: No module .*PYTHON"


TOKENS = {"type": "embedding", "embedding_dim": 4, "pretrained_file": "v.txt"}
VECTORS = {"token_embedders": {"tokens": TOKENS}}
UNCHANGED = ("", "")


def assert_refused(result: Any, message: str, run: Path) -> None:
    status, output = result
    assert status == 2, output
    assert re.search(message, output, re.MULTILINE), output
    assert "Traceback" not in output
    assert len(output.splitlines()) < 12 and len(output) < 12 * 160, "an error has to fit a screen"
    assert not (run / "evaluations").exists()


@pytest.fixture(autouse=True)
def checks_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the candidates without a process for each."""

    def run_here(work: Callable[..., Any], tasks: Dict[str, Any], **kwargs: Any) -> Dict[str, Any]:
        results: Dict[str, Any] = {}
        for name, task in tasks.items():
            try:
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # AllenNLP's progress
                    results[name] = work(*task)
            except BaseException as error:
                results[name] = error
        return results

    assert fiesta_allennlp.trainings.preparation.run_apart is run_apart
    monkeypatch.setattr(fiesta_allennlp.trainings.preparation, "run_apart", run_here)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-evaluations", "5"], r"must be at least 20 \(2 candidates x 3 starting runs, 14 more .*but got 5"),
        (["--strategy", "tts"], r"--strategy tts .*[Dd]id you mean 'ttts'"),
        (["--cuda-devices", "0,999"], r"--cuda-devices: there is no device"),
        (["--metric", "macro_f1"], r"candidate 'able'.*'macro_f1'.*accuracy, loss. Choose.*--metric"),
        (["--metric", "loss"], r"--metric=-loss"),
        (["--metric", "-loss"], r"--metric: expected one argument.*--metric=-perplexity"),
        (["--group-by", "author"], r"--group-by author: an instance has no metadata"),
        (["--overrides", "{bad"], r"--overrides .*able.jsonnet: cannot be read"),
        (["--overrides", '{"trainer.num_epochs": "many"}'], r"'able'.*(num_epochs|many|int)"),
        (["--recover"], r"there is no selection to recover"),
        (["--recover", "--force"], r"--recover continues a selection and --force deletes it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(trained: List[str], call: Any, run: Path, options: List[str], message: str) -> None:
    metric = [] if any(option.startswith("--metric") for option in options) else ["--metric", "accuracy"]
    assert_refused(call(*trained, "-s", run, *metric, *options), message, run)


def test_what_must_not_change_on_resuming(selections: Selections, candidates: List[str], run: Path) -> None:
    selections.begin("--budget", 2)
    before = (run / "evaluations.csv").read_text()
    able, blind = candidates
    for options, message in [
        (["--metric", "f1", "--splits", "independent"], r'--metric was "accuracy" .* --splits was "shared" and is now'),
        ([able, f"other={blind}"], r"candidate 'blind' .* belongs to the selection .* but is not given"),
        ([able, f"blind={able}"], r"candidate 'blind' .* has changed"),
    ]:
        output = selections.refused(*options, "--recover")
        assert re.search(message, output, re.DOTALL), output
    Path(able).write_text(json.dumps({**json.loads(Path(able).read_text()), "environment": {"A": "1"}}))
    output = selections.refused("--recover")
    assert "candidate 'able'" in output and "'environment" in output
    assert (run / "evaluations.csv").read_text() == before


def test_a_refused_resumption_changes_nothing(selections: Selections, candidates: List[str], run: Path) -> None:
    strategy = '{"type": "bts", "num_starts": 4}'
    options = ["--seed", 4, "--belief", "student_t", "--stop", "bayesian", "--strategy", strategy]
    selections.begin(*options, "--max-evaluations", 8, "--confidence", 0.999999999)
    for refused in (["--budget", "1"], [*candidates, "nowhere.jsonnet"], ["--workers", "0"]):
        selections.refused(*refused, "--recover")
    selections.resume("--seed", 4, "--confidence", 0.99999999, "--max-evaluations", 9)
    summary = summary_of(run)
    assert (summary["strategy"]["type"], summary["strategy"]["num_starts"]) == ("bts", 4)
    assert summary["num_evaluations"] in (8, 9)


def test_candidates_on_different_data(write_config: Callable[..., Path], reviews: Path, call: Any, run: Path) -> None:
    (reviews / "more.jsonl").write_text((reviews / "train.jsonl").read_text() * 2)
    one = write_config("one")
    other = write_config("other", {"train_data_path": str(reviews / "more.jsonl")})
    result = call(one, other, "-s", run, "--metric", "accuracy")
    assert_refused(result, r"candidates 'one' and 'other' do not have the same pool of data", run)


def test_a_missing_data_file(
    write_config: Callable[..., Path], call: Any, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.parent / "below").mkdir()
    monkeypatch.chdir(run.parent / "below")
    one = write_config("one", {"train_data_path": "nowhere.jsonl"})
    two = write_config("two", {"test_data_path": "test.jsonl"})
    vectors = classifier_config(one.parent)["model"]["text_field_embedder"]
    vectors["token_embedders"]["tokens"]["pretrained_file"] = "/none/v.txt"
    three = write_config("three", text_field_embedder=vectors)
    result = call(one, two, three, "-s", run, "--metric", "accuracy")
    assert_refused(result, "^error: 3 candidates are wrong:$", run)
    here = f"there is no such file in the current directory {run.parent}/below."
    for message in (
        f"  candidate 'one' ({one}): 'train_data_path' is 'nowhere.jsonl', but {here}\n",
        f"'test_data_path' is 'test.jsonl', but {here} The file is in the directory of the config: write {run.parent}/",
        "(three.jsonnet): 'model.text_field_embedder.token_embedders.tokens.pretrained_file' is '/none/v.txt', but",
    ):
        assert message.replace("(three", f"({run.parent}/three") in result[1]


@pytest.mark.parametrize("name", ["report", "status", "plan", "replay", "next"])
def test_packages_are_imported_only_where_there_is_something_to_read(name: str, tmp_path: Path) -> None:
    """So a wrong path is answered before an import that may take seconds."""
    (tmp_path / "scores.csv").touch()
    parser = argparse.ArgumentParser()
    COMMANDS[name].add_arguments(parser)
    for path, refused in (("nowhere.csv", nullcontext()), ("scores.csv", pytest.raises(ConfigError, match=NO_PACKAGE))):
        args = parser.parse_args([str(tmp_path / path)])
        args.include_package = ["no_such_package"]
        with refused:
            COMMANDS[name].checked(args)


def test_what_is_typed_wrong_is_told_before_packages_are_imported(trained: List[str], run: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere.jsonnet: there is no such config file"):
        select([trained[0], "nowhere.jsonnet"], directory=run, metric="accuracy", include_package="no_such_package")


@pytest.mark.parametrize(
    ("model", "replaced", "message"),
    [
        ({}, (".+", "", "train"), r"'able'.*(at least|ratios|no|empty)"),
        ({}, (".+", '{"text": "x", "label": ', "train"), r"'able'.*train.jsonl, after 0 instances: not valid JSON"),
        (
            {},
            ('"bad"', '"good"', "train", "validation", "test"),
            r"'able'.*all 72 instances of .*train.jsonl.* have the label 'good'",
        ),
        ({"type": "basic_clasifier"}, UNCHANGED, r"'able'.*'basic_clasifier'.*[Dd]id you mean 'basic_classifier'"),
        ({"seq2vec_encodre": "red"}, UNCHANGED, r"'able'.*'seq2vec_encodre' is not a key of Model"),
        ({"seq2vec_encoder": {"type": "boe", "embedding_dim": 5}}, UNCHANGED, r"'able'.*(shape|dim)"),
        (
            {"text_field_embedder": VECTORS},
            UNCHANGED,
            r"'able'.*'embedding_dim' is 4 but .*v.txt have 2 numbers",
        ),
    ],
)
def test_bad_models_and_data(
    write_config: Callable[..., Path],
    trained: List[str],
    call: Any,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: Any,
    replaced: Any,
    message: str,
) -> None:
    monkeypatch.chdir(run.parent)
    Path("v.txt").write_text("food 1 2\nand 3 4\n")
    write_config("able", **model)
    old, new, *parts = replaced
    for path in (run.parent / f"{part}.jsonl" for part in parts):
        path.write_text(re.sub(old, new, path.read_text(), flags=re.DOTALL))
    assert_refused(call(*trained, "-s", run, "--metric", "accuracy"), message, run)
