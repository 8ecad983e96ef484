"""The options of `fiesta-documents` as one record."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.settings import ChoiceSettings, check_choices, check_kinds, check_least, fill, registered

TASKS = ("classification", "spans")
ORDERS = ("shared", "independent")

ABOUT_MEASURES = "dirichlet_f_measure"
AVERAGES = {"f_measure": "binary", "macro_f1": "macro", "accuracy": "accuracy"}
"""What the belief about measures calls the metrics."""

NO_LIMIT = 10**9

FIXED_AT_START = ("task", "positive_label", "metric", "fields", "documents_order", "batch_size", "entropy")
"""What decides which scores are made, beside the documents. A selection that is resumed keeps these."""


@dataclass(frozen=True)
class DocumentSettings(ChoiceSettings):
    """What `allennlp fiesta-documents` can be told. Names and defaults are those of the command's options.

    `systems` are `NAME=` and an archive, a file of predictions, a URL or a system's config. `answers` is a file.
    """

    belief: Any = field(default_factory=lambda: {"type": ABOUT_MEASURES, "learn_concentration": True})
    systems: Tuple[str, ...] = ()
    documents: str = ""
    task: str = "classification"
    positive_label: Optional[str] = None
    metric: Optional[str] = None
    fields: str = ""
    documents_order: str = "shared"
    batch_size: int = 1
    answers: Optional[str] = None
    workers: int = 1
    time_limit: float = 60.0
    max_failures: int = 3
    entropy: Optional[int] = None
    include_package: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self, dict.fromkeys(("batch_size", "workers", "max_failures", "entropy"), (int,)))
        check_kinds(self, dict.fromkeys(("documents", "positive_label", "metric", "fields", "answers"), (str,)))
        check_kinds(self, {"time_limit": (int, float), "systems": (tuple,), "include_package": (tuple,)})
        check_choices(self, {"task": TASKS, "documents_order": ORDERS})
        check_least(self, {"batch_size": 1, "workers": 1, "max_failures": 1, "entropy": 0})
        if not self.time_limit > 0:
            raise ConfigError(f"--time-limit must be above 0 but got {self.time_limit:g}.")

    def as_json(self) -> Dict[str, Any]:
        """Plain data, for the store."""
        return {**asdict(self), "systems": list(self.systems), "include_package": list(self.include_package)}

    def believing(self, metric: str) -> "DocumentSettings":
        """These settings with a belief about this metric.

        # Raises

        `ConfigError` : where the belief is about another one.
        """
        belief = registered(self.belief, "--belief")
        if belief["type"] != ABOUT_MEASURES:
            return self
        fill(belief, {"average": AVERAGES[metric]}, "--belief")
        return replace(self, belief=belief)

    def until_documents_end(self) -> "DocumentSettings":
        """These settings with no limit of their own where none is given: documents run out before."""
        has_limit = self.budget is not None or self.max_evaluations is not None
        if has_limit or "max_evaluations" in registered(self.strategy or "ttts", "--strategy"):
            return self
        return replace(self, max_evaluations=NO_LIMIT)


def changed_document_settings(old: Mapping[str, Any], new: DocumentSettings) -> List[str]:
    """The names of settings that a resumed selection must not change but does."""
    return [name for name in FIXED_AT_START if old.get(name) != getattr(new, name)]
