"""The fork server is really killed, and its parent too."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, List

import psutil
import pytest

from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.running import fork_server
from fiesta_allennlp.running.processes import start_call
from tests.conftest import REPOSITORY, until
from tests.running.conftest import until_ended

LOADS_FOR_EVER = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "fiesta_allennlp.loads_for_ever":
            time.sleep(600)

sys.meta_path.insert(0, Slow())
"""

START = """
from fiesta_allennlp.running.fork_server import start_fork_server
from fiesta_allennlp.running.processes import start_call
start_call(start_fork_server(1, ["fiesta_allennlp.loads_for_ever"]), print)
"""


def test_a_server_that_still_loads_ends_with_its_parent_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(LOADS_FOR_EVER)
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(REPOSITORY)]))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    parent = subprocess.Popen([sys.executable, "-c", START])
    children: List[psutil.Process] = []

    def has_server() -> bool:
        children[:] = psutil.Process(parent.pid).children()
        return any("forkserver" in " ".join(child.cmdline()) for child in children)

    until(has_server)
    until(lambda: bool(list((tmp_path / "t").glob("pymp-*/listener-*"))))
    parent.kill()
    parent.wait()
    until_ended(child.pid for child in children)
    assert list((tmp_path / "t").iterdir()) == []


def test_a_killed_server_starts_again_and_the_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    server, kills = forkserver.ForkServer(), [True, True]  # not that of the other tests

    def connect_and_kill(descriptors: Any) -> Any:
        if not kills:
            return server.connect_to_new_process(descriptors)
        server.ensure_running()
        pid = server._forkserver_pid  # type: ignore[attr-defined]
        os.kill(pid, signal.SIGSTOP)  # so that it is killed before it has forked
        connected = server.connect_to_new_process(descriptors)
        os.kill(pid, signal.SIGKILL)
        kills.pop()
        return connected

    monkeypatch.setattr(forkserver, "connect_to_new_process", connect_and_kill)
    assert start_call(multiprocessing.get_context("forkserver"), os.getppid).result() > 0
    assert not kills
    server._stop()  # type: ignore[attr-defined]


def test_a_server_that_never_starts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: Any, **__: Any) -> Any:
        raise EOFError("unexpected EOF")

    monkeypatch.setattr("fiesta_allennlp.running.processes.RESTART_PAUSE_SECONDS", 0)
    monkeypatch.setattr(forkserver, "connect_to_new_process", end)
    with pytest.raises(FiestaError, match=r"died 5 times \(EOFError: unexpected EOF\).*--recover"):
        start_call(multiprocessing.get_context("forkserver"), print)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always looks in the current directory")
def test_workers_import_nothing_of_ours_from_the_current_directory(tmp_path: Path) -> None:
    """As `fiesta` does in a directory with a module called as one of Python, or with another copy of this package."""
    script, work = tmp_path / "script" / "start.py", tmp_path / "work"
    for package in (script.parent, work / "fiesta_allennlp"):
        package.mkdir(parents=True)
    (work / "random.py").write_text("raise ImportError('mine')")
    (work / "fiesta_allennlp" / "__init__.py").write_text("raise ImportError('another copy')")
    script.write_text(
        "import os\n"
        "from fiesta_allennlp.running.fork_server import start_fork_server\n"
        "from fiesta_allennlp.running.processes import start_call\n"
        "def found():\n"
        "    import random\n"
        "    return random.__file__, os.environ.get('PYTHONSAFEPATH')\n"
        "if __name__ == '__main__':\n"
        "    print(start_call(start_fork_server(1), found).result())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, script], cwd=work, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{(random.__file__, None)}\n"


def test_the_environment_of_the_calling_python_is_as_before() -> None:
    before = dict(os.environ)
    inside = start_call(fork_server.start_fork_server(3, ["fiesta_allennlp.core.texts"]), _environment).result()
    assert dict(os.environ) == before
    assert inside["FIESTA_SESSION"] and inside["FIESTA_PARENT"] == str(os.getpid())


def _environment() -> "dict[str, str]":
    return dict(os.environ)
