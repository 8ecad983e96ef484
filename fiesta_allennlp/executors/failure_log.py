import logging
import shutil
from typing import Optional

from fiesta_allennlp.records import Request
from fiesta_allennlp.run_directory import RunDirectory

logger = logging.getLogger(__name__)


def keep_log(directory: RunDirectory, request: Request) -> Optional[str]:
    """Copy the log of a failed attempt to where the next attempt does not overwrite it; delete what is large.

    Returns its path below the run directory; None where it could not be kept.
    """
    evaluation = directory.evaluation(request.name)
    try:
        for path in [*evaluation.glob("*.th"), *evaluation.glob("*.tar.gz")]:
            path.unlink()
        attempt = 1
        while directory.failure_log(request.name, attempt).exists():
            attempt += 1
        kept = directory.failure_log(request.name, attempt)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory.evaluation_log(request.name), kept)
    except OSError as error:
        logger.warning("the log of %s could not be kept: %s", request.name, error)
        return None
    return str(kept.relative_to(directory.root))
