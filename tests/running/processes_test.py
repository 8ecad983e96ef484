"""With real processes that really die. The evaluators here stand for what a training can do to its process."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable, Optional

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ForeignError, StoreError
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.running.machine import origin_here
from fiesta_allennlp.running.processes import ProcessExecutor, num_workers, run_in_processes
from fiesta_allennlp.running.worker import Evaluator, WorkerSettings
from tests.conftest import PRELOADED, REPOSITORY, until
from tests.running.conftest import Build, failure_of, given, only_failure, pids_in, score_of, until_ended
from tests.running.light import PACKAGES, Light, is_running, request

Make = Callable[..., ProcessExecutor]


@pytest.fixture
def make(build: Build) -> Make:
    return partial(build, ProcessExecutor)


PARENT = """
import sys
from pathlib import Path
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.running.processes import ProcessExecutor
from tests.running.light import Light, request

executor = ProcessExecutor(RunDirectory(Path(sys.argv[1])), packages=("tests.running.light",))
executor.submit(Light(sys.argv[2]), request(0))
print(*(type(outcome).__name__ for outcome in executor.completed()))
executor.close()
"""


def parent_of(directory: RunDirectory, what: str) -> "subprocess.Popen[str]":
    """A process of its own that makes a run: the fork server of this one may have loaded AllenNLP for another test."""
    command = [sys.executable, "-c", PARENT, str(directory.root), what]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def test_a_worker_loads_neither_torch_nor_allennlp_unless_told(directory: RunDirectory) -> None:
    assert parent_of(directory, "stay light").communicate() == ("Evaluation\n", None)


def test_a_failure_has_its_reason_and_its_log_and_no_attempt_leaves_anything_to_the_next(
    make: Make, directory: RunDirectory
) -> None:
    stale = directory.evaluation("a-0") / "best.th"
    stale.parent.mkdir(parents=True)
    stale.write_text("left by an attempt that was killed")
    failure = failure_of(make(), Light("raise"))
    assert failure.kind == "error" and re.fullmatch(r"ValueError: no such luck \(.*light.py, line \d+\)", failure.error)
    assert failure.log_path == "failures/a-0.1.log" and not stale.exists()
    log = (directory.root / failure.log_path).read_text()
    assert "log of a-0" in log and "Traceback" in log


@pytest.mark.parametrize(
    ("what", "kind", "reason"),
    [
        ("exit in order", "error", "SystemExit"),
        ("lack", "machine", "Too many open files"),
        ("find a directory", "error", "Is a directory"),
        ("lack in a reader", "machine", "after 0 instances"),
        ("lack in a program", "machine", "CUDA out of memory"),
        ("lose a program", "killed", "signal 9"),
        ("die", "killed", "killed by signal 9"),
        ("exit", "killed", "exit status 3"),
    ],
)
def test_whatever_ends_a_run_is_a_failure(make: Make, what: str, kind: str, reason: str) -> None:
    failure = failure_of(make(), Light(what))
    assert failure.kind == kind and reason in failure.error
    assert failure.origin == origin_here(PACKAGES)


def test_outcomes_tell_the_device_that_made_them(make: Make) -> None:
    executor = make(workers=1, cuda_devices=["7"])
    whats = ("device", "raise", "die")
    assert [o.origin for o in given(executor, *whats).completed()] == [origin_here(PACKAGES, device="7")] * len(whats)
    outcomes = given(make(workers=2, cuda_devices=["4", "7"]), "device", "device").completed()
    assert {(o.origin.gpu, o.origin.is_only_machine) for o in outcomes} == {("4", False), ("7", False)}


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_lies_in_the_place_of_a_run_is_replaced(
    make: Make, directory: RunDirectory, tmp_path: Path, kind: str
) -> None:
    (victim := tmp_path / "victim").mkdir()
    (victim / "pid").write_text("mine")
    (place := directory.evaluation("a-0")).parent.mkdir(parents=True)
    place.symlink_to(victim) if kind == "link" else place.touch()
    assert score_of(make(), Light("score")) == 0
    assert place.is_dir() and not place.is_symlink()
    assert [path.name for path in victim.iterdir()] == ["pid"] and (victim / "pid").read_text() == "mine"


def test_a_run_that_has_no_place_ends_the_selection_in_one_line(make: Make, directory: RunDirectory) -> None:
    directory.root.mkdir()
    (directory.root / "evaluations").touch()
    with pytest.raises(StoreError, match="a-0 cannot be started.*Not a directory.*--recover"):
        given(make(), "score")


def test_a_run_goes_on_when_it_ends_a_fork_of_its_own(make: Make) -> None:
    assert score_of(make(), Light("terminate a fork")) == signal.SIGTERM


def test_out_of_time_ends_the_process_and_its_children(
    make: Make, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.running.processes.STOP_TIMEOUT_SECONDS", 0.5)
    failure = failure_of(make(time_limit=2), Light("hang on"))
    assert failure.kind == "timeout" and "--time-limit 2" in failure.error
    for name in ("pid", "child"):
        until_ended(pids_in(directory.evaluation("a-0") / name))


@pytest.mark.parametrize("what", ["leave a child", "leave a child and exit", "leave a child and hang"])
def test_what_a_training_left_running_ends_with_it(make: Make, directory: RunDirectory, what: str) -> None:
    """Also what is in a session of its own, where the training ends, dies or is ended."""
    executor = given(make(workers=2), what, "leave a child and hang")
    left = directory.evaluation("a-0") / "child"
    if what == "leave a child and hang":
        pids_in(left, 2)
        executor.abandon([request(0)])
    else:
        next(executor.completed())
    until_ended(pids_in(left, 2))
    assert all(map(is_running, pids_in(directory.evaluation("a-1") / "child", 2))), "of another training"


def test_work_goes_on_after_the_timeout_of_waiting_and_ends_on_closing(make: Make, directory: RunDirectory) -> None:
    executor = given(make(), "hang")
    (pid,) = pids_in(directory.evaluation("a-0") / "pid")
    assert list(executor.completed(timeout=0.1)) == [] and is_running(pid)
    executor.close()
    until_ended([pid])
    assert list(executor.completed()) == []
    executor.close()


def test_an_abandoned_evaluation_ends_with_its_children_and_frees_its_slot_and_device(
    make: Make, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.running.processes.STOP_TIMEOUT_SECONDS", 1.0)
    executor = given(make(workers=2, cuda_devices=["4", "7"]), "hang on", "hang", *["device"] * 3)
    assert len(executor.active_runs) == 2, "no more than workers"
    pids = [pid for name in ("pid", "child") for pid in pids_in(directory.evaluation("a-0") / name)]
    executor.abandon([request(0), request(3)])
    until_ended(pids)
    outcomes = [next(executor.completed()) for _ in range(2)]
    assert [(o.request.replicate, o.score) for o in outcomes if isinstance(o, Evaluation)] == [(2, 4), (4, 4)]
    assert all(map(is_running, pids_in(directory.evaluation("a-1") / "pid")))
    executor.abandon([request(1), request(9)])
    assert list(executor.completed()) == []


def test_workers_do_not_outlive_a_parent_that_is_killed(directory: RunDirectory) -> None:
    with parent_of(directory, "hang") as parent:
        pids = pids_in(directory.evaluation("a-0") / "pid")
        parent.kill()
    until_ended(pids)


def test_texts_have_one_order_in_all_processes(make: Make) -> None:
    score = score_of(make(), Light("order"))
    command = [sys.executable, "-c", "print(float(hash('a text')))"]
    fresh = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, check=True)
    assert score == float(fresh.stdout), "also in another server, on another day"


def test_the_device_with_the_fewest_workers_is_handed_out(make: Make) -> None:
    executor = make(workers=5, cuda_devices=["4", "7"])
    assert executor.gives_devices and not make().gives_devices
    calls = list(given(executor, *["device"] * 5).active_runs)
    assert [executor._device_by_run[call] for call in calls] == ["4", "7", "4", "7", "4"]
    for replicate in (4, 2, 0):  # all that had device 4, so that it is the idle one
        del executor.active_runs[calls[replicate]]
    given(executor, "device", "device", first=5)
    assert [executor._device_by_run[call] for call in executor.active_runs][-2:] == ["4", "4"]


@pytest.mark.parametrize(
    ("num_cores", "num_threads", "devices", "workers"),
    [(8, 1, None, 8), (8, 3, None, 2), (2, 4, None, 1), (8, 1, 2, 2)],
)
def test_auto_is_as_many_workers_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, num_cores: int, num_threads: int, devices: Optional[int], workers: int
) -> None:
    monkeypatch.setattr("fiesta_allennlp.running.processes.num_cores", lambda: num_cores)
    assert num_workers("auto", num_threads, devices) == workers


@Evaluator.register("loading")
@dataclass(frozen=True)
class Loading(Evaluator):
    """Reads batches with AllenNLP's own data workers, holds shared memory, and never ends."""

    path: str

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        import torch
        from allennlp.common import Params
        from allennlp.data import DatasetReader, Vocabulary
        from allennlp.data.data_loaders import MultiProcessDataLoader

        params = {"type": "text_classification_json", "tokenizer": {"type": "whitespace"}}
        reader = DatasetReader.from_params(Params(params))
        loader = MultiProcessDataLoader(reader, self.path, batch_size=2, num_workers=2, max_instances_in_memory=8)
        loader.index_with(Vocabulary({"labels": {"good": 1, "bad": 1}}))
        batches = iter(loader)
        batch = next(batches)
        shared = torch.zeros(1_000_000).share_memory_()
        children = [child.pid for child in multiprocessing.active_children()]
        maps = {line.split()[5] for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/shm/" in line}
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "part").write_text(json.dumps({"pids": [os.getpid(), *children], "shared": sorted(maps)}))
        os.replace(directory / "part", directory / "held")
        time.sleep(600)
        return Evaluation(request, float(len(batch) + len(shared)), "m")


def test_a_killed_worker_takes_allennlps_data_workers_and_its_memory_along(
    make: Make, directory: RunDirectory, reviews: Path
) -> None:
    pytest.importorskip("allennlp")
    executor = make(packages=(__name__, *PRELOADED))
    executor.submit(Loading(str(reviews / "train.jsonl")), request(0))
    held = directory.evaluation("a-0") / "held"
    until(held.exists)
    found = json.loads(held.read_text())
    worker, *data_workers = found["pids"]
    assert len(data_workers) == 2 and all(map(is_running, data_workers))
    assert found["shared"]
    os.kill(worker, signal.SIGKILL)
    assert only_failure(executor).kind == "killed"
    until_ended(found["pids"])
    assert not [path for path in found["shared"] if Path(path).exists()]


class UnknownToParentError(Exception):
    """Its constructor takes other arguments than those that a pickle keeps."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(f"{message}: {number}")


def double(number: int, counted: Path, max_deaths: int = 0) -> int:
    """Refuse a negative number, and be killed the first `max_deaths` times."""
    with counted.open("a+") as file:
        file.write("x")
    if len(counted.read_text()) <= max_deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    if number < 0:
        raise UnknownToParentError("negative", number)
    return 2 * number


def test_tasks_run_apart_keep_their_names_and_errors_and_begin_again_if_killed_but_not_for_ever(
    directory: RunDirectory, tmp_path: Path
) -> None:
    tasks = {"x": (4, 0), "y": (-1, 0), "killed twice": (6, 2), "always killed": (0, 100)}
    arguments = {name: (number, tmp_path / name, deaths) for name, (number, deaths) in tasks.items()}
    logs = {name: directory.check_log(name) for name in tasks}
    results = run_in_processes(double, arguments, logs=logs, settings=WorkerSettings(), max_parallel=2)
    assert list(results) == list(tasks)
    assert (results["x"], results["killed twice"]) == (8, 12)
    assert isinstance(results["y"], ForeignError)
    assert re.fullmatch(rf"UnknownToParentError: negative: -1 \({__file__}, line \d+\)", str(results["y"]))
    assert "negative" in logs["y"].read_text()
    assert "killed by signal 9" in str(results["always killed"])
    assert (tmp_path / "always killed").read_text() == "xxx"
