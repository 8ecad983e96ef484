"""Programs that answer by rule and go wrong where they are told to, and documents for them. Each question is logged, so
that tests can count who was asked what, and how often."""

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Dict

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
