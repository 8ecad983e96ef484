"""Systems that answer by rule and go wrong where they are told to, as programs and as HTTP servers, and documents for
them. Each question is logged, so that tests can count who was asked what, and how often."""

import json
import random
import socket
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

PROGRAM = """
import json, sys, time
spec = json.loads(sys.argv[1])
for line in sys.stdin:
    question = json.loads(line)
    word, label = question["text"].split()
    with open(spec["log"], "a+") as log:
        log.seek(0)
        number = log.read().split().count(word)
        log.write(word + "\\n")
    faults = spec["faults"].get(word, []) or spec["faults"].get("*", [])
    fault = faults[number] if number < len(faults) else faults[-1] if "*" in spec["faults"] and faults else None
    if fault == "crash":
        print("something broke", file=sys.stderr)
        sys.exit(3)
    if fault in ("hang", "late"):
        time.sleep(600 if fault == "hang" else spec["late"])
    if fault == "rubbish":
        print("no JSON at all", flush=True)
        continue
    if fault == "twice":
        print(json.dumps({"label": "bad"}), flush=True)
    wrong = spec["wrong"] and int(word[1:]) % spec["wrong"] == 0
    time.sleep(spec["seconds"])
    print(json.dumps({"label": {"good": "bad", "bad": "good"}[label] if wrong else label}), flush=True)
"""


def write_documents(path: Path, number: int) -> Path:
    """Documents `d0`, `d1` and so on, whose text is the id and the gold label."""
    rng = random.Random(number)
    with path.open("w", encoding="utf-8") as out:
        for i in range(number):
            label = rng.choice(["good", "bad"])
            out.write(json.dumps({"id": f"d{i}", "text": f"d{i} {label}", "label": label}) + "\n")
    return path


def program_config(directory: Path, name: str, *, wrong: int = 0, **options: Any) -> Dict[str, Any]:
    """The config of a program that is wrong for each document whose number `wrong` divides.

    `faults` are lists by document id, or `*`: what goes wrong the first time it is asked, the second, and so on;
    `late` and `seconds` are how long a late answer and each answer take; the others are the system's own.
    """
    spec = {
        "wrong": wrong,
        "log": str(directory / f"{name}.asked"),
        "faults": options.pop("faults", {}),
        "late": options.pop("late", 1.0),
        "seconds": options.pop("seconds", 0.0),
    }
    program = directory / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(program), json.dumps(spec)]
    return {"type": "command", "command": command, "start_time_limit": 30.0, **options}


def write_program(directory: Path, name: str, **options: Any) -> str:
    """The same as a file, as it is typed."""
    path = directory / f"{name}.jsonnet"
    path.write_text(json.dumps(program_config(directory, name, **options)), encoding="utf-8")
    return f"{name}={path}"


def asked(directory: Path, name: str) -> "Counter[str]":
    """How often a program was asked about each document."""
    path = directory / f"{name}.asked"
    return Counter(path.read_text(encoding="utf-8").split()) if path.exists() else Counter()


class Endpoint:
    """An HTTP server that answers as the programs do. `faults` may be statuses too, with seconds to wait as
    `(status, Retry-After)`, `drop` for a connection that is closed, `hang`, `stall` in the middle of an answer,
    `rubbish`. Requests whose number is in `down` are answered with status 503."""

    def __init__(self, *, wrong: int = 0, faults: "Dict[str, Sequence[Any]] | None" = None) -> None:
        self.wrong = wrong
        self.faults = faults or {}
        self.asked: "Counter[str]" = Counter()
        self.headers: List[Dict[str, str]] = []
        self.bodies: List[Any] = []
        self.down = range(0)
        self.release = threading.Event()
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.headers.append(dict(handler.headers))
            self.bodies.append(body)
            word, label = body["text"].split()
            number = self.asked[word]
            self.asked[word] += 1
            is_down = len(self.bodies) - 1 in self.down
        faults = self.faults.get(word) or self.faults.get("*", [])
        self._answer(handler, word, label, 503 if is_down else faults[number] if number < len(faults) else None)

    def _answer(self, handler: BaseHTTPRequestHandler, word: str, label: str, fault: Any) -> None:
        if fault == "drop":
            handler.connection.shutdown(socket.SHUT_RDWR)  # `close` would leave it open for the handler's own files
            handler.close_connection = True
            return
        if fault == "hang":
            self.release.wait(60)
            return
        status, wait = fault if isinstance(fault, tuple) else (fault if isinstance(fault, int) else 200, None)
        wrong = bool(self.wrong) and int(word[1:]) % self.wrong == 0
        content: Any = {"label": {"good": "bad", "bad": "good"}[label] if wrong else label}
        if status != 200:
            content = {"error": f"status {status}", "authorization": handler.headers.get("Authorization")}
        text = b"<html>no JSON</html>" if fault == "rubbish" else json.dumps(content).encode()
        handler.send_response(status)
        if wait is not None:
            handler.send_header("Retry-After", str(wait))
        if 300 <= status < 400:
            handler.send_header("Location", f"http://elsewhere/?key={handler.headers.get('Authorization')}")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        if fault == "stall":
            handler.wfile.write(text[:1])
            self.release.wait(60)
        handler.wfile.write(text)


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[Endpoint]:
    """The endpoint on the loopback address; its `url` is then set."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            endpoint.answer(self)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/label"
        try:
            yield endpoint
        finally:
            endpoint.release.set()
            server.shutdown()
            thread.join()
