"""Repeats one run of a program from its `program.json`:

python -m fiesta_allennlp.trainings.programs.repeat DIR/evaluations/CANDIDATE-REPLICATE/program.json NEW
"""

import json
import sys
from pathlib import Path

from fiesta_allennlp.records import Evaluation, Request
from fiesta_allennlp.splits import Division
from fiesta_allennlp.trainings.programs.run import ProgramRun


def repeat_program(program_json: Path, directory: Path) -> Evaluation:
    """Cut the same sets, and start the same command with the same seeds, in another directory. The model stays."""
    done = json.loads(program_json.read_text(encoding="utf-8"))
    run, request = done["run"], Request(**done["run"]["seeds"])
    division = {**run["division"], "ratios": tuple(run["division"]["ratios"])}
    return ProgramRun(
        run["config"],
        metric=done["metric"],
        working_directory=done["working_directory"],
        group_by=run["group_by"],
        keep_models=True,
        division=Division(**division),
    ).evaluate(request, directory)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if Path(sys.argv[2]).exists():
        sys.exit(f"error: {sys.argv[2]} exists already. Choose a new directory.")
    made = repeat_program(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{made.metric} {made.score}")
