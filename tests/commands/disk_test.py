"""A disk that fills up in the middle of a run, and one that cannot be written to: real small filesystems."""

import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator

import pytest

from tests.commands.conftest import GOOD, POOR, Selections, history_of, scores_by_seed
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


def test_a_full_disk_is_told_and_costs_nothing_that_finished(selections: Selections, small_disk: Path) -> None:
    write = 'head -c 300000 /dev/zero > "$5/large"'
    for name, script in (("able", GOOD), ("blind", POOR)):
        selections.write(name, f"{write}; {script}")
    on_disk = replace(selections, run=small_disk / "run")
    on_disk.begin(*OPTIONS, "--budget", 2)
    finished = scores_of(on_disk.run)
    filler = fill(small_disk, leave=700_000)
    status, output = on_disk.call("-s", on_disk.run, "--recover", "--budget", 8)
    assert status == 2, output
    assert "disk" in output and "--recover" in output and "Traceback" not in output and "Logging error" not in output
    filler.unlink()
    assert "error: the disk is full: " in selections.call.command("status").done(on_disk.run)
    history = history_of(on_disk.run)
    assert history.failures == (), "a full disk is no candidate's failure"
    assert finished <= {(e.request.candidate, str(e.request.replicate), str(e.score)) for e in history.evaluations}
    on_disk.resume("--budget", 8)
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
