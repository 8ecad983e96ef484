"""A disk that fills up in the middle of a run, and one that cannot be written to: real small filesystems."""

import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.selection.store import RunStore
from tests.conftest import until
from tests.run_files import scores_of

OPTIONS = ["--metric", "accuracy", "--strategy", "non_adaptive_fb", "--seed", "5"]


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
    filler.write_bytes(bytes(room - leave))
    return filler


def test_a_full_disk_is_told_and_costs_nothing_that_finished(
    trained: List[str], call: Callable[..., Any], small_disk: Path, tmp_path: Path
) -> None:
    run = small_disk / "run"
    assert call(*trained, "-s", run, *OPTIONS, "--budget", 2)[0] == 0
    finished = scores_of(run)
    filler = fill(small_disk, leave=700_000)
    status, output = call("-s", run, "--recover", "--budget", 40)
    assert status == 2, output
    assert "disk" in output and "free some space" in output.lower() and "--recover" in output
    assert "Traceback" not in output and "Logging error" not in output
    filler.unlink()
    store = RunStore(RunDirectory(run), create=False)
    history = store.history(max_failures=3)
    store.close()
    assert history.failures == (), "a full disk is no candidate's failure"
    assert finished <= {(e.request.candidate, str(e.request.replicate), str(e.score)) for e in history.evaluations}
    status, output = call("-s", run, "--recover", "--budget", 12)
    assert status == 0, output
    budget = max(12, len(scores_of(run)))
    call(*trained, "-s", tmp_path / "whole", *OPTIONS, "--budget", budget)
    assert len(scores_of(run)) == budget
    assert scores_of(run) == scores_of(tmp_path / "whole")


def test_a_disk_that_is_full_at_the_start(trained: List[str], call: Callable[..., Any], small_disk: Path) -> None:
    filler = fill(small_disk, leave=0)
    status, output = call(*trained, "-s", small_disk / "run", *OPTIONS, "--budget", 4)
    assert status == 2, output
    assert "Traceback" not in output
    assert "full" in output or "No space left" in output
    filler.unlink()
    assert call(*trained, "-s", small_disk / "run", *OPTIONS, "--budget", 4)[0] == 0


def test_a_read_only_disk(trained: List[str], call: Callable[..., Any], small_disk: Path) -> None:
    run = small_disk / "run"
    assert call(*trained, "-s", run, *OPTIONS, "--budget", 2)[0] == 0
    mount("-o", "remount,ro", small_disk)
    for where, options in [
        (run, ["--recover", "--budget", 4]),
        (small_disk / "new", [*trained, *OPTIONS, "--budget", 2]),
    ]:
        status, output = call("-s", where, *options)
        assert status == 2, output
        assert f"{where}: cannot be written to" in output
        assert "Give another directory with -s" in output
    assert len(scores_of(run)) == 2
    mount("-o", "remount,rw", small_disk)
    assert call("-s", run, "--recover", "--budget", 4)[0] == 0
