"""A second user of a project's group attacks a selection in the project's folder, which the group can write."""

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from tests.commands.conftest import Call

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as a second user")

OTHER = 65534
"""The number of the second user, who is the only member of the group."""

BEST = ("--metric", "accuracy", "--strategy", "non_adaptive_fb", "--budget", "4")


@pytest.fixture
def project() -> Iterator[Path]:
    """A folder as a group has it: its files belong to the group, which can write them."""
    mask = os.umask(0o002)
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, os.getuid(), OTHER)
        os.chmod(folder, 0o2775)
        yield Path(folder)
    os.umask(mask)


def as_other(attack: Callable[[], object]) -> bool:
    """Attack as the second user. Return whether nothing forbade it."""
    process = os.fork()
    if not process:
        status = 1
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            attack()
            status = 0
        except PermissionError:
            status = 2
        finally:
            os._exit(status)
    _, wait_status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(wait_status) != 1, "the attack itself is wrong"
    return os.waitstatus_to_exitcode(wait_status) == 0


def exchange_store(run: Path, marker: Path) -> None:
    """Replace the store by a copy that names a command."""
    copied = run / "copy"
    shutil.copyfile(run / "store.sqlite", copied)
    with closing(sqlite3.connect(copied)) as store, store:
        ((text,),) = store.execute("SELECT value FROM meta WHERE key = 'settings'")
        settings = {**json.loads(text), "notify": f"touch {marker}"}
        store.execute("UPDATE meta SET value = ? WHERE key = 'settings'", (json.dumps(settings),))
    os.replace(copied, run / "store.sqlite")


def test_a_command_in_a_store_that_others_can_write_is_not_run(
    project: Path, candidates: List[str], in_process: Callable[[str], Call], tmp_path: Path
) -> None:
    run, marker = project / "run", project / "marker"
    run.mkdir()  # by the user, so that the umask counts
    in_process("select").done(*candidates, "-s", run, *BEST)
    assert {path.stat().st_mode & 0o022 for path in (run / "evaluations").glob("**/")} == {0}
    assert as_other(lambda: exchange_store(run, marker))
    recover = ("-s", run, "--recover")
    in_process("select").refused(*recover, said=f"other users can write to {run}, .*: chmod go-w {run}$")
    assert "able" in in_process("status").done(run)
    run.chmod(0o755)
    in_process("select").refused(*recover, said=f"{run}/store.sqlite belongs to user ID {OTHER}")
    copied = shutil.copytree(run, tmp_path / "copy")
    (copied / "store.sqlite").chmod(0o644)
    in_process("select").done("-s", copied, "--recover", "--notify", "true")
    assert not marker.exists()
