"""An HTTP server on the loopback address that fails in every way: what is tried again, when, and what is told."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from fiesta_allennlp.documents.systems.base import OutOfTime, Unanswered, Unavailable, Workplace
from fiesta_allennlp.documents.systems.http import Http
from fiesta_allennlp.errors import ConfigError
from tests.document_systems import Endpoint, serving

D1, D2 = {"text": "d1 good"}, {"text": "d2 bad"}
KEY = "sk-very-secret"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts a server with these faults and opens a system for it that waits a blink between tries."""
    opened: List[Any] = []

    def start(faults: Any = None, time_limit: float = 30.0, **options: Any) -> Any:
        context = serving(Endpoint(faults=faults))
        endpoint = context.__enter__()
        system = Http(endpoint.url, **{"wait": 0.01, **options})
        system.open(Workplace("web", tmp_path / "web.log", time_limit))
        opened.append((system, context))
        return system, endpoint

    yield start
    for system, context in opened:
        system.stop()
        context.__exit__(None, None, None)


def test_a_question_is_posted_and_answered(serve: Any) -> None:
    system, endpoint = serve()
    assert system.ask(D1) == {"label": "good"}
    assert endpoint.bodies == [D1]
    assert endpoint.headers[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize("fault", [500, 429, "drop"])
def test_what_may_pass_is_tried_again(serve: Any, fault: Any) -> None:
    system, endpoint = serve({"d1": [fault, fault]})
    assert system.ask(D1) == {"label": "good"}
    assert endpoint.asked == {"d1": 3}
    assert endpoint.answered == {"d1": 1}


def test_tries_end_with_what_came_last(serve: Any) -> None:
    system, endpoint = serve({"d1": [500] * 9}, retries=2)
    with pytest.raises(Unanswered, match=r"status 500: .*\"error\": \"status 500\".*, 3 times") as raised:
        system.ask(D1)
    assert not isinstance(raised.value, Unavailable)
    assert endpoint.asked == {"d1": 3}
    assert system.ask(D2) == {"label": "bad"}


@pytest.mark.parametrize(
    ("fault", "said"), [(429, "status 429"), (503, "status 503"), ((503, 999), "asks to wait 999"), ("drop", "closed")]
)
def test_an_endpoint_is_down_until_it_answers_other_questions_meanwhile(serve: Any, fault: Any, said: str) -> None:
    system, _ = serve({"d1": [fault] * 9}, retries=1)
    for _ in range(2):
        with pytest.raises(Unavailable, match=said):
            system.ask(D1)
    assert system.ask(D2) == {"label": "bad"}
    with pytest.raises(Unavailable, match=said):
        system.ask(D1)
    assert system.ask(D2) == {"label": "bad"}
    with pytest.raises(Unanswered, match=f"{said}.*, while it answered other questions$") as raised:
        system.ask(D1)
    assert not isinstance(raised.value, Unavailable)


def test_an_endpoint_that_nobody_runs_any_more_is_down(tmp_path: Path) -> None:
    with serving(Endpoint()) as endpoint:
        system = Http(endpoint.url, retries=1, wait=0.01)
        system.open(Workplace("web", tmp_path / "web.log", 30.0))
    with pytest.raises(Unavailable, match="no answer came: ConnectionError: .*, 2 times"):
        system.ask(D1)


@pytest.mark.parametrize("status", [400, 422])
def test_what_will_not_pass_is_not_tried_again(serve: Any, status: int) -> None:
    system, endpoint = serve({"d1": [status]})
    with pytest.raises(Unanswered, match=f"status {status}"):
        system.ask(D1)
    assert endpoint.asked == {"d1": 1}


def test_a_refused_key_names_the_options(serve: Any) -> None:
    system, endpoint = serve({"d1": [401]})
    with pytest.raises(Unanswered, match=r"status 401.*Check the key \('key_variable'"):
        system.ask(D1)
    assert endpoint.asked == {"d1": 1}


@pytest.fixture
def waits_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], List[float]]:
    """Has a system wait for nothing. Returns the seconds that it would have waited, as they come."""

    def watch(system: Any) -> List[float]:
        waits: List[float] = []
        monkeypatch.setattr(system._stopped, "wait", waits.append)
        return waits

    return watch


def test_retry_after_is_honoured_in_seconds_and_as_a_date(serve: Any, waits_of: Any) -> None:
    in_an_hour = formatdate(time.time() + 3600, usegmt=True)
    system, endpoint = serve({"d1": [(429, 7)], "d2": [(503, in_an_hour)]}, wait=0.0, max_wait=3600.0)
    waits = waits_of(system)
    assert system.ask(D1) == {"label": "good"}
    assert system.ask(D2) == {"label": "bad"}
    assert waits == [7, pytest.approx(3600, abs=300)]
    assert endpoint.asked == {"d1": 2, "d2": 2}


def test_retry_after_of_a_day_fails_at_once(serve: Any) -> None:
    system, endpoint = serve({"d1": [(429, 86400)]})
    with pytest.raises(Unanswered, match=r"asks to wait 86400 seconds, more than 'max_wait', 120"):
        system.ask(D1)
    assert endpoint.asked == {"d1": 1}


def test_waits_grow_and_differ(serve: Any, waits_of: Any) -> None:
    system, _ = serve({"d1": [500] * 9, "d2": [500] * 9}, wait=1.0, max_wait=5.0, retries=4)
    waits = waits_of(system)
    for question in (D1, D2):
        with pytest.raises(Unanswered):
            system.ask(question)
    first, second = waits[:4], waits[4:]
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        assert min(5.0, 0.5 * 2**number) <= one <= min(5.0, 1.5 * 2**number)
        assert min(5.0, 0.5 * 2**number) <= other <= min(5.0, 1.5 * 2**number)
    assert first != second


def test_a_server_that_hangs_is_given_up(serve: Any) -> None:
    system, endpoint = serve({"d1": ["hang", "stall"]}, time_limit=2.0, retries=1)
    with pytest.raises(OutOfTime, match=r"no answer came within 2 seconds, 2 times"):
        system.ask(D1)
    assert endpoint.asked == {"d1": 2}
    assert system.ask(D2) == {"label": "bad"}


def test_stopping_ends_the_waiting_for_another_try(serve: Any) -> None:
    system, endpoint = serve({"d1": [500] * 99}, wait=1000.0, max_wait=1000.0)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(system.ask, D1)
        while not endpoint.asked:
            time.sleep(0.01)
        system.stop()
        with pytest.raises(Unanswered, match="stopped before it answered"):
            future.result(timeout=30)


def test_text_that_is_no_json_is_an_answer_all_the_same(serve: Any) -> None:
    system, _ = serve({"d1": ["rubbish"]})
    assert system.ask(D1) == {"text": "<html>no JSON</html>"}


def test_requests_are_spread_over_the_minute(serve: Any, waits_of: Any) -> None:
    system, _ = serve(per_minute=0.01)  # one in 6,000 seconds
    waits = waits_of(system)
    for _ in range(4):
        system.ask(D1)
    assert waits == pytest.approx([0, 6000, 12000, 18000], abs=300)


def test_the_key_travels_in_its_header_and_is_nowhere_else(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", KEY)
    system, endpoint = serve({"d1": [403]}, key_variable="WEB_KEY")
    with pytest.raises(Unanswered) as refused:
        system.ask(D1)  # the server's message repeats the header
    assert "Bearer ***" in str(refused.value)
    assert KEY not in str(refused.value)
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(system.identity())
    other, endpoint = serve(key_variable="WEB_KEY", key_header="X-Key")
    other.ask(D1)
    assert endpoint.headers[0]["X-Key"] == KEY


def test_a_redirection_is_refused_without_the_key_that_it_repeats(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", KEY)
    system, endpoint = serve({"d1": [307]}, key_variable="WEB_KEY")
    with pytest.raises(
        Unanswered, match=r"redirects to http://elsewhere/\?key=Bearer \*\*\*: give that url"
    ) as refused:
        system.ask(D1)
    assert KEY not in str(refused.value)
    assert endpoint.asked == {"d1": 1}


def test_a_key_with_a_line_break_is_refused_and_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", f"{KEY}\nX-Other: 1")
    with pytest.raises(ConfigError, match="the key in WEB_KEY must be one line") as refused:
        Http("http://127.0.0.1:1/", key_variable="WEB_KEY")
    assert KEY not in str(refused.value)


def test_an_unset_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEB_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"'key_variable' is WEB_KEY, but .* is not set. Set it: export WEB_KEY="):
        Http("http://127.0.0.1:1/", key_variable="WEB_KEY")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"127.0.0.1:9 of http://127.0.0.1:9/label cannot be reached: .*refused"):
        Http("http://127.0.0.1:9/label").open(Workplace("web", tmp_path / "log", 60.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://host/x"}, r"'url' must begin with http:// or https:// and a host"),
        ({"url": 7}, r"'url' must begin with"),
        ({"url": "http://me:secret@host/x"}, r"'url' must not contain a user or a password \(host host\)"),
        ({"url": "http://host:99999/"}, r"'url' has no valid port"),
        ({"url": "http://host/", "retries": -1}, r"'retries' must be at least 0 but is -1"),
        ({"url": "http://host/", "wait": "long"}, r"'wait' must be at least 0 but is long"),
        ({"url": "http://host/", "per_minute": 0}, r"'per_minute' must be above 0 but is 0"),
        ({"url": "http://host/", "parallel": 0}, r"'parallel' must be at least 1 but is 0"),
    ],
)
def test_bad_options(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        Http(**options)
    assert "secret" not in str(refused.value)
