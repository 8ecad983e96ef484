"""Going on with a selection: with other candidates, in another place, after an interruption at the worst moments."""

import re
import shutil
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, List
from unittest.mock import Mock

import psutil
import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.selection.store import RunStore, reading
from tests.commands.conftest import POOR, Selections
from tests.commands.fiesta_select_test import start
from tests.conftest import still_runs, until
from tests.run_files import entry_of, num_finished, rows_of, scores_of, summary_of
from tests.warm import Command


@pytest.fixture
def third(write_program: Callable[..., str]) -> str:
    return write_program("third", POOR)


def test_candidates_may_be_added_and_removed_and_taken_back(
    selections: Selections, candidates: List[str], third: str, run: Path
) -> None:
    selections.begin("--strategy", "non_adaptive_fb", "--seed", 5, "--budget", 4)
    before = (run / "evaluations.csv").read_bytes()
    output = selections.refused(*candidates, third, "--recover")
    # With 5, one evaluation of each of three: the old ones have two each, and there is room for one more.
    assert "budget must be at least 5" in output and "4 runs so far" in output and "Give a larger --budget" in output
    assert (run / "evaluations.csv").read_bytes() == before
    selections.resume(*candidates, third, "--budget", 6)
    assert entry_of(run, "third")["num_evaluations"] == 2

    of_blind, given = {row for row in scores_of(run) if row[0] == "blind"}, [candidates[0], third]
    assert "Add --recover" in selections.refused(*given, "--allow-removed")
    output = selections.refused(*given, "--recover")
    assert re.search(r"candidate 'blind' \(.*blind.jsonnet\) belongs to the selection .* --allow-removed", output)
    output = selections.resume(*given, "--allow-removed", "--budget", 9)
    assert "removed: blind: it was not given any more (--allow-removed)" in output
    blind = entry_of(run, "blind")
    assert (blind["withdrawn"], blind["num_evaluations"], blind["prob_best"]) == (True, 2, None)
    assert {row for row in scores_of(run) if row[0] == "blind"} == of_blind
    assert [entry_of(run, name)["num_evaluations"] for name in ("able", "third")] == [3, 3]

    Path(candidates[1]).unlink()  # not read while it is withdrawn
    selections.resume("--budget", 9)
    assert entry_of(run, "blind")["withdrawn"]
    Path(candidates[1]).write_text(Path(third).read_text())  # the same config as before
    selections.resume(*candidates, third, "--budget", 9)
    blind = entry_of(run, "blind")
    assert (blind["withdrawn"], blind["withdrawn_because"], blind["num_evaluations"]) == (False, None, 3)


def test_a_directory_that_was_moved_goes_on_where_it_is(
    write_config: Callable[..., Path], reviews: Path, call: Any, run: Path, tmp_path: Path
) -> None:
    (reviews / "vectors.txt").write_text("food 1 2 3 4\nand 3 4 5 6\ngreat 0 1 0 1\n")
    tokens = {"type": "embedding", "embedding_dim": 4, "pretrained_file": str(reviews / "vectors.txt")}
    model = {"text_field_embedder": {"token_embedders": {"tokens": tokens}}}
    configs = [write_config(name, **model) for name in ("one", "two")]
    options = ["--metric", "accuracy", "--strategy", "non_adaptive_fb", "--seed", 5]
    assert call(*configs, "-s", run, *options, "--budget", 4)[0] == 0
    store = RunStore(RunDirectory(run), create=False)
    store._database.execute("UPDATE evaluations SET status = 'pending', finished_order = NULL WHERE replicate = 1")
    store.close()
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(run, moved)
    outcomes = {path: path.stat().st_mtime_ns for path in moved.glob("evaluations/*/outcome.json")}
    status, output = call("-s", moved, "--recover", "--budget", 6)
    assert status == 0, output
    assert not run.exists()
    assert len(scores_of(moved)) == 6
    with reading(RunDirectory(moved)) as store:
        assert store.meta().changes == ({"option": "budget", "before": 4, "now": 6, "num_done": 2},)
    assert {path: path.stat().st_mtime_ns for path in outcomes} == outcomes, "what had finished is not trained again"
    call(*configs, "-s", run, *options, "--budget", 6)
    assert scores_of(moved) == scores_of(run)


def test_two_readers_have_the_same_split_after_a_kill(
    write_config: Callable[..., Path], call: Any, run: Path, tmp_path: Path
) -> None:
    reader = {"type": "reviews_with_ids"}
    readers = {"dataset_reader": {**reader, "copies": 3}, "validation_dataset_reader": reader}
    configs = [write_config("augmented", readers), write_config("plain", {"dataset_reader": reader})]
    settings = tmp_path / "settings.jsonnet"
    settings.write_text("{ include_package: ['tests.trainings.own_readers'], strategy: 'non_adaptive_fb', budget: 4 }")
    status, output = call(*configs, "-s", run, "--metric", "accuracy", "--group-by", "id", "--config", settings)
    assert status == 0, output
    before, config = scores_of(run), (run / "evaluations" / "augmented-1" / "config.json").read_text()
    with closing(RunStore(RunDirectory(run), create=False)) as store:
        # As after a kill: that of plain had finished and was not recorded, that of augmented had not finished.
        store._database.execute("UPDATE evaluations SET status = 'pending', finished_order = NULL WHERE replicate = 1")
    shutil.rmtree(run / "evaluations" / "augmented-1")
    status, output = call("-s", run, "--recover")
    assert status == 0, output
    assert scores_of(run) == before
    assert (run / "evaluations" / "augmented-1" / "config.json").read_text() == config


def test_a_clock_that_jumps_back_does_no_harm(
    selections_of_trained: Selections, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker's clock runs a day earlier than that of the one before."""
    package = tmp_path / "jumping"
    package.mkdir()
    (package / "__init__.py").write_text(
        f"""
import datetime, time
from pathlib import Path

counter = Path({str(tmp_path)!r}) / "jumps"
jumps = int(counter.read_text()) if counter.exists() else 1
counter.write_text(str(jumps + 1))
true = time.time
time.time = lambda: true() - 86400 * jumps

import fiesta_allennlp.trainings.candidate_run as training

class Jumped(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) - datetime.timedelta(days=jumps)

training.datetime = Jumped
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = tmp_path / "settings.jsonnet"
    config.write_text("{ budget: 4, strategy: 'non_adaptive_fb', include_package: ['jumping'] }")
    selections_of_trained.begin("--config", config)
    selections_of_trained.resume("--budget", 6)
    rows = rows_of(run)
    assert [row["candidate"] for row in rows] == ["able", "blind"] * 3
    assert [row["replicate"] for row in rows] == list("001122")
    assert [row["started_at"] for row in rows] == sorted((row["started_at"] for row in rows), reverse=True)
    assert all(0 < float(row["seconds"]) < 3600 for row in rows)


def test_a_second_selection_is_kept_out_of_a_directory_in_use(
    selections: Selections, candidates: List[str], run: Path
) -> None:
    process = start(*candidates, "-s", run, "--metric", "accuracy", "--strategy", "non_adaptive_fb", "--budget", "400")
    until(lambda: num_finished(run) >= 1 or process.poll() is not None, seconds=120)
    for options in ([], ["--recover"], ["--force"]):
        output = selections.refused(*candidates, "--metric", "accuracy", *options)
        assert "another selection is running in this directory" in output
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 130
    selections.resume("--budget", 2)


def children_of(process: Command) -> List[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_selection_that_is_stopped_during_the_checks_begins_again_without_force(
    selections_of_trained: Selections, trained: List[str], run: Path, how: signal.Signals
) -> None:
    process = start(*trained, "-s", run, "--metric", "accuracy", "--budget", "2", "--seed", "5")
    until(lambda: (run / "checks").exists() or process.poll() is not None, seconds=120)
    workers = children_of(process)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    until(lambda: not any(map(still_runs, workers)))
    if how == signal.SIGINT:
        assert process.returncode == 130 and "Traceback" not in output
        assert "Interrupted before the first run. Start it again." in output
        assert not RunDirectory(run).store.exists()
    else:
        assert "the selection was stopped before its first run" in selections_of_trained.refused("--recover")
    selections_of_trained.begin("--budget", 2, "--seed", 6)
    assert summary_of(run)["seed"] == "6"


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "nothing that finished is lost. Go on with: allennlp fiesta-select -s"),
        (OSError(28, "No space left on device"), 2, "the results cannot be written"),
    ],
)
def test_a_last_write_that_fails_costs_nothing(
    selections: Selections, call: Any, run: Path, monkeypatch: pytest.MonkeyPatch, raised: Any, status: int, said: str
) -> None:
    options = ["--metric", "accuracy", "--strategy", "non_adaptive_fb", "--budget", 4]
    with monkeypatch.context() as patched:
        patched.setattr("fiesta_allennlp.selection.session.write_json", Mock(side_effect=raised))
        found, output = call(*selections.candidates, "-s", run, *options)
    assert found == status and said in output and "--recover" in output
    trained = {path: path.stat().st_mtime_ns for path in run.glob("evaluations/*/outcome.json")}
    assert len(trained) == 4
    selections.resume()
    assert summary_of(run)["num_evaluations"] == len(scores_of(run)) == 4
    assert {path: path.stat().st_mtime_ns for path in trained} == trained


def test_two_signals_in_one_moment_quit_and_leave_no_worker(
    selections_of_trained: Selections, trained: List[str], run: Path
) -> None:
    process = start(*trained, "-s", run, "--metric", "accuracy", "--strategy", "non_adaptive_fb", "--budget", "40")
    until(lambda: num_finished(run) >= 1 or process.poll() is not None, seconds=120)
    workers = children_of(process)
    assert workers
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() < begin + 60:
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    until(lambda: not any(map(still_runs, workers)))
    selections_of_trained.resume("--budget", 8)  # the store is whole


def test_edited_code_is_told_and_written_down(
    selections: Selections, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code_of_mine.py"
    code.write_text("SCALE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = tmp_path / "settings.jsonnet"
    config.write_text("{ budget: 4, strategy: 'non_adaptive_fb', include_package: ['code_of_mine'] }")
    assert "Note:" not in selections.begin("--config", config)
    assert "Note:" not in selections.resume()
    code.write_text("SCALE = 2\n")
    assert "the code of code_of_mine has changed" in selections.resume()
    assert "Note:" not in selections.resume()
    with reading(RunDirectory(run)) as store:
        digests = [found["code"]["code_of_mine"] for found in store.meta().environments]
    assert len(digests) == 2 and digests[0] != digests[1]
