"""With real programs, in a process of their own that adopts what they leave."""

import os
import subprocess
import sys

import psutil

from fiesta_allennlp.running import process_tree
from tests.conftest import REPOSITORY, until

SCRIPT = """
import os, subprocess
from fiesta_allennlp.running.process_tree import become_root, end_below
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


def test_children_with_sessions_and_environments_of_their_own_are_ended() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "nothing is left\n", done.stderr


def test_only_a_young_program_without_an_environment_may_be_starting() -> None:
    with subprocess.Popen(["env", "-i", "sleep", "600"]) as bare:
        process = psutil.Process(bare.pid)
        until(lambda: process.name() == "sleep")
        assert process_tree._environment(process) == {}
        assert process_tree._may_be_starting(process, process.create_time())
        assert not process_tree._may_be_starting(process, process.create_time() + 1), "it is older than the root"
        bare.kill()
