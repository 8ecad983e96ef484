"""Stands for a paid service that requires a key: labels targets by good and bad words."""

import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = {"wonderful", "excellent", "lovely", "great", "fresh", "tasty", "pleasant", "treasured", "loved", "adored"}
BAD = {"awful", "dirty", "tiny", "sad", "tired", "loathed", "disliked", "regretted", "disappointing", "terrible"}


def label(item):
    """Counts good and bad words in the part of the sentence that the target is in."""
    begin = max(item["text"].rfind(mark, 0, item["from"]) for mark in (",", ";", ".", " and "))
    words = set(re.findall(r"\w+", re.split(r"[,;.]| and ", item["text"][max(begin, 0) + 1 :])[0].lower()))
    difference = len(words & GOOD) - len(words & BAD)
    return "neutral" if difference == 0 else "positive" if difference > 0 else "negative"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        allowed = self.headers["Authorization"] == "Bearer " + os.environ["RULES_KEY"]
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"labels": [label(item) for item in question["items"]]} if allowed else {"error": "wrong key"}
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


ThreadingHTTPServer(("127.0.0.1", 8765), Handler).serve_forever()
