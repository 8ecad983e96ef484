"""What the tests of the commands share: two candidates, and selections of them in one directory."""

import argparse
import json
import re
import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Callable, List, Set, Tuple

import pytest

from fiesta_allennlp.commands import add_command
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selecting.store import open_for_reading
from tests.golden import make_selection
from tests.programs import program_config

GOOD = 'echo "{\\"accuracy\\": 0.9$4}"'
"""Scores a little above 0.9, by the seed."""
POOR = 'echo "{\\"accuracy\\": 0.1$4}"'
EQUALLY = ("--strategy", "non_adaptive_fb")
"""Each candidate has as many runs as the others."""
BLIND = {"trainer": {"optimizer": {"type": "sgd", "lr": 1e-9}, "num_epochs": 2, "cuda_device": -1}}
"""Learns nothing, so its accuracy is about a half."""


@pytest.fixture
def trained(write_config: Callable[..., Path]) -> List[str]:
    """AllenNLP configs: one that learns the task well and one that does not learn."""
    pytest.importorskip("allennlp")
    able = {"trainer": {"optimizer": {"type": "adam", "lr": 0.1}, "num_epochs": 6, "cuda_device": -1}}
    return [str(write_config("able", able)), str(write_config("blind", BLIND))]


@pytest.fixture
def write_program(reviews: Path) -> Callable[..., str]:
    """Writes a program over the reviews as `NAME.jsonnet`, beside them."""

    def write(name: str, script: str, **changes: Any) -> str:
        path = reviews / f"{name}.jsonnet"
        path.write_text(json.dumps(program_config(reviews, script, **changes)))
        return str(path)

    return write


@pytest.fixture
def candidates(write_program: Callable[..., str]) -> List[str]:
    """Programs that take no time: one that is good and one that is poor, with scores that the seed decides."""
    return [write_program("able", GOOD), write_program("blind", POOR)]


@dataclass(frozen=True)
class Call:
    """A command, which is run in this process with arguments: by itself for its exit status and all it wrote."""

    name: str
    capsys: pytest.CaptureFixture

    def __call__(self, *arguments: Any) -> Tuple[int, str]:
        commands = argparse.ArgumentParser().add_subparsers()
        parser = add_command(commands, self.name, command_name=f"fiesta-{self.name}", program="allennlp")
        with pytest.raises(SystemExit) as stopped:  # noqa: PT012
            args = parser.parse_args([str(a) for a in arguments])
            args.func(args)
        captured = self.capsys.readouterr()
        return stopped.value.code, captured.out + captured.err

    def command(self, name: str) -> "Call":
        return replace(self, name=name)

    def done(self, *arguments: Any) -> str:
        """What it wrote where it must end well."""
        status, output = self(*arguments)
        assert status == 0, output
        return output

    def refused(self, *arguments: Any, code: int = 2, said: str = "") -> str:
        """What it wrote where it must end with one message about an error of the user's, which matches `said`."""
        status, output = self(*arguments)
        assert status == code, output
        assert "Traceback" not in output and "Logging error" not in output
        assert re.search(said, output, re.MULTILINE), output
        assert len(output.splitlines()) < 12 and len(output) < 12 * 160, "an error has to fit a screen"
        return output


@pytest.fixture
def call(capsys: pytest.CaptureFixture) -> Call:
    return Call("select", capsys)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def history_of(run: Path) -> History:
    """What the store of a selection holds."""
    with open_for_reading(RunDirectory(run)) as store:
        return store.history(max_failures=3)


def scores_by_seed(seed: int, num_runs: int) -> Set[Tuple[str, str, str]]:
    """Candidate, replicate and score of an undisturbed selection of `able`, which is `GOOD`, and `blind`, which is
    `POOR`, with so many runs on shared splits."""
    wanted = set()
    for name, digit in (("able", 9), ("blind", 1)):
        for replicate in range(num_runs // 2):
            made = make_request(seed, name, replicate, shared_splits=True)
            wanted.add((name, str(replicate), str(float(f"0.{digit}{made.random_seed}"))))
    return wanted


@dataclass(frozen=True)
class Selections:
    """Selections of candidates by accuracy in one directory. Each method returns what the command wrote."""

    candidates: List[str]
    run: Path
    call: Call
    write: Callable[..., str]
    """Writes a program as `NAME.jsonnet`."""

    def typed(self, *options: Any) -> List[Any]:
        """The arguments of a new selection. The options may begin with further candidates."""
        return [*self.candidates, *options, "--metric", "accuracy", "-s", self.run]

    def begin(self, *options: Any) -> str:
        return self.call.done(*self.typed(*options))

    def resume(self, *options: Any) -> str:
        return self.call.done("--recover", *options, "-s", self.run)

    def refused(self, *options: Any, said: str = "") -> str:
        """The command with these options alone."""
        return self.call.refused(*options, "-s", self.run, said=said)

    def of(self, *candidates: str) -> "Selections":
        return replace(self, candidates=list(candidates))


@pytest.fixture
def selections(candidates: List[str], run: Path, call: Call, write_program: Callable[..., str]) -> Selections:
    return Selections(candidates, run, call, write_program)


@pytest.fixture
def selections_of_trained(selections: Selections, trained: List[str]) -> Selections:
    return selections.of(*trained)


@pytest.fixture(scope="session")
def golden_selections(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes each of `SELECTIONS` once."""
    return cache(lambda name: make_selection(tmp_path_factory.mktemp("golden"), name))


@pytest.fixture
def golden_copy(golden_selections: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Copies one of `SELECTIONS` into the directory of the test."""
    return lambda name: Path(shutil.copytree(golden_selections(name), tmp_path / name))
