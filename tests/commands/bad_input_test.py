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


def assert_refused(result: Any, message: str, run: Path) -> None:
    status, output = result
    assert status == 2, output
    assert re.search(message, output, re.MULTILINE), output
    assert "Traceback" not in output
    assert len(output.splitlines()) < 12 and len(output) < 12 * 160, "an error has to fit a screen"
    assert not (run / "evaluations").exists()


@pytest.fixture(autouse=True)
def checks_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the candidates without a process for each, save for the tests marked with `real_processes`."""

    def run_here(work: Callable[..., Any], tasks: Dict[str, Any], **kwargs: Any) -> Dict[str, Any]:
        results: Dict[str, Any] = {}
        for name, task in tasks.items():
            try:
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # AllenNLP's progress
                    results[name] = work(*task)
            except BaseException as error:
                results[name] = error
        return results

    if "real_processes" not in request.fixturenames:
        assert fiesta_allennlp.trainings.preparation.run_apart is run_apart
        monkeypatch.setattr(fiesta_allennlp.trainings.preparation, "run_apart", run_here)


@pytest.fixture
def real_processes() -> None:
    """For tests that check the candidates as a user's selection does."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-evaluations", "5"], r"must be at least 20 \(2 candidates x 3 starting runs, 14 more .*but got 5"),
        (["--strategy", "tts"], r"--strategy tts .*[Dd]id you mean 'ttts'"),
        (["--cuda-devices", "0,999"], r"--cuda-devices: no device"),
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


def test_a_second_selection_in_a_directory(candidates: List[str], call: Any, run: Path) -> None:
    options = [*candidates, "-s", run, "--metric", "accuracy"]
    assert call(*options, "--budget", 2)[0] == 0
    before = (run / "evaluations.csv").read_text()
    status, output = call(*options, "--budget", 2)
    assert status == 2
    assert "this directory already has a selection" in output
    assert (run / "evaluations.csv").read_text() == before
    (run / "notes.txt").write_text("not ours")
    assert call(*options, "--budget", 2, "--force")[0] == 0
    assert (run / "evaluations.csv").read_text() != before
    assert (run / "notes.txt").exists()


def test_what_must_not_change_on_resuming(selections_of_trained: Selections, trained: List[str], run: Path) -> None:
    selections_of_trained.begin("--budget", 2)
    before = (run / "evaluations.csv").read_text()
    for options, message in [
        (["--metric", "f1"], '--metric was "accuracy" and is now "f1"'),
        (["--splits", "independent"], '--splits was "shared" and is now "independent"'),
        (["--overrides", '{"trainer.num_epochs": 1}'], "--overrides was"),
        (
            [trained[0], "other=" + trained[1]],
            r"candidate 'blind' .* belongs to the selection .* but is not given",
        ),
        ([trained[0], "blind=" + trained[0]], r"candidate 'blind' .* has changed"),
    ]:
        output = selections_of_trained.refused(*options, "--recover")
        assert re.search(message, output), output
    config = json.loads(Path(trained[0]).read_text())
    config["trainer"]["num_epochs"] = 5
    Path(trained[0]).write_text(json.dumps(config))
    output = selections_of_trained.refused("--recover")
    assert "candidate 'able'" in output
    assert "'trainer.num_epochs' was 6 and is now 5" in output
    assert (run / "evaluations.csv").read_text() == before


def test_a_refused_resumption_changes_nothing(
    selections: Selections, candidates: List[str], call: Any, run: Path
) -> None:
    strategy = '{"type": "bts", "num_starts": 4}'
    options = [
        *candidates,
        "-s",
        run,
        "--metric",
        "accuracy",
        "--seed",
        4,
        "--belief",
        "student_t",
        "--stop",
        "bayesian",
    ]
    assert call(*options, "--strategy", strategy, "--max-evaluations", 8, "--confidence", 0.999999999)[0] == 0
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"'able'.*(at least|ratios|no|empty)"),
        ('{"text": "x", "label": ', r"'able'.*train.jsonl, after 0 instances: not valid JSON: Expecting value"),
    ],
)
def test_bad_data(trained: List[str], reviews: Path, call: Any, run: Path, content: str, message: str) -> None:
    (reviews / "train.jsonl").write_text(content)
    assert_refused(call(*trained, "-s", run, "--metric", "accuracy"), message, run)


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


def test_bad_vectors(write_config: Callable[..., Path], reviews: Path, call: Any, run: Path) -> None:
    embedder = classifier_config(reviews)["model"]["text_field_embedder"]
    embedder["token_embedders"]["tokens"]["pretrained_file"] = str(reviews / "vectors.txt")
    configs = [write_config("one", text_field_embedder=embedder), write_config("two")]
    options = [*configs, "-s", run, "--metric", "accuracy"]
    assert_refused(call(*options), r"'one'.*pretrained_file' is '.*vectors.txt', but there is no such file", run)
    (reviews / "vectors.txt").write_text("food 1 2\nand 3 4\n")
    assert_refused(call(*options), r"'one'.*'embedding_dim' is 4 but the rows of .*vectors.txt have 2 numbers", run)


def test_a_package_that_is_not_there(trained: List[str], call: Any, run: Path, real_processes: None) -> None:
    (run.parent / "settings.jsonnet").write_text("{ include_package: ['no_such_package'] }")
    result = call(*trained, "-s", run, "--metric", "accuracy", "--config", run.parent / "settings.jsonnet")
    assert_refused(result, r"'able'.*no_such_package", run)


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


def test_a_settings_file_and_a_config_file_are_named(trained: List[str], call: Any, run: Path) -> None:
    (run.parent / "settings.jsonnet").write_text("{ workrs: 2 }")
    result = call(*trained, "-s", run, "--config", run.parent / "settings.jsonnet")
    assert_refused(result, r"settings.jsonnet: 'workrs' is an unknown setting. Did you mean 'workers'", run)
    Path(trained[0]).write_text("local c = import 'nowhere.libsonnet'; c")
    message = r"able.jsonnet: cannot be read as Jsonnet.*nowhere.libsonnet"
    assert_refused(call(*trained, "-s", run, "--metric", "accuracy"), message, run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "basic_clasifier"}, r"'able'.*'basic_clasifier'.*[Dd]id you mean 'basic_classifier'"),
        ({"seq2vec_encodre": "red"}, r"'able'.*'seq2vec_encodre' is not a key of Model"),
        ({"seq2vec_encoder": {"type": "boe", "embedding_dim": 5}}, r"'able'.*(shape|dim)"),
    ],
)
def test_bad_configs(
    write_config: Callable[..., Path], trained: List[str], call: Any, run: Path, changes: Any, message: str
) -> None:
    write_config("able", **changes)
    assert_refused(call(*trained, "-s", run, "--metric", "accuracy"), message, run)


def test_one_label_only(trained: List[str], reviews: Path, call: Any, run: Path) -> None:
    for part in ("train", "validation", "test"):
        path = reviews / f"{part}.jsonl"
        path.write_text(path.read_text().replace('"bad"', '"good"'))
    message = r"'able'.*all 72 instances of .*train.jsonl.* have the label 'good', so there is nothing to learn"
    assert_refused(call(*trained, "-s", run, "--metric", "accuracy"), message, run)


SENTENCE = """<sentence id="{id}"><text>the soup is {word}</text><aspectTerms>
<aspectTerm term="soup" polarity="{polarity}" from="4" to="8"/></aspectTerms></sentence>"""


def sentences(number: int) -> str:
    words = [("fine", "positive"), ("cold", "negative")]
    listed = [SENTENCE.format(id=i, word=words[i % 2][0], polarity=words[i % 2][1]) for i in range(number)]
    return "<sentences>\n" + "\n".join(listed) + "\n</sentences>\n"


GOOD = sentences(24)
CROWD = "\n".join(['<aspectTerm term="soup" polarity="positive" from="4" to="8"/>'] * 9)


@pytest.fixture
def tdsa(tmp_path: Path) -> List[str]:
    """Two candidates over `train.xml` and `test.xml`, both of them good."""
    (tmp_path / "train.xml").write_text(GOOD)
    (tmp_path / "test.xml").write_text(sentences(8))
    config = {
        "dataset_reader": {"type": "semeval_tdsa", "inputs": ["text"]},
        "train_data_path": str(tmp_path / "train.xml"),
        "test_data_path": str(tmp_path / "test.xml"),
        "model": {
            "type": "target_lstm",
            "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 3}}},
            "text_encoder": {"type": "lstm", "input_size": 3, "hidden_size": 2},
        },
        "data_loader": {"batch_size": 8},
        "trainer": {"optimizer": "adam", "num_epochs": 1, "cuda_device": -1},
    }
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonnet").write_text(json.dumps(config))
    return [str(tmp_path / f"{name}.jsonnet") for name in ("one", "two")]


def test_the_good_data_of_these_tests_are_good(tdsa: List[str], call: Any) -> None:
    status, output = call(*tdsa, "--dry-run")
    assert status == 0, output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('from="4"', 'from="3"', r'train.xml, sentence 1 \("0"\): "soup" is not at the characters 3 to 8'),
        (
            "</aspectTerms>",
            f"{CROWD}</aspectTerms>",
            r"sentence_id = '0' has 11 instances, more than the 8 of the validation",
        ),
    ],
)
def test_bad_xml(tdsa: List[str], call: Any, run: Path, old: str, new: str, message: str) -> None:
    (run.parent / "train.xml").write_text(GOOD.replace(old, new, 1))
    assert_refused(call(*tdsa, "-s", run), r"(?s)candidate 'one' \(.*one.jsonnet\): .*" + message, run)
