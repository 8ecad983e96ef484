"""What a report of a large selection costs: makes a store as a selection leaves it, and times the report of it.

    PYTHONPATH=. python scripts/benchmarks/report.py --candidates 40 --evaluations 2000

The time to start an `allennlp` command, some seconds, is not in it.
"""

import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import DefaultDict, List

os.environ.setdefault("OMP_NUM_THREADS", "1")

from common import make_parser, synthetic_evaluations

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.core.records import Evaluation
from fiesta_allennlp.reports.pages import write_report
from fiesta_allennlp.reports.report import report
from tests.selections import write_selection


def write_store(directory: Path, evaluations: List[Evaluation]) -> None:
    """A selection in a new directory that made these evaluations and was then interrupted."""
    scores: DefaultDict[str, List[float]] = defaultdict(list)
    development: DefaultDict[str, List[float]] = defaultdict(list)
    for evaluation in evaluations:
        scores[evaluation.request.candidate].append(evaluation.score)
        development[evaluation.request.candidate].append(evaluation.metrics["best_validation_f1"])
    write_selection(directory, scores, development=development).close()


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--candidates", type=int, default=40)
    parser.add_argument("--evaluations", type=int, default=2000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run, out = Path(scratch) / "run", Path(scratch) / "report"
        write_store(run, synthetic_evaluations(args.candidates, args.evaluations))
        out.mkdir()
        begin, cpu = time.perf_counter(), time.process_time()
        made = report(run)
        gathered = time.perf_counter() - begin
        write_report(made, out)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        print(f"{args.candidates} candidates, {args.evaluations} evaluations, {len(made.path)} points of P(best):")
        print(f"numbers {gathered:.1f} s, files {seconds - gathered:.1f} s; processor time of both {cpu:.1f} s")
        paths = [path for path in out.rglob("*") if path.is_file()]
        for path in sorted(paths, key=lambda path: -path.stat().st_size):
            print(f"{path.stat().st_size / 1000:10.0f} kB  {path.name}")
        print(f"{sum(path.stat().st_size for path in paths) / 1000:10.0f} kB  in all")


if __name__ == "__main__":
    main()
