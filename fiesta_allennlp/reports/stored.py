from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

from allennlp.common.util import import_module_and_submodules

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.reports.checklist import Checklist
from fiesta_allennlp.reports.source import Source
from fiesta_allennlp.strategies import Strategy

Built = TypeVar("Built")


@dataclass(frozen=True)
class Stored:
    """What the store of a selection says beside its evaluations, whichever command made it.

    # Parameters

    params : of the strategy, with its belief.
    asked_confidence : None where a budget was given.
    max_failures : of a candidate, before it is withdrawn.
    checklist : from the history.
    finish : adds to the source what only this kind of selection has.
    num_parameters, data : see `Source`.
    """

    metric: str
    strategy: Strategy
    params: Mapping[str, Any]
    asked_confidence: Optional[float]
    max_failures: int
    checklist: Callable[[History], Checklist]
    finish: Callable[[Source], Source] = lambda source: source
    num_parameters: Optional[Mapping[str, int]] = None
    data: str = ""


def importing(packages: Sequence[str], build: Callable[[], Built]) -> Built:
    """What `build` gives, with these packages imported where it needs them.

    # Raises

    `ConfigError` : where they cannot be imported, or do not help.
    """
    try:
        return build()
    except ConfigError:
        if not packages:
            raise
    for package in packages:
        try:
            import_module_and_submodules(package)
        except ImportError as error:
            raise ConfigError(
                f"--include-package {package}, which the selection was started with, cannot be imported: {error}. "
                "Make the report where it can, or put its directory on PYTHONPATH."
            ) from error
    return build()
