"""The outcome that a run leaves in its directory, for whoever recovers the selection."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Optional

from fiesta_allennlp.directory import OUTCOME
from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.files import replacing
from fiesta_allennlp.records import Evaluation, Request
from fiesta_allennlp.selection.metrics import usable


def write_outcome(evaluation: Evaluation, directory: Path) -> None:
    """Leave an outcome for whoever recovers the selection, should the parent die before it records it."""
    with replacing(directory / OUTCOME) as part:
        part.write_text(json.dumps(_recorded(evaluation)), encoding="utf-8")


def read_outcome(request: Request, directory: Path, metric: str) -> Optional[Evaluation]:
    """The outcome that `write_outcome` left of this request; None where there is none, or its metric is another. A file
    of another form, which a model or a program may write under the same name, is none."""
    try:
        outcome = json.loads((directory / OUTCOME).read_text(encoding="utf-8"))
        evaluation = Evaluation(request=request, **outcome)
        usable(evaluation.score, OUTCOME)
    except (OSError, ValueError, TypeError, FiestaError):
        return None
    is_whole = set(outcome) == set(_recorded(evaluation)) and isinstance(evaluation.metrics, dict)
    return evaluation if is_whole and evaluation.metric == metric else None


def _recorded(evaluation: Evaluation) -> Dict[str, Any]:
    """The content of an outcome file: all of a run except its request."""
    return {f.name: getattr(evaluation, f.name) for f in fields(Evaluation) if f.name != "request"}
