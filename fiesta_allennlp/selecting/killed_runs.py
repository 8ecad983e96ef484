"""Runs whose command or process was killed after they had finished, so that no result is lost."""

import logging
from typing import Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome, Request
from fiesta_allennlp.running.executor import Evaluator

logger = logging.getLogger(__name__)


def find_finished_run(evaluator: Evaluator, request: Request, directory: RunDirectory) -> Optional[Evaluation]:
    """Return the result that a pending run has left in its directory; None if it has not finished."""
    run = evaluator.for_request(request)
    evaluation = run.salvage(request, directory.evaluation(request.name))
    if evaluation is not None:
        logger.info("%s had finished before it was killed; recording its score", request.name)
    return evaluation


def finished_or_failed(evaluator: Evaluator, outcome: Outcome, directory: RunDirectory) -> Outcome:
    """Return the outcome, or the score of a run that had finished when its process was ended."""
    if not isinstance(outcome, Failure) or outcome.kind == "error":
        return outcome
    return find_finished_run(evaluator, outcome.request, directory) or outcome
