"""Programs that crash, hang, answer late, answer rubbish and print too much: each question gets its own answer or an
error that says what came."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Type

import psutil
import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.documents.system import Command, OutOfTime, System, Unanswered
from tests.conftest import until
from tests.document_systems import asked, program_config


def unanswered(
    system: System, question: Any, said: Optional[str] = None, *, kind: Type[Unanswered] = Unanswered
) -> None:
    """Ask a question that must get no answer; its error says this."""
    with pytest.raises(kind, match=said):
        system.ask(question)


D1, D2 = {"text": "d1 good"}, {"text": "d2 bad"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., System]]:
    """Builds and opens a program with these faults."""
    systems = []

    def build(time_limit: float = 60.0, **options: Any) -> System:
        config = program_config(tmp_path, "a", **options)
        del config["type"]
        systems.append(Command(**config))
        systems[-1].open(tmp_path / "a.log", time_limit=time_limit)
        return systems[-1]

    yield build
    for system in systems:
        system.close()


def processes(directory: Path) -> "list[psutil.Process]":
    """Those of programs in this directory that run."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if str(directory) in " ".join(process.info["cmdline"] or []) and process.info["status"] != "zombie"
    ]


def test_one_process_answers_until_it_ends_or_is_closed(opened: Any, tmp_path: Path) -> None:
    system = opened()
    assert system.ask(D1) == {"label": "good"}
    before = {process.pid for process in processes(tmp_path)}
    assert [system.ask(question) for question in (D2, D1)] == [{"label": "bad"}, {"label": "good"}]
    assert {process.pid for process in processes(tmp_path)} == before
    for process in processes(tmp_path):
        if "process_tree.py" not in " ".join(process.cmdline()):
            process.kill()
    until(lambda: not system._process.is_running)
    assert system.ask(D2) == {"label": "bad"}, "one that ended between questions is started again"
    system.close()
    until(lambda: not processes(tmp_path))
    unanswered(system, D1)


def test_a_crash_is_tried_again_in_a_new_process_and_told_with_its_last_words(opened: Any, tmp_path: Path) -> None:
    faults = {"d1": ["crash"], "d2": ["crash", "crash"], "d3": ["crash"]}
    system = opened(faults=faults)
    assert system.ask(D1) == {"label": "good"}
    unanswered(system, D2, "last line of .*a.log is: something broke")
    assert system.ask(D1) == {"label": "good"}
    unanswered(opened(faults=faults, tries=1), {"text": "d3 good"})
    assert asked(tmp_path, "a") == {"d1": 3, "d2": 2, "d3": 1}


def test_only_the_first_answer_may_be_late_and_a_late_one_is_not_taken_for_the_next(opened: Any) -> None:
    system = opened(time_limit=0.3, start_time_limit=30.0, faults={"d1": ["late"], "d2": ["late"]}, late=1.0)
    assert system.ask(D2) == {"label": "bad"}
    unanswered(system, D1, "within 0.3 seconds", kind=OutOfTime)
    assert system.ask(D2) == {"label": "bad"}


DEAF = "import time; time.sleep(600)"


def test_a_program_that_does_not_answer_is_killed_with_its_children_at_its_own_limit(tmp_path: Path) -> None:
    config = program_config(tmp_path, "a", faults={"d1": ["hang"]})
    for command, question in ((config["command"], D1), ([sys.executable, "-c", DEAF], {"text": "x" * 10**6})):
        system = Command(command, start_time_limit=0.0, time_limit=0.3)
        system.open(tmp_path / "a.log", time_limit=60.0)
        unanswered(system, question, "within 0.3 seconds", kind=OutOfTime)
        until(lambda: not processes(tmp_path))
        system.close()


def test_what_is_no_answer_is_told_and_the_next_question_gets_its_own(opened: Any, tmp_path: Path) -> None:
    system = opened(faults={"d1": ["rubbish", "twice"]})
    unanswered(system, D1, "not JSON: no JSON at all")
    assert asked(tmp_path, "a") == {"d1": 1}, "it may have been paid for"
    assert system.ask(D1) == {"label": "bad"}
    until(lambda: system._process.is_running and bool(system._process._unread))
    unanswered(system, D2, "unexpected line")
    assert system.ask(D2) == {"label": "bad"}


def test_an_endless_answer_is_cut_off(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fiesta_allennlp.documents.system.MAX_LINE_BYTES", 4)
    system = opened()
    unanswered(system, D1, "longer than 4 bytes")
    assert not system._process.is_running


def test_the_program_dies_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    config = program_config(tmp_path, "a")
    script = f"""
import sys, time
from pathlib import Path
from fiesta_allennlp.documents.system import Command
system = Command({config["command"]!r})
system.open(Path({str(tmp_path / "a.log")!r}), time_limit=60.0)
print(system.ask({{"text": "d1 good"}}), flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout.readline()
    assert len(processes(tmp_path)) > 1
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until(lambda: not processes(tmp_path))


def test_identity_has_the_content_of_the_files_it_names(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text("first")
    before = Command([sys.executable, str(script)])
    identity = before.identity()
    assert Command([sys.executable, str(script)], cost=3.0, time_limit=7.0).identity() == identity
    assert Command([sys.executable, str(script)], version="2").identity() != identity
    script.write_text("second")
    assert Command([sys.executable, str(script)]).identity() != identity


def test_bad_options() -> None:
    wrong = {"command": [], "directory": "nowhere", "tries": 0, "each": "x", "cost": -1.0}
    for key, value in wrong.items():
        with pytest.raises(ConfigError, match=f"'{key}'"):
            Command(**{"command": ["python3"], key: value})
    with pytest.raises(ConfigError, match="no-such-program"):
        Command(["no-such-program"])
