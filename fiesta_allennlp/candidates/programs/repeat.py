"""Repeats one run from its `outcome.json`, or one that failed from its `run.json`:

python -m fiesta_allennlp.candidates.programs.repeat DIR/evaluations/CANDIDATE-REPLICATE/outcome.json NEW [PACKAGE ...]

The packages are imported first, as `--include-package` does. The run is made in the current directory of its selection.
"""

import os
import sys
from pathlib import Path

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.splits import Division
from fiesta_allennlp.core.files import read_json
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.registry import build_record, import_package


def repeat_program(description_file: Path, directory: Path) -> Evaluation:
    """Cut the same sets, and start the same command with the same seeds, in another directory. The model stays."""
    description = read_json(description_file)
    run, working_directory = description["run"], description["working_directory"]
    candidate_run = type_of(run["config"]).run_class(
        run["config"],
        description["metric"],
        group_by=run["group_by"],
        division=build_record(Division, run["division"]),
        keep_models=True,
        working_directory=working_directory,
    )
    directory = directory.absolute()
    directory.mkdir(parents=True)
    if Path(working_directory).is_dir():
        os.chdir(working_directory)
    return candidate_run.evaluate(Request(**run["seeds"]), directory)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if Path(sys.argv[2]).exists():
        sys.exit(f"error: {sys.argv[2]} exists already. Choose a new directory.")
    for package in sys.argv[3:]:
        import_package(package)
    evaluation = repeat_program(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{evaluation.metric} {evaluation.score}")
