"""Find the best of several AllenNLP models with as few training runs as possible.

The commands as Python calls are imported at their first use, so that records, probabilities and the store need no
torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from fiesta_allennlp.version import __version__ as __version__

if TYPE_CHECKING:
    from fiesta_allennlp.commands.library import choose_system, confirm, next_runs, plan, replay, select
    from fiesta_allennlp.reports.report_files import report

__all__ = ["choose_system", "confirm", "next_runs", "plan", "replay", "report", "select"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    home = "reports.report_files" if name == "report" else "commands.library"
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> List[str]:
    return sorted([*globals(), *__all__])
