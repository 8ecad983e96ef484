"""Reads the data of a report: the selection in a directory, or a table of scores. Nothing is locked or changed.

`fiesta status` reads a directory with this module, so it imports what only documents and tables need inside functions.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.errors import ConfigError, did_you_mean, escape_invisible
from fiesta_allennlp.core.names import numbered_legend
from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS, Decision, History
from fiesta_allennlp.core.registry import build, build_record
from fiesta_allennlp.core.seeding import strategy_rng
from fiesta_allennlp.reports.settings import UNRECORDED_OPTIONS, ReportSettings
from fiesta_allennlp.reports.stored_selection import StoredSelection, open_selection
from fiesta_allennlp.selection.database import translated_store_errors
from fiesta_allennlp.selection.metrics import Metric, score_notes
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.strategy_building import build_strategy, packages_named_in_errors
from fiesta_allennlp.selection.summary import ScoreThreshold, probability_text
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import analyse
from fiesta_allennlp.strategies.stopping_rules import StoppingRule
from fiesta_allennlp.tables.settings import refuse_table_options
from fiesta_allennlp.trainings.settings import Settings

if TYPE_CHECKING:
    from fiesta_allennlp.documents.result import DocumentsResult
    from fiesta_allennlp.documents.settings import DocumentSettings
    from fiesta_allennlp.tables.table import ScoreTable


SCREENING_KIND = "screening"
"""The kind of a search's first stage."""


@dataclass(frozen=True)
class Words:
    """The words of a report for its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"

    def evaluation_noun(self, count: int) -> str:
        return self.evaluation if count == 1 else self.evaluations


RUN_WORDS = Words()
DOCUMENT_WORDS = Words("system", "systems", "document", "documents", "answered documents")
BATCH_WORDS = Words("system", "systems", "batch", "batches", "answered batches")


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """The source of the scores, as far as a report shows it.

    Attributes:
        asked_confidence: the target confidence at which the selection stops. None for a budget or a table.
        running: whether the selection is running now.
        adaptive: whether the number of scores of at least one candidate depends on scores.
        changes: later changes of options that choose runs or stop the selection, as in the store.
        notes: caveats that the report shows.
        words: the nouns of the report.
        splits: the option of a selection, empty for other sources.
        min_score: the score that runs must not miss; None for no such score.
        limit_is_late: whether `min_score` may have been chosen by the scores: not the selection's own, or of a table.
        without_limit: a sentence about the decision of a selection by its own limit, if `min_score` is another one.
        scored: the set that the runs are scored on. Empty where only you or the programs know it.
        sets: the data sets of a selection. Empty where only you or the programs know the data.
        strategy: the registered name of the sampling rule, empty for a table.
        stop: the registered name of the stopping rule, empty without one.
        num_starts: the runs that every candidate began with.
        budget: the number of runs to spend. None without one.
        values: the values of numbered candidates.
    """

    asked_confidence: Optional[float] = None
    running: bool = False
    adaptive: bool = False
    changes: Tuple[Mapping[str, Any], ...] = ()
    notes: Tuple[str, ...] = ()
    words: Words = RUN_WORDS
    splits: str = ""
    min_score: Optional[float] = None
    limit_is_late: bool = False
    without_limit: str = ""
    scored: str = ""
    sets: Tuple[str, ...] = ()
    strategy: str = ""
    stop: str = ""
    num_starts: int = 0
    budget: Optional[int] = None
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def legend(self) -> Tuple[str, ...]:
        return numbered_legend(self.values)

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def by_documents(self) -> bool:
        return self.words != RUN_WORDS


@dataclass(frozen=True)
class SourceData(SourceFacts):
    """The content of a selection or a table of scores.

    Attributes:
        name: the directory or file, as typed.
        metric: the metric with its direction. Scores have their natural sign.
        history: the scores, with the metrics of every evaluation. Evaluations with equal split seed share a split.
        decision: the decision of the selection; for a table, the posterior of all scores.
        belief: the belief of the selection, `belief_name` in its settings. It reads what `history_for_belief` returns.
        test_share: the test share of a random split; None for official splits, or if unknown.
        num_parameters: by candidate, where known.
        table_notes: sentences about the meaning of a table's splits and seeds.
        table_target: the target confidence of a table that is not decided; None if it is.
        table_files: the files of a table; empty if it came from Python.
        documents_result: the current result of a selection by documents.
        selection: the store of a selection; None for other sources.
        settings: the settings of a selection.
        strategy_params: the config of its strategy.
        table: the table.
        compared: the two sources of a comparison between sources, each with its typed text.
        full_source: the source that these candidates were chosen from, with all its candidates.
    """

    name: str
    metric: Metric
    history: History
    decision: Decision
    belief: Belief
    belief_name: str
    test_share: Optional[float] = None
    num_parameters: Mapping[str, Optional[int]] = field(default_factory=dict)
    table_notes: Tuple[str, ...] = ()
    table_target: Optional[float] = None
    table_files: Tuple[str, ...] = ()
    documents_result: "Optional[DocumentsResult]" = None
    selection: Optional[StoredSelection] = None
    settings: "Union[Settings, DocumentSettings, None]" = None
    strategy_params: Mapping[str, Any] = field(default_factory=dict)
    table: "Optional[ScoreTable]" = None
    compared: "Tuple[Tuple[str, SourceData], ...]" = ()
    full_source: "Optional[SourceData]" = None

    @property
    def is_selection(self) -> bool:
        """True if runs were chosen one after the other. The scores of a table have no order."""
        return self.selection is not None

    @property
    def data_fingerprint(self) -> str:
        """A digest of the data: equal split seeds mean equal splits of equal data. Empty where it is not known."""
        return "" if self.selection is None else self.selection.fingerprint

    def history_for_belief(self, history: History) -> History:
        """Return the history for the belief, with negated scores if the metric is minimised."""
        return history.negated if self.metric.minimise else history

    @property
    def development_metric(self) -> Optional[str]:
        """The metric that is the development score; None if no run reports one, or if it is the score itself."""
        if self.scored == "validation":
            return None
        name = f"best_validation_{self.metric.name}"
        return name if any(name in evaluation.metrics for evaluation in self.history.evaluations) else None

    @cached_property
    def result(self) -> Result:
        """The current content of `selection.json`."""
        return self.documents_result or Result.from_decision(
            self.history,
            self.decision,
            self.metric,
            splits=self.splits,
            strategy=self.strategy_params,
            score=self.scored or "test",
            min_score=self.min_score,
            sets=self.sets if self.is_selection else None,
        )

    def check_name(self, name: str) -> None:
        """Refuse the name of an unknown candidate."""
        names = self.history.candidates
        if name not in names:
            suggestion = did_you_mean(name, names, max_names=2)
            raise ConfigError(f"{self.name}: unknown candidate '{name}'.{suggestion} Candidates: {', '.join(names)}.")

    def restrict(self, names: Sequence[str]) -> "SourceData":
        """Return the same with these candidates only, withdrawn or not, and a decision about them alone."""
        history = restrict_history(self.history, names)
        decision = analyse(self.history_for_belief(history), self.belief, margin=self.decision.margin).decision
        return replace(self, history=history, decision=decision, full_source=self)


def restrict_history(history: History, names: Sequence[str]) -> History:
    """Return the history of these candidates, none of them withdrawn, without what is pending."""
    return History(
        candidates=tuple(names),
        evaluations=tuple(e for e in history.evaluations if e.request.candidate in names),
        failures=tuple(f for f in history.failures if f.request.candidate in names),
    )


def read_selection(root: Path, settings: ReportSettings) -> SourceData:
    """Read the selection in a directory. Refuse options that are for tables of scores."""
    refuse_table_options(settings, UNRECORDED_OPTIONS, root)
    return read_directory(root, min_score=settings.min_score)


def read_directory(root: Path, *, min_score: Optional[float] = None) -> SourceData:
    """Read the selection in a directory, by default with its own score that runs must not miss."""
    with open_selection(root) as selection:
        if selection.meta.kind == SCREENING_KIND:
            raise ConfigError(
                f"{root}: this is the first stage of a search. Pass the directory of the search, {root.parent}."
            )
        if selection.meta.kind != "documents":
            source = _read_runs(selection, None)
            if min_score in (None, source.min_score):
                return source
            without_limit = _describe_own_limit(source)
            return replace(_read_runs(selection, min_score), limit_is_late=True, without_limit=without_limit)
        if min_score is not None:
            raise ConfigError(f"--min-score is for runs, but {root} asked systems about documents. Remove --min-score.")
        return _read_documents(selection)


def _describe_own_limit(source: SourceData) -> str:
    leading, confidence = source.result.leading, source.result.confidence
    if leading is None or confidence is None:
        return ""
    own_limit = source.min_score
    condition = "Without it" if own_limit is None else f"With the selection's own --min-score {own_limit:g}"
    return f"{condition}, {leading} leads with P(best) {probability_text(confidence)}."


def _read_runs(selection: StoredSelection, min_score: Optional[float]) -> SourceData:
    with translated_store_errors(selection.directory.store):
        settings = selection.meta.to_settings(Settings)
    score_threshold = ScoreThreshold.from_settings(selection.meta.settings or {}, min_score)
    metric, set_names = settings.scored_by, tuple(selection.preparations[selection.names[0]].pool.official)
    with packages_named_in_errors(settings.include_package):
        strategy = build_strategy(settings, selection.names, minimise=metric.minimise)
    history = selection.read_history(max_failures=settings.max_failures, score_threshold=score_threshold)
    return replace(
        _read_common_data(selection, history, strategy, settings.strategy_params(), metric=metric),
        settings=settings,
        min_score=score_threshold.score,
        num_parameters={name: preparation.num_parameters for name, preparation in selection.preparations.items()},
        splits=settings.splits,
        scored=settings.score if set_names or settings.score == "validation" else "",
        sets=set_names,
        values=selection.candidate_values(selection.names),
        test_share=None if settings.on_official_splits else selection.share_of_set(settings.score),
    )


def _read_documents(selection: StoredSelection) -> SourceData:
    from fiesta_allennlp.documents.answers import read_charges
    from fiesta_allennlp.documents.choice import DocumentFacts, DocumentsSetup, answers_path, build_task
    from fiesta_allennlp.documents.settings import DocumentSettings

    with translated_store_errors(selection.directory.store):
        settings = selection.meta.to_settings(DocumentSettings)
        document_facts = build_record(DocumentFacts, selection.meta.document_facts or {})
    task = build_task(settings)
    choice = DocumentsSetup.of(settings, task, document_facts, selection.names)
    history = selection.read_history(max_failures=settings.max_failures)
    metric = Metric.parse(task.metric)
    source = _read_common_data(selection, history, choice.strategy, choice.strategy_params, metric=metric)
    charges = read_charges(answers_path(settings, selection.directory), run=str(selection.meta.run))
    return replace(
        source,
        settings=settings,
        documents_result=choice.result(source.history, source.decision, seed=str(selection.meta.seed), charges=charges),
        words=DOCUMENT_WORDS if settings.batch_size == 1 else BATCH_WORDS,
    )


def _read_common_data(
    selection: StoredSelection, history: History, strategy: Strategy, params: Mapping[str, Any], *, metric: Metric
) -> SourceData:
    """Read what all selections have in common."""
    is_running, decision = selection.is_running, strategy.recommend(history)
    stopped_by = decision.stopped_by
    if stopped_by is None and not is_running:
        stopped_by = selection.find_stop_reason(history)
    rng = strategy_rng(int(selection.meta.seed or 0), len(history.evaluations))
    decision = replace(
        decision,
        stopped_by=stopped_by,
        expected_loss=strategy.expected_loss(history),
        plain_loop=strategy.plain_loop(history, rng),
        credible_margin=strategy.credible_margin(history) if stopped_by in INCONCLUSIVE_REASONS else None,
    )
    scores = {name: history.scores(name).tolist() for name in history.candidates}
    base_strategy = getattr(strategy, "strategy", strategy)
    return SourceData(
        name=str(selection.directory.root),
        notes=tuple(score_notes(scores, metric)),
        selection=selection,
        metric=replace(metric, name=escape_invisible(metric.name)),  # somebody else may have chosen it
        history=history,
        decision=decision,
        belief=build(Belief, params["belief"]),
        belief_name=params["belief"]["type"],
        strategy=params["type"],
        stop=params.get("stop", {"type": str(StoppingRule.default)})["type"] if hasattr(base_strategy, "stop") else "",
        num_starts=getattr(base_strategy, "num_starts", 0),
        budget=getattr(base_strategy, "budget", None),
        asked_confidence=getattr(base_strategy, "confidence", None),
        strategy_params=params,
        changes=selection.meta.changes,
        adaptive=True,
        running=is_running and stopped_by is None,
    )
