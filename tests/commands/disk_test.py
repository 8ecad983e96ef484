"""A disk that fills up in the middle of a run, and one that cannot be written to: real small filesystems."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.isolation.run_queue import RunQueue
from tests.commands.conftest import GOOD, POOR, Call, Selections, history_of, scores_by_seed
from tests.conftest import until
from tests.run_files import scores_of

OPTIONS = ["--strategy", "non_adaptive_fb", "--seed", "5"]


def mount(*arguments: Any) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem in memory of 8 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    try:
        mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", path)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small filesystem needs root")
    yield path
    until(lambda: subprocess.run(["umount", str(path)], capture_output=True).returncode == 0)  # processes may still end


def fill(disk: Path, *, leave: int) -> Path:
    """Fill the disk up to so many bytes. Returns the file that does."""
    filler = disk / "filler"
    room = int(subprocess.run(["stat", "-f", "-c", "%a", disk], capture_output=True, check=True).stdout) * 4096
    with suppress(OSError):  # others may write meanwhile, and fill it too
        filler.write_bytes(bytes(room - leave))
    return filler


def test_a_full_disk_is_told_and_costs_nothing_that_finished(
    selections: Selections,
    write_program: Callable[..., str],
    small_disk: Path,
    in_process: Callable[[str], Call],
) -> None:
    write = 'head -c 300000 /dev/zero > "$5/large"'
    for name, script in (("able", GOOD), ("blind", POOR)):
        write_program(name, f"{write}; {script}")
    on_disk = replace(selections, run=small_disk / "run")
    on_disk.begin(*OPTIONS, "--budget", 2)
    finished = scores_of(on_disk.run)
    filler = fill(small_disk, leave=700_000)
    status, output = on_disk.call("-s", on_disk.run, "--recover", "--budget", 8)
    assert status == 2, output
    assert "disk" in output and "--recover" in output and "Traceback" not in output and "Logging error" not in output
    filler.unlink()
    assert "The last session ended with an error: the disk is full: " in in_process("status").done(on_disk.run)
    history = history_of(on_disk.run)
    assert history.failures == (), "a full disk is no candidate's failure"
    assert finished <= {(e.request.candidate, str(e.request.replicate), str(e.score)) for e in history.evaluations}
    on_disk.resume("--budget", 8)
    assert scores_of(on_disk.run) == scores_by_seed(5, 8)


def start(*words: Any) -> "subprocess.Popen[str]":
    """Start a command in a process of its own."""
    command = [sys.executable, "-m", "fiesta_allennlp", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def only_error(process: "subprocess.Popen[str]") -> str:
    """The one message of a command that ends with status 2."""
    output = process.communicate()[0]
    (error,) = [line for line in output.splitlines() if line.startswith("error: ")]
    assert process.returncode == 2 and "Traceback" not in output and "Exception" not in output, output
    return error


EXECUTORS = {"workers": {"seconds_of_silence": 10}, "slurm": {"runs_per_job": 9}}
"""The options of those whose runs wait in a queue on the disk."""


@pytest.mark.parametrize(
    ("executor", "moment"),
    [
        ("workers", "a run writes"),
        ("workers", "a run is queued"),
        pytest.param("slurm", "an outcome is left", marks=[pytest.mark.slurm, pytest.mark.xdist_group("slurm")]),
    ],
)
def test_a_full_disk_ends_command_and_workers_and_costs_nothing(
    selections: Selections,
    write_program: Callable[..., str],
    small_disk: Path,
    tmp_path: Path,
    in_process: Callable[[str], Call],
    request: pytest.FixtureRequest,
    executor: str,
    moment: str,
) -> None:
    if executor == "slurm":
        request.getfixturevalue("slurm")
    wait = f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    write = 'head -c 300000 /dev/zero > "$5/large" || exit 1' if moment == "a run writes" else "true"
    for name, script in (("able", GOOD), ("blind", POOR)):
        write_program(name, f"{wait}; {write}; {script}")
    on_disk = replace(selections, run=small_disk / "run")
    (tmp_path / "go").touch()
    on_disk.begin(*OPTIONS, "--budget", 2)
    (tmp_path / "go").unlink()
    (tmp_path / "begun").unlink()

    options = ("-s", on_disk.run, "--recover", "--budget", 8, "--workers", 2)
    command = start("select", *options, "--executor", json.dumps({"type": executor, **EXECUTORS[executor]}))
    directory = RunDirectory(on_disk.run)
    places = (directory.queue, directory.slurm)
    until(lambda: any(RunQueue.open_queues(place) for place in places))
    worker = start("worker", on_disk.run, "--idle", 0.1) if executor == "workers" else None
    until((tmp_path / "begun").exists)
    filler = fill(
        small_disk, leave={"a run writes": 400_000, "an outcome is left": 0, "a run is queued": 16_384}[moment]
    )
    (tmp_path / "go").touch()
    error = only_error(command)
    assert ("disk" in error or "No space left on device" in error) and "--recover" in error
    if worker is not None and moment != "a run is queued":
        assert "the disk is full" in (said := only_error(worker)) or "No space left on device" in said
    elif worker is not None:  # which may meet the full disk too, or end without a run
        said = "".join(filter(None, worker.communicate()))
        assert "Traceback" not in said and worker.returncode in (0, 2)

    filler.unlink()
    assert "The last session ended with an error: " in in_process("status").done(on_disk.run)
    assert history_of(on_disk.run).failures == (), "a full disk is no candidate's failure"
    on_disk.resume("--budget", 8, "--executor", "processes")
    assert scores_of(on_disk.run) == scores_by_seed(5, 8)


def test_a_read_only_disk(selections: Selections, small_disk: Path) -> None:
    on_disk, new = (replace(selections, run=small_disk / name) for name in ("run", "new"))
    on_disk.begin(*OPTIONS, "--budget", 2)
    mount("-o", "remount,ro", small_disk)
    for where, options in ((on_disk, ["--recover", "--budget", 4]), (new, [*new.candidates, "--metric", "accuracy"])):
        assert str(where.run) in where.refused(*options)
    assert len(scores_of(on_disk.run)) == 2
    mount("-o", "remount,rw", small_disk)
    on_disk.resume("--budget", 4)
