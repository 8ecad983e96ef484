"""Find the best of several AllenNLP models with as few training runs as possible.

The commands as Python calls are imported at their first use, so that records, probabilities and the store need no
torch.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from fiesta_allennlp.version import ALLENNLP

if TYPE_CHECKING:
    from fiesta_allennlp.library import choose_system, next_runs, plan, replay, search, select
    from fiesta_allennlp.reports.report import report

__all__ = ["choose_system", "next_runs", "plan", "replay", "report", "search", "select"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    home = "reports.report" if name == "report" else "library"
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> List[str]:
    return sorted([*globals(), *__all__])


class _MissingAllenNLP(MetaPathFinder):
    """Tells what to type if AllenNLP is imported but not installed. From Python 3.11 on its own pins have no solution,
    so the extra requires what AllenNLP needs, but not AllenNLP."""

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name == "allennlp":
            line = "pip install '.[allennlp]'"
            if sys.version_info >= (3, 11):
                line += f" && pip install --no-deps allennlp=={ALLENNLP}"
            raise ModuleNotFoundError(
                f"AllenNLP is not installed. In a clone of fiesta_allennlp, type: {line}", name=name
            )
        return None


sys.meta_path.append(_MissingAllenNLP())
