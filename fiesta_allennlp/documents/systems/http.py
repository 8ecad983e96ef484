import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Set, Tuple
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies
from urllib3.exceptions import InvalidHeader, ReadTimeoutError
from urllib3.util import Retry

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.documents.systems.base import STOP_REASON, OutOfTime, System, Unanswered, Unavailable, Workplace

RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may be answered."""

UNAVAILABLE_STATUSES = (429, 502, 503, 504)
"""Statuses that are about the server, not the request."""

MAX_OUTAGES = 2
"""The number of other answers between two failures of a question up to which an endpoint counts as down."""

MAX_ANSWER_BYTES = 2**26  # bytes
CONNECT_TIMEOUT_SECONDS = 10.0
CHUNK_BYTES = 2**16


@System.register("http")
@dataclass(kw_only=True, eq=False)
class Http(System):
    """An endpoint that gets a JSON body by POST and answers with JSON.

    The system sends a query again after status 408, 425, 429, 500, 502, 503 or 504, and after no reply at all: at once,
    then after twice `wait` seconds, and twice as long before each further try, with a random number up to `wait` added;
    or after the seconds of `Retry-After`.

    The endpoint is down if the last try finds no connection, or status 429, 502, 503 or 504. `ask` then raises
    `Unavailable`. The endpoint is not down if it answers other questions between the failures of one.

    The system reads the key from the environment and writes it to no file. It removes the key from every message and
    every answer.

    `System` documents the remaining arguments. `parallel` is 4 by default.

    Args:
        url: `http://` or `https://`, without a user or a key.
        headers: header fields in addition to the key's.
        key_variable: the environment variable that holds the key.
        key_header: the header field that carries the key.
        key_prefix: the text before the key in this header field.
        retries: how often a query is sent again.
        wait: half the seconds between the first and the second new try, if the endpoint sends no `Retry-After`.
        max_wait: the most seconds between two tries.
        per_minute: the most queries in a minute, without repeated ones.
    """

    url: str = field(kw_only=False)
    headers: Optional[Dict[str, str]] = None
    key_variable: Optional[str] = None
    key_header: str = "Authorization"
    key_prefix: Optional[str] = None
    retries: int = 5
    wait: float = 1.0
    max_wait: float = 120.0
    per_minute: Optional[float] = None
    parallel: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        self._host, self._port = _host_and_port(self.url)
        self._key = _read_key(self.key_variable)
        self._next_request_at = 0.0
        self._lock = threading.Lock()
        self._num_answered = 0
        self._answered_at_failures: Dict[str, Set[int]] = {}
        self._stopped = threading.Event()
        self._thread_local = threading.local()

    def identity(self) -> Dict[str, Any]:
        return {**super().identity(), "type": "http", "url": self.url, "headers": self.headers or {}, "body": self.body}

    def open(self, workplace: Workplace) -> None:
        """Connect once, without a query."""
        self._time_limit = workplace.time_limit if self.time_limit is None else self.time_limit
        if get_environ_proxies(self.url):
            return
        try:
            socket.create_connection((self._host, self._port), timeout=CONNECT_TIMEOUT_SECONDS).close()
        except OSError as error:
            raise ConfigError(f"{self.url} cannot be reached: {error}. Start the server or correct the URL.") from error

    def ask(self, question: Any) -> Any:
        if self.per_minute:
            self._stopped.wait(self._reserve_request_time(60.0 / self.per_minute))
        if self._stopped.is_set():
            raise Unanswered(STOP_REASON)
        try:
            return self._ask(question)
        except Unavailable as error:
            if self._is_endpoint_up(question):
                raise Unanswered(f"{error}, while it answered other questions") from error
            raise

    def stop(self) -> None:
        """Send no query again. A request under way continues, because you may have paid for it."""
        self._stopped.set()

    def _reserve_request_time(self, interval: float) -> float:
        """Let requests pass one by one, at this distance."""
        with self._lock:
            now = time.monotonic()
            request_at = max(now, self._next_request_at)
            self._next_request_at = request_at + interval
        return request_at - now

    def _is_endpoint_up(self, question: Any) -> bool:
        """Record that a question failed. Return whether the endpoint is up, because it keeps answering others."""
        with self._lock:
            num_answered_at_failures = self._answered_at_failures.setdefault(json.dumps(question), set())
            num_answered_at_failures.add(self._num_answered)
            return len(num_answered_at_failures) > MAX_OUTAGES

    def _ask(self, question: Any) -> Any:
        deadline = time.monotonic() + self._time_limit
        chunks, size = [], 0
        try:
            with self._session().post(
                self.url,
                json=question,
                timeout=(min(CONNECT_TIMEOUT_SECONDS, self._time_limit), self._time_limit),
                allow_redirects=False,
                stream=True,
            ) as response:
                for chunk in response.iter_content(CHUNK_BYTES):
                    chunks.append(chunk)
                    size += len(chunk)
                    if time.monotonic() > deadline:
                        raise requests.ReadTimeout
                    if size > MAX_ANSWER_BYTES:
                        raise Unanswered(f"its answer is longer than {MAX_ANSWER_BYTES} bytes")
        except (requests.exceptions.InvalidHeader, UnicodeEncodeError):
            raise Unanswered("its 'headers' contain characters that cannot be sent") from None
        except requests.RequestException as error:
            cause = error.args[0] if error.args else error
            cause = getattr(cause, "reason", cause)
            if isinstance(cause, ReadTimeoutError) or isinstance(error, requests.ReadTimeout):
                raise OutOfTime(f"no answer within {self._time_limit:g} seconds") from error
            kind = Unavailable if isinstance(error, requests.ConnectionError) else Unanswered
            reason = shorten(f"{type(error).__name__}: {cause}")
            raise kind(f"no answer: {self._redact_key(reason)}") from None
        return self._parse_response(response, self._redact_key(b"".join(chunks).decode("utf-8", errors="replace")))

    def _parse_response(self, response: requests.Response, text: str) -> Any:
        status = response.status_code
        message = f"it answered with status {status}" + (f": {shorten(text.strip())}" if text.strip() else "")
        if status in UNAVAILABLE_STATUSES:
            raise Unavailable(message)
        if status in (401, 403):
            raise Unanswered(f"{message}. Check the key ('key_variable', 'key_header', 'key_prefix')")
        if 300 <= status < 400:
            location = self._redact_key(str(response.headers.get("Location")))
            raise Unanswered(f"{message}, and redirects to {location}. Use that URL")
        if not response.ok:
            raise Unanswered(message)
        with self._lock:
            self._num_answered += 1
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return {"text": text}

    def _session(self) -> requests.Session:
        """Return the session of this thread: connections are used again, and sessions are not made to be shared."""
        if not hasattr(self._thread_local, "session"):
            session = self._thread_local.session = requests.Session()
            session.headers.update(self.headers or {})
            for prefix in ("http://", "https://"):
                session.mount(prefix, HTTPAdapter(max_retries=self._retry()))
            if self._key:
                default = "Bearer " if self.key_header == "Authorization" else ""
                session.headers[self.key_header] = (default if self.key_prefix is None else self.key_prefix) + self._key
        return self._thread_local.session

    def _retry(self) -> Retry:
        system = self

        class StoppableRetry(Retry):
            def sleep(self, response: Any = None) -> None:
                """Wait for the next try, unless the system is stopped."""
                seconds = None
                with suppress(InvalidHeader):
                    seconds = response and self.get_retry_after(response)
                if system._stopped.wait(min(seconds or self.get_backoff_time(), system.max_wait)):
                    raise Unanswered(STOP_REASON)

        return StoppableRetry(
            total=self.retries,
            allowed_methods=None,
            status_forcelist=RETRY_STATUSES,
            raise_on_status=False,
            backoff_factor=self.wait,
            backoff_max=self.max_wait,
            backoff_jitter=self.wait,
        )

    def _redact_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _read_key(variable: Optional[str]) -> str:
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"'key_variable': {variable} is not set. Set it: export {variable}=...")
    if not key.isprintable() or not key.isascii():
        raise ConfigError(f"the key in {variable} must be a single line of ASCII characters.")
    return key


def _host_and_port(url: str) -> Tuple[str, int]:
    parsed = urlsplit(url)
    if parsed.username or parsed.password:
        raise ConfigError(f"'url' must not contain a user name or password ({parsed.hostname}). Use 'key_variable'.")
    try:
        port = parsed.port or {"http": 80, "https": 443}[parsed.scheme]
    except (KeyError, ValueError) as error:
        raise ConfigError(f"'url' must start with http:// or https:// and have a valid port but is {url}.") from error
    return parsed.hostname or "", port
