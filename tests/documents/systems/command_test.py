"""Programs that crash, hang, answer late, answer rubbish and print too much: each question gets its own answer or an
error that says what came."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import psutil
import pytest

from fiesta_allennlp.documents.systems.base import OutOfTime, System, Unanswered, Workplace
from fiesta_allennlp.documents.systems.command import Command
from fiesta_allennlp.errors import ConfigError
from tests.conftest import still_runs, until
from tests.document_systems import asked, program_config

D1, D2 = {"text": "d1 good"}, {"text": "d2 bad"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., System]]:
    """Builds and opens a program with these faults."""
    systems = []

    def build(time_limit: float = 60.0, **options: Any) -> System:
        config = program_config(tmp_path, "a", **options)
        del config["type"]
        systems.append(Command(**config))
        systems[-1].open(Workplace("a", tmp_path / "a.log", time_limit))
        return systems[-1]

    yield build
    for system in systems:
        system.close()


def processes(directory: Path) -> "list[psutil.Process]":
    """Those of programs in this directory that run."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if str(directory) in " ".join(process.info["cmdline"] or []) and process.info["status"] != "zombie":
            found.append(process)
    return found


def test_answers_come_one_by_one_from_one_process(opened: Any, tmp_path: Path) -> None:
    system = opened()
    assert system.ask(D1) == {"label": "good"}
    before = {process.pid for process in processes(tmp_path)}
    assert [system.ask(question) for question in (D2, D1)] == [{"label": "bad"}, {"label": "good"}]
    assert {process.pid for process in processes(tmp_path)} == before


def test_a_crash_is_tried_again_in_a_new_process(opened: Any, tmp_path: Path) -> None:
    system = opened(faults={"d1": ["crash"]})
    assert system.ask(D1) == {"label": "good"}
    assert asked(tmp_path, "a") == {"d1": 2}
    assert "something broke" in (tmp_path / "a.log").read_text()


def test_a_crash_each_time_is_told_with_its_last_words(opened: Any, tmp_path: Path) -> None:
    system = opened(faults={"d1": ["crash", "crash"]})
    with pytest.raises(Unanswered, match=r"ended without an answer. The last line of .*a.log is: something broke"):
        system.ask(D1)
    assert asked(tmp_path, "a") == {"d1": 2}
    assert system.ask(D2) == {"label": "bad"}


def test_tries_can_be_one(opened: Any, tmp_path: Path) -> None:
    system = opened(faults={"d1": ["crash"]}, tries=1)
    with pytest.raises(Unanswered):
        system.ask(D1)
    assert asked(tmp_path, "a") == {"d1": 1}


def test_a_late_answer_is_not_taken_for_that_to_the_next_question(opened: Any) -> None:
    system = opened(time_limit=0.3, start_time_limit=30.0, faults={"d1": ["late"]}, late=1.0)
    assert system.ask(D2) == {"label": "bad"}
    with pytest.raises(OutOfTime, match="no answer came within 0.3 seconds"):
        system.ask(D1)
    assert system.ask(D2) == {"label": "bad"}


def test_the_first_answer_after_a_start_may_take_longer(opened: Any) -> None:
    system = opened(time_limit=0.2, start_time_limit=30.0, faults={"d1": ["late"]}, late=1.0)
    assert system.ask(D1) == {"label": "good"}


def test_the_systems_own_time_limit_comes_first(tmp_path: Path) -> None:
    config = program_config(tmp_path, "a", faults={"d1": ["hang"]}, time_limit=0.3)
    system = Command(config["command"], start_time_limit=0.0, time_limit=0.3)
    system.open(Workplace("a", tmp_path / "a.log", 60.0))
    with pytest.raises(OutOfTime, match="within 0.3 seconds"):
        system.ask(D1)
    system.close()


def test_a_hanging_program_is_killed_with_its_children(opened: Any, tmp_path: Path) -> None:
    system = opened(time_limit=0.5, start_time_limit=0.0, faults={"d1": ["hang"]})
    assert processes(tmp_path)
    with pytest.raises(OutOfTime):
        system.ask(D1)
    until(lambda: not processes(tmp_path))


@pytest.mark.parametrize(
    ("fault", "message"),
    [("rubbish", "a line that is not JSON: no JSON at all"), ("twice", "it printed an unexpected line")],
)
def test_what_is_no_answer_is_told_and_the_next_question_gets_its_own(
    opened: Any, tmp_path: Path, fault: str, message: str
) -> None:
    system = opened(faults={"d1": [fault]}, wrong=0)
    if fault == "twice":
        assert system.ask(D1) == {"label": "bad"}
        until(lambda: system._process._unread or system._process._is_readable())
        with pytest.raises(Unanswered, match=message):
            system.ask(D2)
    else:
        with pytest.raises(Unanswered, match=message):
            system.ask(D1)
        assert asked(tmp_path, "a") == {"d1": 1}  # it may have been paid for
    assert system.ask(D2) == {"label": "bad"}


def test_a_program_that_ended_between_questions_is_started_again(opened: Any, tmp_path: Path) -> None:
    system = opened()
    assert system.ask(D1) == {"label": "good"}
    for process in processes(tmp_path):
        if "process_tree.py" not in " ".join(process.cmdline()):
            process.kill()
    until(lambda: not system._process.is_running)
    assert system.ask(D2) == {"label": "bad"}


def test_a_long_question_and_a_program_that_does_not_read(opened: Any, tmp_path: Path) -> None:
    script = tmp_path / "deaf.py"
    script.write_text("import time; time.sleep(600)")
    system = Command([sys.executable, str(script)], start_time_limit=0.0, time_limit=0.5)
    system.open(Workplace("deaf", tmp_path / "deaf.log", 60.0))
    with pytest.raises(OutOfTime):
        system.ask({"text": "x" * 10**6})
    system.close()


def test_the_program_dies_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    config = program_config(tmp_path, "a")
    script = f"""
import sys, time
from pathlib import Path
from fiesta_allennlp.documents.systems.command import Command
from fiesta_allennlp.documents.systems.base import Workplace
system = Command({config["command"]!r})
system.open(Workplace("a", Path({str(tmp_path / "a.log")!r}), 60.0))
print(system.ask({{"text": "d1 good"}}), flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.readline()
    assert len(processes(tmp_path)) > 1
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until(lambda: not processes(tmp_path))


def test_a_child_with_a_session_and_an_environment_of_its_own_ends_with_the_program(tmp_path: Path) -> None:
    script = tmp_path / "system.sh"
    script.write_text("env -i setsid sleep 600 & echo $! > child\nwhile read line; do echo '{}'; done\n")
    system = Command(["sh", str(script)], directory=str(tmp_path))
    system.open(Workplace("a", tmp_path / "a.log", 60.0))
    assert system.ask(D1) == {}
    child = psutil.Process(int((tmp_path / "child").read_text()))
    assert still_runs(child)
    system.close()
    until(lambda: not still_runs(child))


def test_closing_ends_the_program_and_lets_no_question_start_it_again(opened: Any, tmp_path: Path) -> None:
    system = opened()
    system.close()
    until(lambda: not processes(tmp_path))
    with pytest.raises(Unanswered):
        system.ask(D1)


def test_identity_has_the_content_of_the_files_it_names(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("first")
    before = Command([sys.executable, str(script)])
    identity = before.identity()
    assert Command([sys.executable, str(script)], cost=3.0, time_limit=7.0).identity() == identity
    assert Command([sys.executable, str(script)], version="2").identity() != identity
    script.write_text("second")
    assert Command([sys.executable, str(script)]).identity() != identity


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": "python system.py"}, r"'command' must be a list of strings such as .* but is python system.py"),
        ({"command": []}, r"'command' must be a list"),
        ({"command": ["no-such-program"]}, r"'command' begins with 'no-such-program', which is neither on the PATH"),
        ({"command": ["python3"], "directory": "nowhere"}, r"'directory' is nowhere, but there is no such directory"),
        ({"command": ["python3"], "parallel": 2}, r"'parallel' must be 1"),
        ({"command": ["python3"], "tries": 0}, r"'tries' must be a whole number of at least 1 but is 0"),
        ({"command": ["python3"], "each": "token"}, r"'each' must be document or item but is token"),
        ({"command": ["python3"], "cost": -1}, r"'cost' must be at least 0 but is -1"),
        ({"command": ["python3"], "cost": "free"}, r"'cost' must be at least 0 but is free"),
        ({"command": ["python3"], "time_limit": 0}, r"'time_limit' must be above 0 but is 0"),
        ({"command": ["python3"], "start_time_limit": -1}, r"'start_time_limit' must be at least 0 but is -1"),
    ],
)
def test_bad_options(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Command(**options)


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "not-executable"
    path.write_text("text")
    system = Command([str(path)], tries=1)
    system.open(Workplace("a", tmp_path / "a.log", 60.0))
    with pytest.raises(Unanswered, match=r"Permission denied"):
        system.ask(D1)
    system.close()
