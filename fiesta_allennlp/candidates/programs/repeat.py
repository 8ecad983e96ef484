"""Repeats one run from its `outcome.json`, or one that failed from its `run.json`:

python -m fiesta_allennlp.candidates.programs.repeat DIR/evaluations/CANDIDATE-REPLICATE/outcome.json NEW [PACKAGE ...]

The packages are imported first, as `--include-package` does. The run is made in the current directory of its selection.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.splits import Division
from fiesta_allennlp.core.files import read_json
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.registry import build_record, import_package


def repeat_program(description_file: Path, directory: Path) -> Evaluation:
    """Cut the same sets, and start the same command with the same seeds, in another directory. The model stays."""
    description = read_json(description_file)
    run, request = description["run"], Request(**description["run"]["seeds"])
    division = build_record(Division, run["division"])
    options = {"metric": description["metric"], "group_by": run["group_by"], "division": division}
    candidate = type_of(run["config"])
    directory = directory.absolute()
    directory.mkdir(parents=True)
    if Path(description["working_directory"]).is_dir():
        os.chdir(description["working_directory"])
    candidate_run = candidate.evaluator(vectors={}, keep_models=True, free_device=False, is_trial=False, **options)
    return replace(candidate_run, config=run["config"], working_directory=description["working_directory"]).evaluate(
        request, directory
    )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if Path(sys.argv[2]).exists():
        sys.exit(f"error: {sys.argv[2]} exists already. Choose a new directory.")
    for package in sys.argv[3:]:
        import_package(package)
    evaluation = repeat_program(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{evaluation.metric} {evaluation.score}")
