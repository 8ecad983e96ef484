"""What the tests of the commands share: two candidates, and selections of them in one directory."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, List, Sequence, Tuple

import pytest

from fiesta_allennlp.commands import add_command
from tests.programs import program_config

GOOD = 'echo "accuracy 0.9$4"'
"""Scores a little above 0.9, by the seed."""
POOR = 'echo "accuracy 0.1$4"'
BLIND = {"trainer": {"optimizer": {"type": "sgd", "lr": 1e-9}, "num_epochs": 2, "cuda_device": -1}}
"""Learns nothing, so its accuracy is about a half."""


@pytest.fixture
def trained(write_config: Callable[..., Path]) -> List[str]:
    """AllenNLP configs: one that learns the task well and one that does not learn."""
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


Call = Callable[..., Tuple[int, str]]
"""Runs a command with these arguments. Returns its exit status and all it wrote."""


@pytest.fixture
def in_process(capsys: pytest.CaptureFixture) -> Callable[..., Call]:
    """Makes of a command's name what runs it in this process."""

    def run(name: str, arguments: Sequence[Any]) -> None:
        commands = argparse.ArgumentParser().add_subparsers()
        parser = add_command(commands, name, called=f"fiesta-{name}", program="allennlp")
        args = parser.parse_args([str(a) for a in arguments])
        args.func(args)

    def make(name: str) -> Call:
        def call(*arguments: Any) -> Tuple[int, str]:
            with pytest.raises(SystemExit) as stopped:
                run(name, arguments)
            captured = capsys.readouterr()
            return stopped.value.code, captured.out + captured.err

        return call

    return make


@pytest.fixture
def call(in_process: Callable[..., Call]) -> Call:
    return in_process("select")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@dataclass(frozen=True)
class Selections:
    """Selections of the two candidates by accuracy in one directory. Each call returns what the command wrote."""

    candidates: List[str]
    run: Path
    call: Call

    def begin(self, *options: Any, more: Sequence[Any] = ()) -> str:
        """A new selection, of `more` candidates too, that must end well."""
        return self._ended(0, *self.candidates, *more, "--metric", "accuracy", *options)

    def resume(self, *options: Any) -> str:
        return self._ended(0, "--recover", *options)

    def refused(self, *options: Any) -> str:
        """The command with these options alone, which must end with an error of the user's."""
        return self._ended(2, *options)

    def _ended(self, wanted: int, *options: Any) -> str:
        status, output = self.call(*options, "-s", self.run)
        assert status == wanted, output
        return output


@pytest.fixture
def selections(candidates: List[str], run: Path, call: Any) -> Selections:
    return Selections(candidates, run, call)


@pytest.fixture
def selections_of_trained(trained: List[str], run: Path, call: Any) -> Selections:
    return Selections(trained, run, call)
