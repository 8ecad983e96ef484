"""Stands for a chat completions service: its answers are as good as the prompt. It requires a key.

A prompt that names the target is answered for the part of the sentence with the target, and any other for the whole
sentence. Negations are understood if the prompt has examples.
"""

import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = (
    "wonderful superb lovely charming splendid perfect fresh generous tasty first-rate memorable fabulous excellent "
    "delightful pleasant brilliant gorgeous divine loved adored enjoyed praised treasured"
)
BAD = (
    "awful dreadful stale bland rude tiny overpriced soggy dismal terrible horrid burnt second-rate dirty forgettable "
    "disappointing tired sad hated loathed disliked regretted dreaded"
)


def complete(prompt):
    """Answer with one word, as the prompts ask."""
    fields = dict(re.findall(r"^(Sentence|Target): (.*)$", prompt, flags=re.MULTILINE))
    parts = re.split(r"[,;.!]| and | but ", fields["Sentence"])
    part = next((one for one in parts if "Target" in fields and fields["Target"] in one), fields["Sentence"])
    words = set(re.findall(r"[\w-]+", part.lower()))
    difference = len(words & set(GOOD.split())) - len(words & set(BAD.split()))
    if "Example" in prompt and words & {"not", "nobody", "nothing"} and "more" not in words:
        difference = -difference
    return "Neutral" if difference == 0 else "Positive" if difference > 0 else "Negative"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        allowed = self.headers["Authorization"] == "Bearer " + os.environ["API_KEY"]
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"error": "wrong key"}
        if allowed:
            answer = {"choices": [{"message": {"content": complete(request["messages"][-1]["content"])}}]}
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *args):
        """Keep quiet about each request."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8766), Handler).serve_forever()
