"""What is wrong is said in one message that names it, with exit status 2, before anything is trained."""

import json
import re
from pathlib import Path
from typing import Any, Callable, List

import pytest

from tests.commands.fiesta_select_test import call, candidates  # noqa: F401
from tests.conftest import classifier_config


def assert_refused(result: Any, message: str, run: Path) -> None:
    status, output = result
    assert status == 2, output
    assert re.search(message, output), output
    assert "Traceback" not in output
    assert len(output.splitlines()) < 12, "an error has to fit a screen"
    assert not (run / "evaluations").exists()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


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
            r"must be at least 6 \(2 candidates x 3 starting evaluations\).*5",
        ),
        (["--belief", "logit_student_t", "--margin", "0.1"], r"margin must be 0 with the belief"),
        (["--strategy", "tttts"], r"--strategy tttts.*tttts.*ttts"),
        (["--belief", "student"], r"--belief student"),
        (["--strategy", '{"type": "ttts", "betta": 0.5}'], r"betta"),
        (["--strategy", '{"type": "ttts", "beta": 2}'], r"beta"),
        (["--strategy", "{type: ttts}"], r"--strategy.*not valid JSON"),
        (["--strategy", "sequential_halving"], r"budget"),
        (["--strategy", "ttts", "--budget", "20"], r"budget"),
        (["--confidence", "0.9", "--budget", "20"], r"confidence"),
        (["--splits", "paired"], r"--splits must be one of shared, independent but got 'paired'"),
        (["--keep", "some"], r"--keep must be one of"),
        (["--executor", "slurm"], r"--executor must be one of processes, ray but got 'slurm'"),
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
        (["--confidence", "0.9", "--budget", "9"], r"--confidence and --budget exclude each other"),
        (["--workers", "0"], r"--workers must be above 0 but got 0"),
        (["--threads-per-worker", "0"], r"--threads-per-worker must be above 0"),
        (["--time-limit", "-3"], r"--time-limit must be above 0"),
        (["--max-failures", "0"], r"--max-failures must be at least 1"),
        (["--entropy", "-1"], r"--entropy must not be negative"),
        (["--metric", "macro_f1"], r"candidate 'able'.*'macro_f1'.*accuracy. Choose.*--metric"),
        (["--metric", "loss"], r"'loss'.*It reports: accuracy"),
        (["--group-by", "author"], r"--group-by author: an instance has no such metadata"),
        (["--overrides", "{bad"], r"--overrides .*able.jsonnet: cannot be read"),
        (["--overrides", '{"model.encoder": 3}'], r"able.*encoder"),
        (["--config", "nowhere.jsonnet"], r"--config nowhere.jsonnet: there is no such file"),
        (["--recover"], r"there is no selection to recover"),
        (["--recover", "--force"], r"--recover goes on with a selection and --force deletes it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(candidates: List[str], call: Any, run: Path, options: List[str], message: str) -> None:  # noqa: F811
    metric = [] if "--metric" in options else ["--metric", "accuracy"]
    assert_refused(call(*candidates, "-s", run, *metric, *options), message, run)


def test_no_directory(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    assert_refused(call(*candidates), r"-s is missing", run)


def test_one_candidate_none_and_two_of_one_name(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    assert_refused(call(candidates[0], "-s", run), r"at least 2 candidates but got 1: able", run)
    assert_refused(call("-s", run), r"at least 2 candidates but got 0: none", run)
    assert_refused(call(candidates[0], candidates[0], "-s", run), r"two candidates are named 'able'", run)


def test_a_second_selection_in_a_directory(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
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


def test_what_must_not_change_on_resuming(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    assert call(*candidates, "-s", run, "--metric", "accuracy", "--budget", 2)[0] == 0
    before = (run / "evaluations.csv").read_text()
    for options, message in [
        (["--metric", "f1"], '--metric was "accuracy" and is now "f1"'),
        (["--splits", "independent"], '--splits was "shared" and is now "independent"'),
        (["--overrides", '{"trainer.num_epochs": 1}'], "--overrides was"),
        ([candidates[0], "other=" + candidates[1]], r"candidate 'other' does not belong to the selection"),
        ([candidates[0], "blind=" + candidates[0]], r"candidate 'blind' .* is not what it was"),
    ]:
        status, output = call(*options, "-s", run, "--recover")
        assert status == 2, output
        assert re.search(message, output), output
    config = json.loads(Path(candidates[0]).read_text())
    config["trainer"]["num_epochs"] = 5
    Path(candidates[0]).write_text(json.dumps(config))
    status, output = call("-s", run, "--recover")
    assert status == 2
    assert "candidate 'able'" in output
    assert "'trainer.num_epochs' was 6 and is now 5" in output
    assert (run / "evaluations.csv").read_text() == before


def test_a_refused_resumption_changes_nothing(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    strategy = '{"type": "bts", "num_starts": 4}'
    options = [*candidates, "-s", run, "--metric", "accuracy", "--entropy", 4]
    assert call(*options, "--strategy", strategy, "--max-evaluations", 8, "--confidence", 0.999999999)[0] == 0
    for refused in (["--budget", "1"], [*candidates, "nowhere.jsonnet"], ["--workers", "0"]):
        assert call(*refused, "-s", run, "--recover")[0] == 2
    assert call("-s", run, "--recover", "--entropy", 4, "--confidence", 0.99999999, "--max-evaluations", 9)[0] == 0
    summary = json.loads((run / "selection.json").read_text())
    assert (summary["strategy"]["type"], summary["strategy"]["num_starts"]) == ("bts", 4)
    assert summary["num_evaluations"] in (8, 9)


def test_data_that_changed_are_noticed_on_resuming(
    candidates: List[str],  # noqa: F811
    reviews: Path,
    call: Any,  # noqa: F811
    run: Path,
) -> None:
    assert call(*candidates, "-s", run, "--metric", "accuracy", "--budget", 2)[0] == 0
    text = (reviews / "train.jsonl").read_text()
    (reviews / "train.jsonl").write_text(text.replace("food", "fare", 1))
    status, output = call("-s", run, "--recover", "--budget", 4)
    assert status == 2
    assert "candidate 'able'" in output
    assert "the contents of its data files have changed" in output


def test_a_mistake_beside_force_deletes_nothing(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    assert call(*candidates, "-s", run, "--metric", "accuracy", "--budget", 2)[0] == 0
    before = (run / "evaluations.csv").read_text()
    assert call(*candidates, "-s", run, "--metric", "acuracy", "--budget", 2, "--force")[0] == 2
    assert (run / "evaluations.csv").read_text() == before


def test_candidates_on_different_data(write_config: Callable[..., Path], reviews: Path, call: Any, run: Path) -> None:  # noqa: F811
    (reviews / "more.jsonl").write_text((reviews / "train.jsonl").read_text() * 2)
    one = write_config("one")
    other = write_config("other", {"train_data_path": str(reviews / "more.jsonl")})
    result = call(one, other, "-s", run, "--metric", "accuracy")
    assert_refused(result, r"candidates 'one' and 'other' do not have the same pool of data", run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"'able'.*(at least|ratios|no|empty)"),
        ('{"text": "x", "label": ', r"'able'.*JSON"),
        ('{"label": "good"}\n', r"'able'.*text"),
    ],
)
def test_bad_data(candidates: List[str], reviews: Path, call: Any, run: Path, content: str, message: str) -> None:  # noqa: F811
    (reviews / "train.jsonl").write_text(content)
    assert_refused(call(*candidates, "-s", run, "--metric", "accuracy"), message, run)


def test_a_missing_data_file(write_config: Callable[..., Path], call: Any, run: Path) -> None:  # noqa: F811
    one = write_config("one", {"train_data_path": "nowhere.jsonl"})
    assert_refused(call(one, write_config("two"), "-s", run, "--metric", "accuracy"), r"'one'.*nowhere.jsonl", run)


def test_bad_vectors(write_config: Callable[..., Path], reviews: Path, call: Any, run: Path) -> None:  # noqa: F811
    embedder = classifier_config(reviews)["model"]["text_field_embedder"]
    embedder["token_embedders"]["tokens"]["pretrained_file"] = str(reviews / "vectors.txt")
    configs = [write_config("one", text_field_embedder=embedder), write_config("two")]
    options = [*configs, "-s", run, "--metric", "accuracy"]
    assert_refused(call(*options), r"'one'.*vectors.txt: cannot be read as a file of word vectors", run)
    (reviews / "vectors.txt").write_text("food 1 2\nand 3 4\n")
    assert_refused(call(*options), r"'one'.*(dimension|embedding_dim)", run)


def test_debug_shows_the_traceback(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    status, output = call(*candidates, "-s", run, "--confidence", "2", "--debug")
    assert status == 2
    assert "Traceback" in output


def test_after_an_error_the_directory_can_be_used(candidates: List[str], call: Any, run: Path) -> None:  # noqa: F811
    assert call(*candidates, "-s", run)[0] == 2
    assert call(*candidates, "-s", run, "--metric", "accuracy", "--budget", 2)[0] == 0
