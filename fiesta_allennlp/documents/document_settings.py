"""The options of `fiesta-documents` as one record."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Optional, Tuple

from fiesta_allennlp.core import choice_settings, options
from fiesta_allennlp.core.errors import ConfigError

DOCUMENTS_GROUP = "Documents and scoring"

TASKS, ORDERS = ("classification", "spans"), ("shared", "independent")

DEFAULT_BELIEF = "paired_measure"
DEFAULT_STOP = "enough_documents"
PAPER_BELIEF = "dirichlet_f_measure"
AVERAGE_BY_METRIC = {"f_measure": "binary", "macro_f1": "macro", "accuracy": "accuracy"}
"""The names of the metrics in the belief about measures."""

document_option = partial(options.option, group=DOCUMENTS_GROUP, is_fixed=True)
"""Declares an option that decides which scores are made, so it is fixed once a selection has begun."""


@dataclass(frozen=True)
class DocumentSettings(choice_settings.SelectionSettings):
    """The settings of `fiesta-documents`. Names and defaults are those of the command's options.

    `systems` are `NAME=` and an archive, a file of predictions or a system's config. `answers` is a file.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (DOCUMENTS_GROUP, options.SELECTION_GROUP, options.RESOURCES_GROUP)
    default_stop: ClassVar[str] = DEFAULT_STOP

    belief: Any = options.selection_option(
        None,
        f"model of the scores: {DEFAULT_BELIEF} (default), another name, or a JSON object with a `type`",
        factory=lambda: {"type": DEFAULT_BELIEF},
        metavar=choice_settings.CONFIG_METAVAR,
        decides="both",
    )
    stop: Any = options.restated_option(
        choice_settings.SelectionSettings,
        "stop",
        help=f"stopping rule: {DEFAULT_STOP} (default), bayesian or glr (guaranteed error rate); or JSON",
    )
    margin: Optional[float] = options.restated_option(
        choice_settings.SelectionSettings,
        "margin",
        help="accept a system within MARGIN of the best (default 0)",
        parse=None,
    )
    max_evaluations: Optional[int] = options.restated_option(
        choice_settings.SelectionSettings,
        "max_evaluations",
        help="stop after this many answers (default: when documents run out)",
    )
    systems: Tuple[str, ...] = options.option(
        (), "two or more of NAME=model.tar.gz, NAME=predictions.jsonl, NAME=system.jsonnet", metavar="SYSTEM"
    )
    documents: str = options.option(
        "", "a JSONL file of annotated documents", group=DOCUMENTS_GROUP, metavar="FILE.jsonl"
    )
    task: str = document_option("classification", "what the systems annotate: classification or spans", choices=TASKS)
    positive_label: Optional[str] = document_option(None, "score by the F-measure of this label alone", metavar="L")
    metric: Optional[str] = document_option(None, "accuracy: score classification by accuracy instead of the F-measure")
    fields: str = document_option("", "the file's names for id, items, label, tags, spans, such as label=sentiment")
    documents_order: str = document_option(
        "shared", "shared: one random order for all systems; independent: each its own, as in the paper", choices=ORDERS
    )
    batch_size: int = document_option(1, "documents per query", least=1)
    answers: Optional[str] = options.resource_option(
        None, "file of answers to reuse and extend, in any selection (default: DIR/answers.sqlite)", metavar="FILE"
    )
    workers: int = options.resource_option(1, "number of parallel queries", least=1)
    time_limit: float = options.resource_option(60.0, "seconds to wait for an answer", above=0)
    max_failures: int = choice_settings.max_failures_option("system", "queries")
    seed: Optional[int] = choice_settings.seed_option(options.RESOURCES_GROUP)
    include_package: Tuple[str, ...] = options.option((), "packages to import first")

    def with_metric_defaults(self, metric: str) -> "DocumentSettings":
        """Return these settings with a belief about this metric, and with the stopping rule for documents. Refuse a
        belief that cannot model the metric."""
        strategy = choice_settings.to_config(self.strategy, "--strategy") if self.strategy else {}
        belief = choice_settings.to_config(strategy.get("belief") or self.belief or DEFAULT_BELIEF, "--belief")
        if belief["type"] == PAPER_BELIEF and AVERAGE_BY_METRIC[metric] != "binary":
            raise ConfigError(f"--belief {PAPER_BELIEF} needs --positive-label, whose F-measure it models.")
        if belief["type"] == DEFAULT_BELIEF:
            choice_settings.fill_options(belief, {"average": AVERAGE_BY_METRIC[metric]}, "--belief")
        if "belief" in strategy:
            strategy["belief"] = belief
        complete = replace(self, strategy=strategy or None, belief=belief)
        if "stop" in strategy or (self.budget or strategy.get("budget")) is not None:
            return complete
        stop = choice_settings.to_config(self.stop or self.default_stop, "--stop")
        if stop["type"] == self.default_stop and self.batch_size > 1:
            choice_settings.fill_options(stop, {"batch_size": self.batch_size}, "--stop")
        return replace(complete, stop=stop)
