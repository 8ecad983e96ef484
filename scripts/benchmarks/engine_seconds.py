"""Seconds from the submission of a run to its outcome, one run at a time. As a line of a table in Markdown.

    python scripts/benchmarks/engine_seconds.py --engine slurm

The runs do nothing, so these are the seconds that an engine takes. The command prints a line for each outcome, and
submits the next run at once.
"""

import itertools
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List

from common import make_parser, show
from kill_engines import Engine
from random_kills import ENGINES, write_programs

OUTCOME = re.compile(r"^\[[\d:]+\] program\d-\d+ ")
OPTIONS = "--metric accuracy --strategy non_adaptive_fb --seed 5 --workers 1"


def measure_seconds(engine: Engine, root: Path, num_runs: int) -> List[float]:
    """Return the seconds of all runs but the first, which also starts the engine."""
    options = [*engine.options, *OPTIONS.split(), "--budget", str(num_runs + 1)]
    command = ["select", *write_programs(root, "true"), "-s", str(root / "run"), *options]
    process = subprocess.Popen([sys.executable, "-m", "fiesta_allennlp", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    times = [time.monotonic() for line in process.stdout if OUTCOME.match(line)]
    if process.wait():
        raise SystemExit(f"exit status {process.returncode}")
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="processes", help="what makes the runs")
    parser.add_argument("--number", type=int, default=19, help="of runs (default 19)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ENGINES[args.engine]() as engine:
        seconds = measure_seconds(engine, Path(scratch), args.number)
    low, median, high = min(seconds), statistics.median(seconds), max(seconds)
    show(f"| {args.engine} | {len(seconds)} | {median:.2f} | {low:.2f} | {high:.2f} |")


if __name__ == "__main__":
    main()
