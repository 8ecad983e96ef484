"""Opens what a report is made from: the selection in a directory, or a table of scores."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.beliefs.dirichlet_f_measure import FMeasurePosterior
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.errors import ConfigError, StoreError, visible
from fiesta_allennlp.records import UNDECIDED, Decision, History
from fiesta_allennlp.registry import build
from fiesta_allennlp.replays.files import read_csv, read_json
from fiesta_allennlp.replays.settings import done_note
from fiesta_allennlp.replays.sources import METRIC
from fiesta_allennlp.replays.table import history_of
from fiesta_allennlp.reports.checklist import documents_checklist, selection_checklist, table_checklist
from fiesta_allennlp.reports.content import BATCHES, DOCUMENTS
from fiesta_allennlp.reports.formats import Interval
from fiesta_allennlp.reports.screening import screening_report
from fiesta_allennlp.reports.single_scores import LEVEL
from fiesta_allennlp.reports.source import Source
from fiesta_allennlp.reports.stored import Stored, opened
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import overlay, registered
from fiesta_allennlp.selection.strategy_building import build_strategy, not_importing
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import all_finished, believed
from fiesta_allennlp.trainings.settings import merge

SCREENING = "screening"
"""The kind of a search's first stage."""

SCORE_ENDINGS = (".json", ".csv")


@dataclass(frozen=True)
class TableOptions:
    """How to read a table of scores and what to believe of it; a selection knows both itself.

    Attributes:
        evaluations_per_split: so many consecutive scores of a JSON table share a split; 1 where it is None.
        belief: a registered name, or a config, of the belief to compute on all scores; `split_paired` where it is None.
        minimise: the lowest mean is the best. A CSV file can say so itself.
        columns: the names that a CSV file gives to some of its columns.
        done: candidates that get no further runs.
    """

    evaluations_per_split: Optional[int] = None
    belief: Any = None
    minimise: bool = False
    columns: Optional[Mapping[str, str]] = None
    done: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.evaluations_per_split is not None and self.evaluations_per_split < 1:
            raise ConfigError(f"--evaluations-per-split must be at least 1 but got {self.evaluations_per_split}.")


def open_source(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Source:
    """The selection in a directory, or the table in a file.

    Raises:
        FiestaError: where there is neither, or it is damaged, or an option does not go with it.
    """
    if path.is_dir():
        if options != TableOptions():
            given = (
                ("belief", options.belief is not None),
                ("minimise", options.minimise),
                ("columns", options.columns is not None),
                ("done", bool(options.done)),
            )
            name = next((name for name, is_given in given if is_given), "evaluations-per-split")
            raise ConfigError(
                f"--{name} is for tables of scores: the selection in {path} keeps to its own. Leave the option out."
            )
        return from_directory(path)
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return from_scores(path, options, least_candidates=least_candidates)
    what = "is neither a directory nor a file that ends with .json or .csv" if path.exists() else "does not exist"
    raise ConfigError(
        f"{path}: {what}. Give the directory of a selection, the one after -s, or a table of scores as fiesta-replay "
        "reads it."
    )


def from_directory(root: Path) -> Source:
    """Everything that a report needs of the selection in a directory. Nothing there is locked or changed.

    Raises:
        StoreError: where there is no selection, its store is damaged, or an older version wrote down too little.
        ConfigError: where its strategy or belief belongs to a package that was not imported.
    """
    with opened(root) as stored:
        if stored.meta.kind == SCREENING:
            raise ConfigError(
                f"{root}: this is the first stage of a search. Give the directory of the search, {root.parent}."
            )
        return _by_documents(stored) if stored.by_documents else _by_trainings(stored)


def _by_trainings(stored: Stored) -> Source:
    settings = merge(stored.meta.settings or {})
    metric = settings.scored_by
    strategy = not_importing(
        settings.include_package, lambda: build_strategy(settings, stored.names, minimise=metric.minimise)
    )
    source = _selection(
        stored,
        strategy,
        settings.strategy_params(),
        metric=metric.typed,
        max_failures=settings.max_failures,
        asked_confidence=getattr(strategy, "confidence", None),
    )
    return replace(
        source,
        screening=screening_report(stored.directory, stored.meta.seed, source.summary()["candidates"]),
        num_parameters={candidate.name: candidate.facts["num_parameters"] for candidate in stored.candidates},
        data=stored.fingerprint,
        splits=settings.splits,
        scored=settings.score,
        checklist=selection_checklist(stored, settings, source.history, asked_confidence=source.asked_confidence),
    )


def _by_documents(stored: Stored) -> Source:
    from fiesta_allennlp.documents.answers import read_charges
    from fiesta_allennlp.documents.choice import DocumentChoice, DocumentFacts, answers_path, task_of

    root, facts = stored.directory.root, stored.meta.document_facts
    if facts is None:
        raise StoreError(
            f"{root}: the selection was made by an older version, which did not write down what a report needs. Let "
            f"allennlp fiesta-documents -s {root} --recover add it: no answer is paid for again."
        )
    settings = DocumentSettings(**overlay(stored.meta.settings or {}, of=DocumentSettings))
    task = task_of(settings)
    choice = not_importing(
        settings.include_package, lambda: DocumentChoice.of(settings, task, DocumentFacts(**facts), stored.names)
    )
    source = _selection(
        stored,
        choice.strategy,
        choice.strategy_params,
        metric=task.metric,
        max_failures=settings.max_failures,
        asked_confidence=getattr(choice.strategy.strategy, "confidence", None),
    )
    charges = read_charges(answers_path(settings, root) or stored.directory.answers, run=str(stored.meta.run))
    return replace(
        source,
        documents=choice.summary(source.history, source.decision, seed=str(stored.meta.seed), charges=charges),
        words=DOCUMENTS if settings.batch_size == 1 else BATCHES,
        intervals=_intervals(source.history, source.belief),
        checklist=documents_checklist(stored, choice, source.history, asked_confidence=source.asked_confidence),
    )


def _intervals(history: History, belief: Belief) -> Dict[str, Interval]:
    """Of every system's measure, where the belief is about measures and knows enough of all."""
    if not history.active or not all_finished(history, history.active, belief.min_evaluations):
        return {}
    posterior = belief.posterior(history)
    if not isinstance(posterior, FMeasurePosterior):
        return {}
    ends = posterior.interval(LEVEL).tolist()
    return {name: (low, high) for name, (low, high) in zip(history.active, ends, strict=True)}


def _selection(
    stored: Stored,
    strategy: Strategy,
    params: Mapping[str, Any],
    *,
    metric: str,
    max_failures: int,
    asked_confidence: Optional[float],
) -> Source:
    """What all selections have in common. `params` are the strategy's, with its belief."""
    running, history = stored.running, stored.history(max_failures=max_failures)
    decision = strategy.recommend(history)
    if decision.stopped_by is None and not running:
        decision = replace(decision, stopped_by=stored.stopped_by(len(history.evaluations)))
    if decision.stopped_by in UNDECIDED:
        decision = replace(decision, credible_margin=strategy.credible_margin(history))
    return Source(
        name=str(stored.directory.root),
        metric=visible(metric),  # somebody else may have chosen it
        history=history,
        decision=decision,
        belief=build(Belief, params["belief"]),
        belief_name=params["belief"]["type"],
        strategy=params["type"],
        asked_confidence=asked_confidence,
        changes=stored.meta.changes,
        is_selection=True,
        adaptive=True,
        running=running and decision.stopped_by is None,
    )


def from_scores(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Source:
    """Everything that a report needs of a table of scores, as `fiesta-replay` reads them.

    Raises:
        ConfigError: where there is no such file or belief.
        DataError: where the content is wrong, or there are fewer than `least_candidates`.
    """
    per_split = options.evaluations_per_split
    if path.suffix == ".csv" and per_split is not None:
        raise ConfigError(
            f"--evaluations-per-split: {path} says itself which scores share a split. Leave the option out."
        )
    is_csv = path.suffix == ".csv"
    columns = options.columns
    table = read_csv(path, least_candidates, columns) if is_csv else read_json(path, per_split or 1, least_candidates)
    default = "unpaired" if table.on_official_splits else "split_paired"
    params = registered(options.belief or default, "--belief")
    try:
        belief = build(Belief, params)
    except ConfigError as error:
        raise ConfigError(f"--belief {params['type']}: {error}") from error
    history = history_of(table)
    source = Source(
        name=str(path),
        metric=Metric(METRIC, minimise=options.minimise or table.minimise).typed,
        history=history,
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        checklist=table_checklist(path, table),
        split_names=tuple(table.split_names),
        table_notes=(*table.notes, *done_note(options.done)),
    )
    for name in options.done:
        source.check_name(name)
    return replace(source, decision=believed(history, source.directed_belief).decision)
