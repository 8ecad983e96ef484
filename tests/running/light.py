"""Runs for tests of jobs: they load neither torch nor AllenNLP, which would take each job seconds of processor time."""

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import DataChangedError, ProgramError, ProgramKilledError, ReaderError
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.running.executor import Evaluator
from tests.warm import Command

PACKAGES = (__name__,)
"""Registers the evaluators below in a worker."""

SELECTION: Dict[str, Any] = {"metric": "accuracy", "strategy": "non_adaptive_fb", "budget": 6, "seed": 77}
"""The options of a whole selection, whose scores are the same wherever it runs."""


def write_programs(directory: Path) -> List[str]:
    """Write two candidates whose score follows from their seeds. Return their paths."""
    paths = [directory / f"{name}.json" for name in ("one", "two")]
    for path in paths:
        script = f"sleep 0.3; echo '{{\"accuracy\": '0.$(($1 % 1000))$(($2 % 1000))'}}'  # {path.stem}"
        command = ["sh", "-c", script, "sh", "{seed}", "{split_seed}"]
        path.write_text(json.dumps({"type": "program", "command": command, "metrics": "stdout"}))
    return [str(path) for path in paths]


def wanted_scores() -> Set[Tuple[str, str, str]]:
    """Return candidate, replicate and score of each run of the whole selection."""
    wanted = set()
    for name, replicate in itertools.product(("one", "two"), range(SELECTION["budget"] // 2)):
        made = make_request(SELECTION["seed"], name, replicate, shared_splits=True)
        score = float(f"0.{made.random_seed % 1000}{made.split_seed % 1000}")
        wanted.add((name, str(replicate), str(score)))
    return wanted


def start_selection(directory: Path, candidates: Sequence[str], *options: str, within: Sequence[str] = ()) -> Any:
    """Start the command of a selection with the options `SELECTION`, alone or within another command."""
    told = [word for name, value in SELECTION.items() for word in (f"--{name}", str(value))]
    command = ["-m", "fiesta_allennlp", "select", *candidates, "-s", str(directory), *told, *options]
    if within:
        return subprocess.Popen([*within, sys.executable, *command], stdout=subprocess.DEVNULL)
    return Command(command)


RAISED: Dict[str, BaseException] = {
    "raise": ValueError("no such\nluck"),
    "lack": OSError(24, "Too many open files"),
    "find a directory": IsADirectoryError(21, "Is a directory"),
    "lack in a program": ProgramError(
        "the program ended with exit status 1. The end of its output: CUDA out of memory"
    ),
    "lose a program": ProgramKilledError("the program was killed by signal 9"),
    "find other data": DataChangedError("train.jsonl is gone"),
    "exit in order": SystemExit(0),
}


@Evaluator.register("light")
@dataclass(frozen=True)
class Light(Evaluator):
    """Leaves its process id in its directory, then does what it is told; the score is its replicate, unless that gives
    another. `place` is one that all can see."""

    what: str
    place: str = ""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        print("this is the log of", request.name, flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "pid").write_text(str(os.getpid()))
        if self.what in RAISED:
            raise RAISED[self.what]
        score = getattr(self, f"_{self.what.replace(' ', '_')}")(request, directory)
        return Evaluation(request, float(request.replicate) if score is None else score, "m")

    def _score(self, *_: Any) -> None:
        """Do nothing else."""

    def _lack_in_a_reader(self, *_: Any) -> None:
        raise ReaderError("a.txt, after 0 instances") from RuntimeError("CUDA out of memory")

    def _fill_the_disk(self, *_: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        raise RuntimeError("what a library makes of it")

    def _die(self, *_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _exit(self, *_: Any) -> None:
        os._exit(3)

    def _hang(self, request: Request, directory: Path) -> None:
        """Hang with a child in a session of its own."""
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
        (directory / "child").write_text(str(child.pid))
        time.sleep(600)

    def _hang_on(self, request: Request, directory: Path) -> None:
        """Hang, and do not end on SIGTERM."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._hang(request, directory)

    def _leave_a_child(self, request: Request, directory: Path) -> None:
        child = subprocess.Popen(["sleep", "600"])
        apart = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (directory / "child").write_text(f"{child.pid} {apart.pid}")

    def _leave_a_child_and_exit(self, request: Request, directory: Path) -> None:
        self._leave_a_child(request, directory)
        os._exit(3)

    def _leave_a_child_and_hang(self, request: Request, directory: Path) -> None:
        self._leave_a_child(request, directory)
        time.sleep(600)

    def _terminate_a_fork(self, *_: Any) -> float:
        """End a child as AllenNLP ends its data workers, and give the signal that ended it."""
        child = os.fork()
        if not child:
            time.sleep(600)
        os.kill(child, signal.SIGTERM)
        return float(os.WTERMSIG(os.waitpid(child, 0)[1]))

    def _order(self, *_: Any) -> float:
        return float(hash("a text"))

    def _device(self, *_: Any) -> float:
        return float(os.environ["CUDA_VISIBLE_DEVICES"])

    def _wait(self, request: Request, directory: Path) -> None:
        """Wait until there is a file `go`."""
        (Path(self.place) / f"{request.name}.{os.getpid()}.{os.environ.get('SLURM_JOB_ID', '')}").touch()
        while not (Path(self.place) / "go").exists():
            time.sleep(0.05)

    def _stay_light(self, *_: Any) -> None:
        assert not {"torch", "allennlp", "transformers"} & set(sys.modules)

    def _take_memory(self, *_: Any) -> None:
        taken = bytearray(600 * 2**20)
        taken[:: 2**12] = b"x" * len(taken[:: 2**12])
        time.sleep(600)


def request(replicate: int) -> Request:
    return Request("a", replicate, split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def started(place: Path) -> List[int]:
    """Return the processes of the runs that have begun to wait."""
    return [int(path.name.split(".")[1]) for path in place.glob("a-*.*.*")]
