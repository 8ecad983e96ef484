"""The options of `fiesta-documents` as one record."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Optional, Tuple

from fiesta_allennlp.selection.options import option
from fiesta_allennlp.selection.settings import CHOOSING, SelectionSettings, fill, registered

DOCUMENTS = "which documents, and how to score"
WORKING = "how to work"

TASKS = ("classification", "spans")
ORDERS = ("shared", "independent")

ABOUT_MEASURES = "dirichlet_f_measure"
AVERAGES = {"f_measure": "binary", "macro_f1": "macro", "accuracy": "accuracy"}
"""What the belief about measures calls the metrics."""

NO_LIMIT = 10**9


def _learned_concentration() -> Any:
    return {"type": ABOUT_MEASURES, "learn_concentration": True}


@dataclass(frozen=True)
class DocumentSettings(SelectionSettings):
    """What `allennlp fiesta-documents` can be told. Names and defaults are those of the command's options.

    `systems` are `NAME=` and an archive, a file of predictions, a URL or a system's config. `answers` is a file.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (DOCUMENTS, CHOOSING, WORKING)

    belief: Any = option(
        None,
        "by default dirichlet_f_measure with a learned concentration; or a name alone, or a JSON object",
        factory=_learned_concentration,
        group=CHOOSING,
        metavar="NAME|JSON",
    )
    budget: Optional[int] = option(
        None, "make so many evaluations in all and name the best, in place of --confidence", group=CHOOSING
    )
    margin: Optional[float] = option(None, "be content with a system this near to the best (default 0)", group=CHOOSING)
    max_evaluations: Optional[int] = option(
        None, "give up undecided after so many in all (default: when the documents run out)", group=CHOOSING
    )
    systems: Tuple[str, ...] = option(
        (),
        "two or more of NAME=model.tar.gz, NAME=predictions.jsonl, NAME=http://host/path, NAME=system.jsonnet",
        metavar="SYSTEM",
    )
    documents: str = option(
        "", "JSONL: a document with its gold annotation in each line", group=DOCUMENTS, metavar="FILE.jsonl"
    )
    task: str = option(
        "classification",
        "classification (default) or spans",
        group=DOCUMENTS,
        metavar="|".join(TASKS),
        choices=TASKS,
        is_fixed=True,
    )
    positive_label: Optional[str] = option(
        None,
        "the label whose F-measure counts; without it, macro-F over all",
        group=DOCUMENTS,
        metavar="L",
        is_fixed=True,
    )
    metric: Optional[str] = option(
        None, "accuracy, in place of the F-measure; for classification", group=DOCUMENTS, is_fixed=True
    )
    fields: str = option(
        "",
        "what the file calls id, items, label, tags, spans, such as id=key,label=sentiment",
        group=DOCUMENTS,
        is_fixed=True,
    )
    documents_order: str = option(
        "shared",
        "shared (default): all systems get the documents in one random order; independent: each in its own, as in the "
        "paper",
        group=DOCUMENTS,
        metavar="|".join(ORDERS),
        choices=ORDERS,
        is_fixed=True,
    )
    batch_size: int = option(1, "documents of one evaluation (default 1)", group=DOCUMENTS, least=1, is_fixed=True)
    answers: Optional[str] = option(
        None,
        "where answers are kept, for later selections too (default: answers.sqlite in the directory)",
        group=WORKING,
        metavar="FILE",
    )
    workers: int = option(1, "queries at once (default 1)", group=WORKING, least=1)
    time_limit: float = option(60.0, "seconds that an answer may take (default 60)", group=WORKING, above=0)
    max_failures: int = option(
        3, "withdraw a system after so many failed evaluations (default 3)", group=WORKING, least=1
    )
    entropy: Optional[int] = option(
        None,
        "the root of all chance, to repeat a selection; by default fresh and recorded",
        group=WORKING,
        least=0,
        is_fixed=True,
    )
    include_package: Tuple[str, ...] = option(
        (),
        "additional packages to include",
    )

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
        if has_limit or "max_evaluations" in registered(self.strategy or "top_two", "--strategy"):
            return self
        return replace(self, max_evaluations=NO_LIMIT)
