"""An HTTP server on the loopback address that fails in every way: what is tried again, when, and what is told."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.documents.systems.base import OutOfTime, Unanswered, Unavailable, Workplace
from fiesta_allennlp.documents.systems.http import Http
from tests.document_systems import Endpoint, serving
from tests.documents.systems.conftest import unanswered

D1, D2 = {"text": "d1 good"}, {"text": "d2 bad"}
KEY = "sk-very-secret"


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Starts a server with these faults and opens a system for it that waits a blink between tries. With `waits` it
    waits for nothing, and the seconds that it would have waited are listed there."""
    opened: List[Any] = []

    def start(faults: Any = None, time_limit: float = 30.0, waits: "List[float] | None" = None, **options: Any) -> Any:
        context = serving(Endpoint(faults=faults))
        endpoint = context.__enter__()
        system = Http(endpoint.url, **{"wait": 0.01, **options})
        system.open(Workplace(tmp_path / "web.log", time_limit))
        opened.append((system, context))
        if waits is not None:
            monkeypatch.setattr(system._stopped, "wait", waits.append)
        return system, endpoint

    yield start
    for system, context in opened:
        system.stop()
        context.__exit__(None, None, None)


def test_a_question_is_posted_and_answered_and_what_may_pass_is_tried_again(serve: Any) -> None:
    system, endpoint = serve({"d1": [500, 429, "drop"], "d2": ["rubbish"]})
    assert system.ask(D1) == {"label": "good"}
    assert (endpoint.bodies, endpoint.asked) == ([D1] * 4, {"d1": 4})
    assert endpoint.headers[0]["Content-Type"] == "application/json"
    assert system.ask(D2) == {"text": "<html>no JSON</html>"}


def test_tries_end_with_what_came_last_and_the_waits_between_them_grow_and_differ(serve: Any) -> None:
    waits: List[float] = []
    system, endpoint = serve({"d1": [500] * 9, "d2": [500] * 5}, waits=waits, wait=1.0, max_wait=6.0, retries=4)
    for question in (D1, D2):
        error = unanswered(system, question, r"status 500: .*\"error\": \"status 500\"")
        assert not isinstance(error, Unavailable)
    assert endpoint.asked == {"d1": 5, "d2": 5}
    assert waits[:4] != waits[4:] and waits[0] == waits[4] == 0
    for number, waited in enumerate(waits):
        assert number % 4 == 0 or min(6.0, 2 ** (number % 4)) <= waited <= min(6.0, 2 ** (number % 4) + 1)


@pytest.mark.parametrize(("fault", "said"), [(429, "status 429"), (503, "status 503"), ("drop", "closed")])
def test_an_endpoint_is_down_until_it_answers_other_questions_meanwhile(serve: Any, fault: Any, said: str) -> None:
    system, _ = serve({"d1": [fault] * 9}, retries=1)
    for _ in range(2):
        unanswered(system, D1, said, kind=Unavailable)
    assert system.ask(D2) == {"label": "bad"}
    unanswered(system, D1, said, kind=Unavailable)
    assert system.ask(D2) == {"label": "bad"}
    error = unanswered(system, D1, f"{said}.*, while it answered other questions$")
    assert not isinstance(error, Unavailable)


def test_an_endpoint_that_nobody_runs_any_more_is_down(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path / "web.log", 30.0)
    with serving(Endpoint()) as endpoint:
        system = Http(endpoint.url, retries=1, wait=0.01)
        system.open(workplace)
    unanswered(system, D1, "ConnectionError: .*", kind=Unavailable)
    with pytest.raises(ConfigError, match=f"{endpoint.url} cannot be reached"):
        Http(endpoint.url).open(workplace)


@pytest.mark.parametrize(
    ("fault", "named"),
    [(400, "status 400"), (401, "'key_variable'")],
)
def test_what_will_not_pass_is_not_tried_again(serve: Any, fault: Any, named: str) -> None:
    system, endpoint = serve({"d1": [fault]})
    unanswered(system, D1, named)
    assert endpoint.asked == {"d1": 1}


def test_an_endless_answer_is_cut_off(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fiesta_allennlp.documents.systems.http.MAX_ANSWER_BYTES", 4)
    unanswered(serve()[0], D1, "longer than 4 bytes")


def test_headers_that_cannot_be_sent_are_named(serve: Any) -> None:
    for value in ("a\nb", "\u2603"):
        system, endpoint = serve({}, headers={"X-Name": value})
        with pytest.raises(Unanswered, match="'headers' contain characters"):
            system.ask(D1)
        assert endpoint.asked == {}


def test_the_seconds_of_retry_after_are_waited_for(serve: Any) -> None:
    waits: List[float] = []
    system, endpoint = serve({"d1": [(429, 7)], "d2": [(503, "\u00b2"), (503, 86400)]}, waits=waits, max_wait=120.0)
    assert [system.ask(question) for question in (D1, D2)] == [{"label": "good"}, {"label": "bad"}]
    assert waits == [7, 0, 120]
    assert endpoint.asked == {"d1": 2, "d2": 3}


def test_a_server_that_hangs_is_given_up(serve: Any) -> None:
    system, endpoint = serve({"d1": ["hang", "hang", "stall"]}, time_limit=0.5, retries=1)
    for num_asked in (2, 3):
        unanswered(system, D1, "within 0.5 seconds", kind=OutOfTime)
        assert endpoint.asked == {"d1": num_asked}
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


def test_requests_are_spread_over_the_minute(serve: Any) -> None:
    waits: List[float] = []
    system, _ = serve(per_minute=0.01, waits=waits)  # one in 6,000 seconds
    for _ in range(4):
        system.ask(D1)
    assert waits == pytest.approx([0, 6000, 12000, 18000], abs=300)


@pytest.mark.parametrize(
    ("status", "named"), [(403, r"Bearer \*\*\*"), (307, r"redirects to http://elsewhere/\?key=Bearer \*\*\*")]
)
def test_the_key_travels_in_its_header_and_is_nowhere_else(
    serve: Any, monkeypatch: pytest.MonkeyPatch, status: int, named: str
) -> None:
    """The server's messages repeat the header."""
    monkeypatch.setenv("WEB_KEY", KEY)
    system, endpoint = serve({"d1": [status]}, key_variable="WEB_KEY")
    assert KEY not in str(unanswered(system, D1, named)) + json.dumps(system.identity())
    assert [sent["Authorization"] for sent in endpoint.headers] == [f"Bearer {KEY}"]
    other, endpoint = serve(key_variable="WEB_KEY", key_header="X-Key")
    other.ask(D1)
    assert endpoint.headers[0]["X-Key"] == KEY


def test_a_key_that_is_not_set_or_has_a_line_break_is_refused_and_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("", f"{KEY}\nX-Other: 1"):
        monkeypatch.setenv("WEB_KEY", key)
        with pytest.raises(ConfigError, match="WEB_KEY") as refused:
            Http("http://127.0.0.1:1/", key_variable="WEB_KEY")
        assert KEY not in str(refused.value)


@pytest.mark.parametrize("url", ["ftp://host/x", "http://me:secret@host/x", "http://host:99999/"])
def test_bad_options(url: str) -> None:
    with pytest.raises(ConfigError, match="'url' .*host") as refused:
        Http(url)
    assert "secret" not in str(refused.value)
    for key, value in {"retries": -1, "parallel": 0, "time_limit": 0}.items():
        with pytest.raises(ConfigError, match=f"'{key}' .* is {value}"):
            Http("http://host/", **{key: value})  # type: ignore[arg-type]
