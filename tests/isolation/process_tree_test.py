"""With real programs, in a process of their own that adopts what they leave."""

import os
import subprocess
import sys

import psutil
import pytest

from tests.conftest import REPOSITORY, until

SCRIPT = """
import os, subprocess
from fiesta_allennlp.isolation.process_tree import become_root, end_below
become_root()
command = (
    "env -i setsid sh -c 'echo up; exec sleep 600' &"
    "env -i setsid sh -c 'env -i setsid sh -c \\"echo up; exec sleep 600\\" & echo up; exec sleep 600' &"
)
started = subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE)
for _ in range(3):  # before that, the children have the environment of their parent, with its mark
    started.stdout.readline()
end_below(os.getpid())
while True:  # only those that have ended are left, and none of them is running
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        break
print("nothing is left")
"""


QUICK = """
import os
from fiesta_allennlp.isolation import process_tree
process_tree.time = None  # it does not wait
process_tree.become_root()
process_tree.end_below(os.getpid())
print("nothing is left")
"""


@pytest.mark.parametrize("script", [SCRIPT, QUICK], ids=["ended", "older"])
def test_a_child_with_a_session_and_an_environment_of_its_own_is_ended_and_an_older_one_is_not_waited_for(
    script: str,
) -> None:
    with subprocess.Popen(["env", "-i", "sleep", "600"]) as older:
        until(lambda: psutil.Process(older.pid).name() == "sleep")
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert older.poll() is None
        older.kill()
    assert done.stdout == "nothing is left\n", done.stderr
