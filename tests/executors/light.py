"""Runs for tests of jobs: they load neither torch nor AllenNLP, which would take each job seconds of processor time."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.records import Evaluation, Request


@dataclass(frozen=True)
class Light(Evaluator):
    """Leaves files in its directory and in a place that all can see, then does what it is told; the score is its
    replicate."""

    what: str
    place: str = ""

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        path = directory / "outcome.json"
        return Evaluation(request, json.loads(path.read_text()), "m") if path.exists() else None

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        print("this is the log of", request.name, flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "pid").write_text(str(os.getpid()))
        getattr(self, f"_{self.what}", lambda *_: None)(request, directory)
        return Evaluation(request, float(request.replicate), "m")

    def _raise(self, *_: Any) -> None:
        raise ValueError("no such luck")

    def _lack(self, *_: Any) -> None:
        raise OSError(24, "Too many open files")

    def _die(self, *_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _hang(self, request: Request, directory: Path) -> None:
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
        (directory / "child").write_text(str(child.pid))
        time.sleep(600)

    def _see_a_gpu(self, *_: Any) -> None:
        assert os.environ["CUDA_VISIBLE_DEVICES"]

    def _wait(self, request: Request, directory: Path) -> None:
        """Until there is a file `go`."""
        (Path(self.place) / f"{request.name}.{os.getpid()}.{os.environ['SLURM_JOB_ID']}").touch()
        while not (Path(self.place) / "go").exists():
            time.sleep(0.05)

    def _wait_when_done(self, request: Request, directory: Path) -> None:
        (directory / "outcome.json").write_text("7.0")
        self._wait(request, directory)

    def _stay_light(self, *_: Any) -> None:
        assert not {"torch", "allennlp", "transformers"} & set(sys.modules)

    def _take_memory(self, *_: Any) -> None:
        taken = bytearray(600 * 2**20)
        taken[:: 2**12] = b"x" * len(taken[:: 2**12])
        time.sleep(600)
