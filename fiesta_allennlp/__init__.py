"""Find the best of several AllenNLP models with as few trainings as possible.

`select`, `replay` and `report` are the commands as Python calls. They are imported when they are first asked for, so
that the records, the choosing wing and the probabilities can be used without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from fiesta_allennlp.library import replay, select
    from fiesta_allennlp.reporting import report

__all__ = ["replay", "report", "select"]

_HOMES = {"replay": "library", "select": "library", "report": "reporting"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> List[str]:
    return sorted([*globals(), *__all__])
