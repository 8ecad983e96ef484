"""What is wrong is said in one message that names it, with exit status 2, before anything is trained."""

import json
import re
from argparse import Namespace
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import fiesta_allennlp.trainings.preparation
from fiesta_allennlp.commands.exit_handling import load
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors.processes import run_apart
from tests.commands.conftest import Selections
from tests.conftest import classifier_config


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
        (["--budget", "1"], r"budget must be at least 2 .*but got 1"),
        (["--budget", "0"], r"budget must be at least"),
        (["--confidence", "1"], r"confidence must be above 0 and below 1, such as 0.95, but got 1"),
        (["--confidence", "95"], r"confidence must be above 0 and below 1.*95"),
        (["--confidence", "-0.5"], r"confidence must be above 0"),
        (["--margin", "-0.1"], r"margin must"),
        (["--margin", "nan"], r"margin must"),
        (
            ["--max-evaluations", "5"],
            r"must be at least 6 \(2 candidates x 2 starting runs, 2 more because a winner .* need 3 each\) but got 5",
        ),
        (["--belief", "logit_student_t", "--margin", "0.1"], r"margin must be 0 with the belief"),
        (["--strategy", "tttts"], r"--strategy tttts.*tttts.*ttts"),
        (["--belief", "student"], r"--belief student"),
        (["--belief", "dirichlet_f_measure"], r"--belief dirichlet_f_measure needs counts .* such as split_paired"),
        (["--belief", '{"type": "dirichlet_f_measure", "num_samples": 100}'], r"num_samples must be a power of 2"),
        (
            ["--belief", '{"type": "dirichlet_f_measure", "beta": "half"}'],
            r"--belief dirichlet_f_measure: 'beta' must be a number but is half",
        ),
        (["--stop", "glrr"], r"glrr.*glr"),
        (["--stop", "glr", "--budget", "20"], r"--stop does not go with --strategy sequential_halving"),
        (["--strategy", '{"type": "top_two", "betta": 0.5}'], r"betta"),
        (["--strategy", '{"type": "top_two", "beta": 2}'], r"beta"),
        (["--strategy", "{type: ttts}"], r"--strategy.*not valid JSON"),
        (["--strategy", "sequential_halving"], r"budget"),
        (["--strategy", "top_two", "--budget", "20"], r"budget"),
        (["--confidence", "0.9", "--budget", "20"], r"confidence"),
        (["--splits", "paired"], r"--splits must be one of shared, independent, official but got 'paired'"),
        (["--keep", "some"], r"--keep must be one of"),
        (["--executor", "condor"], r"--executor must be one of processes, ray, slurm but got 'condor'"),
        (["--executor", "{bad"], r"--executor: '{bad' is not valid JSON"),
        (["--executor", '{"type": "processes", "wrkers": 2}'], r"--executor processes: .*wrkers"),
        (
            ["--executor", '{"type": "processes", "workers": 2}'],
            r"--workers is an option of its own: take 'workers' out of --executor",
        ),
        (["--gpus-per-evaluation", "1"], r"--gpus-per-evaluation does not go with --executor processes"),
        (["--executor", "ray", "--cuda-devices", "0"], r"--cuda-devices does not go with --executor ray"),
        (["--max-hours", "0"], r"--max-hours must be above 0 but got 0"),
        (["--cuda-devices", "0,999"], r"--cuda-devices: there is no device"),
        (["--confidence", "0.9", "--budget", "9"], r"--confidence and --budget are mutually exclusive"),
        (["--workers", "0"], r"--workers must be above 0 but got 0"),
        (["--threads-per-worker", "0"], r"--threads-per-worker must be above 0"),
        (["--time-limit", "-3"], r"--time-limit must be above 0"),
        (["--max-failures", "0"], r"--max-failures must be at least 1"),
        (["--seed", "-1"], r"--seed must not be negative"),
        (["--metric", "macro_f1"], r"candidate 'able'.*'macro_f1'.*accuracy, loss. Choose.*--metric"),
        (["--metric", "loss"], r"--metric loss: less of .* Write --metric=-loss for the lowest"),
        (["--metric", "-loss"], r"--metric: expected one argument.*joined by an equals sign: --metric=-perplexity"),
        (["--metric=-"], r"--metric must be a name, or -NAME to minimise it, but got '-'"),
        (["--group-by", "author"], r"--group-by author: an instance has no metadata"),
        (["--overrides", "{bad"], r"--overrides .*able.jsonnet: cannot be read"),
        (["--overrides", '{"model.encoder": 3}'], r"able.*encoder"),
        (["--config", "nowhere.jsonnet"], r"--config nowhere.jsonnet: there is no such file"),
        (["--recover"], r"there is no selection to recover"),
        (["--recover", "--force"], r"--recover goes on with a selection and --force deletes it"),
        (["--allow-removed"], r"--allow-removed withdraws candidates of a selection that is resumed. Add --recover"),
        (["--strategy", '{"beta": 0.5}'], r"--strategy: expected a name or a JSON object with a 'type'"),
        (["--strategy", "tts"], r"--strategy tts .*[Dd]id you mean 'ttts'"),
        (["--belief", "student_tt"], r"--belief student_tt.*[Dd]id you mean 'student_t'"),
        (["--strategy", '{"type": "top_two", "num_starts": 1}'], r"num_starts must be at least 2.*but got 1"),
        (["--strategy", '{"type": "bts", "batch_size": 0}'], r"batch_size must be at least 1.*but got 0"),
        (
            ["--strategy", '{"type": "top_two", "confidence": 0.9}', "--confidence", "0.8"],
            r"0.8 contradicts 'confidence'",
        ),
        (["--strategy", "non_adaptive_fb", "--budget", "9", "--margin", "0.1"], r"--margin does not go with"),
        (["--confidence", "nan"], r"confidence must be above 0 and below 1"),
        (["--max-evaluations", "-1"], r"max_evaluations must be at least 6.*but got -1"),
        (["--workers", "-2"], r"--workers must be above 0 but got -2"),
        (["--cuda-devices", "gpu"], r"there is no device 'gpu'.*numbered from 0"),
        (["--overrides", '{"trainer.num_epochs": "many"}'], r"'able'.*(num_epochs|many|int)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(candidates: List[str], call: Any, run: Path, options: List[str], message: str) -> None:
    metric = [] if any(option.startswith("--metric") for option in options) else ["--metric", "accuracy"]
    assert_refused(call(*candidates, "-s", run, *metric, *options), message, run)


def test_no_directory(candidates: List[str], call: Any, run: Path) -> None:
    assert_refused(call(*candidates), r"-s is missing", run)


def test_one_candidate_none_and_two_of_one_name(candidates: List[str], call: Any, run: Path) -> None:
    assert_refused(call(candidates[0], "-s", run), r"at least 2 candidates but got 1: able", run)
    assert_refused(call("-s", run), r"at least 2 candidates but got 0: none", run)
    assert_refused(
        call(candidates[0], candidates[0], "-s", run),
        r"the candidate 'able' is given twice, as .*able.jsonnet. Leave one",
        run,
    )


def test_a_second_selection_in_a_directory(candidates: List[str], call: Any, run: Path) -> None:
    options = [*candidates, "-s", run, "--metric", "accuracy"]
    assert call(*options, "--budget", 2)[0] == 0
    before = (run / "evaluations.csv").read_text()
    status, output = call(*options, "--budget", 2)
    assert status == 2
    assert "there is a selection in this directory already" in output
    assert (run / "evaluations.csv").read_text() == before
    (run / "notes.txt").write_text("not ours")
    assert call(*options, "--budget", 2, "--force")[0] == 0
    assert (run / "evaluations.csv").read_text() != before
    assert (run / "notes.txt").exists()


def test_what_must_not_change_on_resuming(selections: Selections, candidates: List[str], run: Path) -> None:
    selections.begin("--budget", 2)
    before = (run / "evaluations.csv").read_text()
    for options, message in [
        (["--metric", "f1"], '--metric was "accuracy" and is now "f1"'),
        (["--splits", "independent"], '--splits was "shared" and is now "independent"'),
        (["--overrides", '{"trainer.num_epochs": 1}'], "--overrides was"),
        (
            [candidates[0], "other=" + candidates[1]],
            r"candidate 'blind' .* belongs to the selection .* but is not given",
        ),
        ([candidates[0], "blind=" + candidates[0]], r"candidate 'blind' .* is not what it was"),
    ]:
        output = selections.refused(*options, "--recover")
        assert re.search(message, output), output
    config = json.loads(Path(candidates[0]).read_text())
    config["trainer"]["num_epochs"] = 5
    Path(candidates[0]).write_text(json.dumps(config))
    output = selections.refused("--recover")
    assert "candidate 'able'" in output
    assert "'trainer.num_epochs' was 6 and is now 5" in output
    assert (run / "evaluations.csv").read_text() == before


def test_a_refused_resumption_changes_nothing(
    selections: Selections, candidates: List[str], call: Any, run: Path
) -> None:
    strategy = '{"type": "bts", "num_starts": 4}'
    options = [*candidates, "-s", run, "--metric", "accuracy", "--seed", 4, "--belief", "student_t"]
    assert call(*options, "--strategy", strategy, "--max-evaluations", 8, "--confidence", 0.999999999)[0] == 0
    for refused in (["--budget", "1"], [*candidates, "nowhere.jsonnet"], ["--workers", "0"]):
        selections.refused(*refused, "--recover")
    selections.resume("--seed", 4, "--confidence", 0.99999999, "--max-evaluations", 9)
    summary = json.loads((run / "selection.json").read_text())
    assert (summary["strategy"]["type"], summary["strategy"]["num_starts"]) == ("bts", 4)
    assert summary["num_evaluations"] in (8, 9)


def test_data_that_changed_are_noticed_on_resuming(selections: Selections, reviews: Path) -> None:
    selections.begin("--budget", 2)
    text = (reviews / "train.jsonl").read_text()
    (reviews / "train.jsonl").write_text(text.replace("food", "fare", 1))
    output = selections.refused("--recover", "--budget", 4)
    assert "candidate 'able'" in output
    assert "the contents of its data files have changed" in output


def test_a_mistake_beside_force_deletes_nothing(selections: Selections, candidates: List[str], run: Path) -> None:
    selections.begin("--budget", 2)
    before = (run / "evaluations.csv").read_text()
    selections.refused(*candidates, "--metric", "acuracy", "--budget", 2, "--force")
    assert (run / "evaluations.csv").read_text() == before


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
        ('{"text": "a", "label": "good"}\n' * 2 + '{"label": "good"}\n', r"train.jsonl, after 2 .*: 'text'"),
        ('{"text": "a", "label": "good"}\n\n', r"train.jsonl, after 1 instances: not valid JSON"),
    ],
)
def test_bad_data(candidates: List[str], reviews: Path, call: Any, run: Path, content: str, message: str) -> None:
    (reviews / "train.jsonl").write_text(content)
    assert_refused(call(*candidates, "-s", run, "--metric", "accuracy"), message, run)


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
    assert_refused(call(*options), r"'one'.*(dimension|embedding_dim)", run)


def test_debug_shows_the_traceback(selections: Selections, candidates: List[str]) -> None:
    output = selections.refused(*candidates, "--confidence", "2", "--debug")
    assert "Traceback" in output


def test_after_an_error_the_directory_can_be_used(selections: Selections, candidates: List[str]) -> None:
    selections.refused(*candidates, "--metric", "macro_f1")
    selections.begin("--budget", 2)


def test_a_package_that_is_not_there(candidates: List[str], call: Any, run: Path, real_processes: None) -> None:
    (run.parent / "settings.jsonnet").write_text("{ include_package: ['no_such_package'] }")
    result = call(*candidates, "-s", run, "--metric", "accuracy", "--config", run.parent / "settings.jsonnet")
    assert_refused(result, r"'able'.*no_such_package", run)
    with pytest.raises(ConfigError, match="--include-package no_such_package cannot be imported: No module .*PYTHON"):
        load(Namespace(include_package=["no_such_package"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{ workrs: 2 }", r"settings.jsonnet: 'workrs' is an unknown setting. Did you mean 'workers'"),
        (
            "{ workrs: 2, 'dry-run': true }",
            r"'dry_run' is an unknown setting. 'workrs' is .* 'workers'\? Valid settings: strat",
        ),
        ("{ workers: 'two' }", r'--workers must be a whole number or auto but got "two"'),
        ("{ workers: ", r"settings.jsonnet: cannot be read as Jsonnet"),
        ("{ splits: 'paired' }", r"settings.jsonnet: --splits must be one of .*, official but got 'paired'"),
        ("[1, 2]", r"settings.jsonnet: must be a Jsonnet object .* but is a list"),
        ("{ strategy: { beta: 1 } }", r"expected a name or a JSON object with a 'type'"),
    ],
)
def test_bad_settings_files(candidates: List[str], call: Any, run: Path, content: str, message: str) -> None:
    (run.parent / "settings.jsonnet").write_text(content)
    assert_refused(call(*candidates, "-s", run, "--config", run.parent / "settings.jsonnet"), message, run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{ model: ", r"able.jsonnet: cannot be read as Jsonnet.*\bable.jsonnet:1"),
        ("[1, 2]", r"able.jsonnet: a config must be an object .* but is a list"),
        ("local c = import 'nowhere.libsonnet'; c", r"able.jsonnet: cannot be read as Jsonnet.*nowhere.libsonnet"),
        ("{ a: self.b }", r"able.jsonnet: cannot be read as Jsonnet.*[Ff]ield does not exist: b"),
        ('"a text"', r"able.jsonnet: a config must be an object .* but is a str"),
        ("{}", r"able.jsonnet: the key 'dataset_reader' is missing"),
        (None, r"able.jsonnet: there is no such config file"),
    ],
    ids=str,
)
def test_config_files_that_are_none(candidates: List[str], call: Any, run: Path, content: Any, message: str) -> None:
    path = Path(candidates[0])
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_refused(call(*candidates, "-s", run, "--metric", "accuracy"), message, run)


GONE = object()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model", GONE, r"able.jsonnet: the key 'model' is missing"),
        ("trainer", GONE, r"able.jsonnet: the key 'trainer' is missing"),
        ("data_loader", GONE, r"able.jsonnet: the key 'data_loader' is missing"),
        ("train_data_path", GONE, r"able.jsonnet: the key 'train_data_path' is missing"),
        ("distributed", {"cuda_devices": [0, 1]}, r"able.jsonnet: 'distributed' is .*, but a run is one process"),
        ("trainner", {}, r"'able'.*trainner"),
        (
            "model",
            "basic_classifier",
            r"able.jsonnet: 'model' must be an object such as .* but is \"basic_classifier\"",
        ),
        ("dataset_reader", [], r"able.jsonnet: 'dataset_reader' must be an object such as .* but is \[\]"),
        ("model.type", "basic_clasifier", r"'able'.*'basic_clasifier'.*[Dd]id you mean 'basic_classifier'"),
        ("model.colour", "red", r"'able'.*colour"),
        ("model.seq2vec_encodre", "red", r"'able'.*'seq2vec_encodre' is not a key of Model"),
        ("model.seq2vec_encoder", GONE, r"'able'.*seq2vec_encoder"),
        ("model.seq2vec_encoder.embedding_dim", 5, r"'able'.*(shape|dim)"),
        ("model.seq2vec_encoder.type", "bow", r"'able'.*'bow'"),
        ("model.text_field_embedder.token_embedders.tokens.embedding_dim", "wide", r"'able'.*(embedding_dim|wide)"),
        ("dataset_reader.type", "text_clasification_json", r"'able'.*[Dd]id you mean 'text_classification_json'"),
        ("dataset_reader.lowercase", True, r"'able'.*lowercase"),
        (
            "data_loader.batchsize",
            8,
            r"'able'.*'batchsize' is not a key of MultiProcessDataLoader",
        ),
        (
            "data_loader.batches_per_epoch",
            1,
            r"able.jsonnet: 'data_loader.batches_per_epoch' is 1.*Give a 'validation_",
        ),
        ("trainer.num_epoch", 8, r"'able'.*'num_epoch' is not a key of 'trainer'. Did you mean 'num_epochs'"),
        ("trainer.optimizer.type", "adamm", r"'able'.*'adamm'.*[Dd]id you mean 'adam'"),
        ("trainer.optimizer.rate", 0.1, r"'able'.*rate"),
        (
            "trainer.validation_metric",
            "-accuracy",
            r"able.jsonnet: .* is \"-accuracy\", so less of 'accuracy' is better",
        ),
        ("trainer.cuda_device", [-1, -1], r"'able': 'trainer.cuda_device' is \[-1, -1\], but it must be one number"),
        (
            "trainer.cuda_device",
            999,
            r"'able': 'trainer.cuda_device' is 999, .*take the key out to train on what AllenNLP",
        ),
        ("trainer.validation_metric", "+f1", r"'able'.*'trainer.validation_metric' is '\+f1'.*It reports: accuracy"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_bad_configs(candidates: List[str], call: Any, run: Path, key: str, value: Any, message: str) -> None:
    path = Path(candidates[0])
    config = json.loads(path.read_text())
    *above, last = key.split(".")
    inner = config
    for name in above:
        inner = inner[name]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    path.write_text(json.dumps(config))
    assert_refused(call(*candidates, "-s", run, "--metric", "accuracy"), message, run)


def test_only_a_training_part(write_config: Callable[..., Path], call: Any, run: Path) -> None:
    parts = {"validation_data_path": None, "test_data_path": None}
    result = call(write_config("one", parts), write_config("two"), "-s", run, "--metric", "accuracy")
    assert_refused(result, r"one.jsonnet: the config names neither 'validation_data_path' nor 'test_data_path'", run)


@pytest.mark.parametrize(
    ("one", "other", "remedy"),
    [("validation", "test", "one of them"), ("train", "test", "'test_data_path'")],
)
def test_one_file_as_two_parts(
    write_config: Callable[..., Path], reviews: Path, call: Any, run: Path, one: str, other: str, remedy: str
) -> None:
    two = write_config("two")
    twice = write_config("twice", {f"{other}_data_path": str(reviews / f"{one}.jsonl")})
    keys = rf"twice.jsonnet: '{one}_data_path' and '{other}_data_path'"
    result = call(two, twice, "-s", run, "--metric", "accuracy")
    assert_refused(result, rf"{keys} are the same data, \S+{one}.jsonl.*Leave {remedy} out", run)
    (reviews / f"{other}.jsonl").write_bytes((reviews / f"{one}.jsonl").read_bytes())
    assert_refused(call(two, "b=" + str(two), "-s", run, "--metric", "accuracy"), r"have equal contents", run)


def test_one_label_only(candidates: List[str], reviews: Path, call: Any, run: Path) -> None:
    for part in ("train", "validation", "test"):
        path = reviews / f"{part}.jsonl"
        path.write_text(path.read_text().replace('"bad"', '"good"'))
    message = r"'able'.*all 72 instances of .*train.jsonl.* have the label 'good', so there is nothing to learn"
    assert_refused(call(*candidates, "-s", run, "--metric", "accuracy"), message, run)


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
    """Two candidates over `train.xml` and `test.xml`, both of them good, and `vectors.txt`, which one reads."""
    (tmp_path / "train.xml").write_text(GOOD)
    (tmp_path / "test.xml").write_text(sentences(8))
    (tmp_path / "vectors.txt").write_text("soup 1 2 3\nfine 2 3 4\ncold 4 5 6\n")
    config = {
        "dataset_reader": {"type": "semeval_tdsa", "inputs": ["text"]},
        "train_data_path": str(tmp_path / "train.xml"),
        "test_data_path": str(tmp_path / "test.xml"),
        "model": {
            "type": "target_lstm",
            "text_field_embedder": {
                "token_embedders": {
                    "tokens": {
                        "type": "embedding",
                        "embedding_dim": 3,
                        "pretrained_file": str(tmp_path / "vectors.txt"),
                    }
                }
            },
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
    ("change", "message"),
    [
        (lambda good: "", r"train.xml is empty; a SemEval-2014 XML file starts with <sentences>"),
        (lambda good: good[: len(good) // 2], r"train.xml, line \d+.*is not well-formed XML"),
        (lambda good: good.replace("the soup is fine", "the soup was fine \xe9", 1), r"train.xml, line 2.*well-formed"),
        (lambda good: '<?xml version="1.0" encoding="martian"?>' + good, r"train.xml.*unknown encoding"),
        (lambda good: good.replace('from="4"', 'from="3"', 1), r'train.xml, line 3, sentence "0": characters 3 to 8'),
        (lambda good: good.replace('to="8"', 'to="80"', 1), r"line 3, .*must lie within the 16 characters.*to=80"),
        (lambda good: good.replace('from="4"', 'from="four"', 1), r'"from" must be a whole number but is "four"'),
        (lambda good: good.replace('from="4" ', "", 1), r'<aspectTerm> lacks the attribute "from"'),
        (lambda good: good.replace("positive", "joyful", 1), r'polarity must be one of .* but is "joyful"'),
        (
            lambda good: good.replace("<text>the soup is fine</text>", "", 1),
            r'sentence "0": <sentence> lacks its <text>',
        ),
        (lambda good: good.replace('<sentence id="0">', "<sentence>", 1), r'<sentence> lacks the attribute "id"'),
        (lambda good: good.replace("sentences>", "reviews>"), r"root element must be <sentences> but is <reviews>"),
        (lambda good: "<sentences></sentences>", r"train.xml has no aspect term to learn from"),
        (lambda good: "{}", r"train.xml, line 1.*is not well-formed XML"),
        (
            lambda good: good.replace("</aspectTerms>", CROWD + "</aspectTerms>", 1),
            r"the group sentence_id = '0' has 11 instances, more than the validation part, which is to have 8",
        ),
    ],
    ids=range(15),
)
def test_bad_xml(tdsa: List[str], call: Any, run: Path, change: Callable[[str], str], message: str) -> None:
    (run.parent / "train.xml").write_bytes(change(GOOD).encode("latin-1"))
    assert_refused(call(*tdsa, "-s", run), r"(?s)candidate 'one' \(.*one.jsonnet\): .*" + message, run)


def test_one_polarity_only(tdsa: List[str], call: Any, run: Path) -> None:
    for name in ("train.xml", "test.xml"):
        path = run.parent / name
        path.write_text(path.read_text().replace("negative", "positive"))
    assert_refused(call(*tdsa, "-s", run), r"'one'.*all 32 instances of .*train.xml.* have the label 'positive'", run)


def test_groups_of_a_resplit_reader(tdsa: List[str], call: Any, run: Path) -> None:
    one = Path(tdsa[0])
    config = json.loads(one.read_text())
    paths = {part: config.pop(f"{part}_data_path") for part in ("train", "test")}
    reader = {"type": "resplit", "reader": config["dataset_reader"], "paths": paths, "group_by": "text"}
    one.write_text(json.dumps({**config, "dataset_reader": reader}))
    assert_refused(call(*tdsa, "-s", run), r"'one'.*the group text = 'the soup is fine' has 16 instances", run)
    result = call(*tdsa, "-s", run, "--group-by", "sentence_id")
    assert_refused(result, r"one.jsonnet: 'dataset_reader.group_by' is 'text' but --group-by is 'sentence_id'", run)
    reader["group_by"], reader["max_instances"] = None, 9
    one.write_text(json.dumps({**config, "dataset_reader": reader}))
    assert_refused(call(*tdsa, "-s", run), r"one.jsonnet: 'dataset_reader.max_instances' would have no effect", run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"pretrained_file' is '.*vectors.txt', but there is no such file"),
        ("", r"vectors.txt: the file of word vectors is empty"),
        ("soup 1 2\nfine 2 3\ncold 4 5\n", r"'embedding_dim' is 3 but the rows of .*vectors.txt have 2 numbers"),
        ("soup 1 2 3\nfine 2 3\ncold 4 5 6\n", r"vectors.txt: the row of 'fine' has 2 numbers but the others have 3"),
        ("soup 1 2 3\nfine 2 x 4\ncold 4 5 6\n", r"vectors.txt: in the row of 'fine', .*'x'.*Fix or delete it"),
        ("Soup 1 2 3\nFINE 2 3 4\n", r"vectors.txt: none of its 2 rows is for a word of the data"),
        (b"\x80\x81\x82 \xff\xfe\n" * 9, r"vectors.txt: cannot be read as a file of word vectors"),
        (b"PK\x03\x04 no archive", r"vectors.txt: "),
    ],
    ids=range(8),
)
def test_bad_vectors_of_every_kind(tdsa: List[str], call: Any, run: Path, content: Any, message: str) -> None:
    path = run.parent / "vectors.txt"
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_refused(call(*tdsa, "-s", run), r"'one'.*" + message, run)
