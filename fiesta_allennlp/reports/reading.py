"""Reads what a report is made from: the selection in a directory, or a table of scores. Nothing is locked or changed.

`fiesta status` reads a directory with this module alone, so it imports what only a report needs inside functions.
"""

import json
import os
import platform
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, StoreError, command, did_you_mean, visible
from fiesta_allennlp.names import legend, values_in
from fiesta_allennlp.records import UNDECIDED, Decision, History
from fiesta_allennlp.registry import build
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL, overlay, registered
from fiesta_allennlp.selection.store import StoreReader, reading
from fiesta_allennlp.selection.strategy_building import build_strategy, not_importing
from fiesta_allennlp.selection.summary import summarise
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import all_finished, believed
from fiesta_allennlp.trainings.settings import Settings, merge

if TYPE_CHECKING:
    from fiesta_allennlp.documents.choice import DocumentChoice
    from fiesta_allennlp.reports.formats import Interval
    from fiesta_allennlp.reports.search import ScreeningReport

SCREENING = "screening"
"""The kind of a search's first stage."""

SCORE_ENDINGS = (".json", ".csv")

LOCKS = Path("/proc/locks")
"""Where Linux lists the locks that are held."""

SECONDS_OF_SILENCE = 180
"""A selection writes to its store at least once a minute. One that has not for three is not running."""

OF_FILES = "files "
"""The beginning of the fingerprint of data that only programs have read: it is not one of labels and groups."""

LEVEL = 0.95
"""The probability of every interval in a report."""


@dataclass(frozen=True)
class Words:
    """The words of a report for its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"

    def candidates_of(self, number: int) -> str:
        """Return the noun for this number of candidates."""
        return self.candidate if number == 1 else self.candidates

    def evaluations_of(self, number: int) -> str:
        """Return the noun for this number of evaluations."""
        return self.evaluation if number == 1 else self.evaluations


TRAININGS = Words()
DOCUMENTS = Words("system", "systems", "document", "documents", "answered documents")
BATCHES = Words("system", "systems", "batch", "batches", "answered batches")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The source of the scores, as far as a report shows it.

    Attributes:
        asked_confidence: the target confidence at which the selection stops. None for a budget or a table.
        running: whether the selection is running at this moment.
        adaptive: whether the number of scores of at least one candidate depends on scores.
        checklist: what you need to repeat the selection, as pairs of key and value.
        changes: what was changed on the way of how runs are chosen and when they end, as a store has it.
        notes: caveats that the report shows.
        words: the nouns of the report.
        splits: the option of a selection, empty for other sources.
        scored: the set that the scores are of.
        test_share: the share of the data that a random split scores on; None for official splits, or if not known.
        strategy: the registered name of the sampling rule that chose the runs, empty for a table.
        screening: the first stage of a search whose second stage is this selection.
        legend: the values that numbered candidates stand for.
    """

    asked_confidence: Optional[float] = None
    running: bool = False
    adaptive: bool = False
    checklist: Tuple[Tuple[str, str], ...] = ()
    changes: Tuple[Mapping[str, Any], ...] = ()
    notes: Tuple[str, ...] = ()
    words: Words = TRAININGS
    splits: str = ""
    scored: str = "test"
    test_share: Optional[float] = None
    strategy: str = ""
    screening: "Optional[ScreeningReport]" = None
    legend: Tuple[str, ...] = ()

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def by_documents(self) -> bool:
        return self.words != TRAININGS


@dataclass(frozen=True)
class Reading(Origin):
    """A selection or a table of scores as it was read.

    Attributes:
        name: the directory or file, as it was given.
        metric: the metric with its direction. Scores have their natural sign.
        history: scores, with the metrics of every evaluation. Evaluations with equal split seed share a split.
        decision: the selection's; for a table of scores, what the belief makes of all.
        belief: the selection's own, `belief_name` in its settings, for a highest mean: it reads `directed` histories.
        is_selection: whether evaluations were chosen one after the other; else they are a table, in no order.
        num_parameters: by candidate, as far as they are known.
        data: a digest of the data; equal split seeds mean equal splits of equal data. Empty where it is not known.
        split_names: the names of a table's splits, by split seed.
        table_notes: sentences about what a table's splits and seeds mean.
        documents: for a selection by documents, the content of `selection.json` as it would be now.
        intervals: for a selection by documents, the 95 % credible intervals of the measure, as far as they are known.
    """

    name: str
    metric: Metric
    history: History
    decision: Decision
    belief: Belief
    belief_name: str
    is_selection: bool = False
    num_parameters: Mapping[str, Optional[int]] = field(default_factory=dict)
    data: str = ""
    split_names: Tuple[str, ...] = ()
    table_notes: Tuple[str, ...] = ()
    documents: Optional[Mapping[str, Any]] = None
    intervals: "Mapping[str, Interval]" = field(default_factory=dict)

    def directed(self, history: History) -> History:
        """Return the history as the belief reads it: with negated scores if the metric is minimised."""
        return history.turned if self.metric.minimise else history

    @property
    def development(self) -> Optional[str]:
        """The metric that is the development score; None if no run reports one, or if it is the score itself."""
        if self.scored == "validation":
            return None
        name = f"best_validation_{self.metric.name}"
        return name if any(name in evaluation.metrics for evaluation in self.history.evaluations) else None

    def summary(self) -> Mapping[str, Any]:
        """Return the content of `selection.json` as it would be now, with the settings that say what scores are of."""
        about = {"metric": self.metric.typed, "splits": self.splits, "score": self.scored}
        return self.documents or summarise(self.history, self.decision, about)

    def check_name(self, name: str) -> None:
        """Refuse the name of an unknown candidate.

        Raises:
            ConfigError: where there is no candidate of this name, with the near ones.
        """
        known = self.history.candidates
        if name not in known:
            hint = did_you_mean(name, known, most=2)
            raise ConfigError(f"{self.name}: there is no candidate '{name}'.{hint} Candidates: {', '.join(known)}.")

    def restricted(self, names: Sequence[str]) -> "Reading":
        """Return the same with these candidates only, withdrawn or not, and a decision about them alone."""
        kept = only(self.history, names)
        decision = believed(self.directed(kept), self.belief, margin=self.decision.margin).decision
        return replace(self, history=kept, decision=decision)


def only(history: History, names: Sequence[str]) -> History:
    """Return the history of these candidates, none of them withdrawn, without what is pending."""
    return History(
        candidates=tuple(names),
        evaluations=tuple(e for e in history.evaluations if e.request.candidate in names),
        failures=tuple(f for f in history.failures if f.request.candidate in names),
    )


# A directory.


class Stored:
    """The content of a run directory, as far as a report reads it: no other module of reports reads a store.

    In `meta`, `environments` is empty and `document_facts` None where an older version made the selection.
    """

    def __init__(self, directory: RunDirectory, store: StoreReader) -> None:
        self.directory = directory
        self.meta = store.meta()
        self.candidates = store.candidates()
        self.names = [candidate.name for candidate in self.candidates]
        self.history = store.history

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the data that AllenNLP's readers give, or else of the files that programs get.

        Empty where programs cut their own sets.
        """
        pools = [candidate.facts["pool"] for candidate in self.candidates]
        of_readers = [pool["fingerprint"] for pool in pools if not pool.get("is_of_program")]
        of_files = [f"{OF_FILES}{pool['fingerprint']}" for pool in pools if pool["fingerprint"]]
        return next(iter([*of_readers, *of_files]), "")

    def share_of(self, part: str) -> Optional[float]:
        """Return the share of this part of a random split; None where programs cut their own sets."""
        targets = self.candidates[0].facts["pool"]["targets"]
        return targets[part] / sum(targets.values()) if targets.get(part) else None

    def legend(self, names: Iterable[str]) -> Tuple[str, ...]:
        """Say which values these candidates have, if they are numbered."""
        values = {candidate.name: values_in(candidate.source) for candidate in self.candidates}
        return legend({name: values[name] for name in names})

    @property
    def running(self) -> bool:
        """Whether a selection is at work in the directory."""
        return is_running(self.directory, self.meta.environments[-1].get("host") if self.meta.environments else None)

    def stopped_by(self, num_evaluations: int) -> Optional[str]:
        """Return why a selection that has more to do is not at work: what it wrote itself, or it was killed."""
        try:
            summary = json.loads(self.directory.selection_json.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return "interrupted"
        is_latest = summary.get("num_evaluations") == num_evaluations
        return summary.get("stopped_by") if is_latest else "interrupted"


@contextmanager
def opened(root: Path) -> Iterator[Stored]:
    """Open the selection in a directory, as it is at this moment.

    Raises:
        StoreError: where there is no selection, or its store is damaged.
    """
    directory = RunDirectory(root)
    with reading(directory) as store:
        if not store.meta().begun:
            raise StoreError(
                f"{root}: the selection has not begun: its candidates are being checked, or it was stopped before its "
                "first run. There is nothing to report yet."
            )
        yield Stored(directory, store)


def is_running(directory: RunDirectory, host: Optional[str]) -> bool:
    """Return whether a selection is at work in the directory, without touching its lock.

    On the machine of this name, where it was started last, a running one holds the lock, which the system lists. From
    elsewhere, and where locks are not listed, it is one that has written to its store not long ago.
    """
    try:
        if host == platform.node():
            status = directory.lock.stat()
            file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
            return any(file in line.split() for line in LOCKS.read_text(encoding="ascii").splitlines())
    except OSError:
        pass
    log = directory.store_log
    return log.exists() and time.time() - log.stat().st_mtime < SECONDS_OF_SILENCE


def read_directory(root: Path, *, for_report: bool = True) -> Reading:
    """Read the selection in a directory.

    Args:
        for_report: with the checklist and the screening of a search, which `fiesta status` does without.

    Raises:
        StoreError: where there is no selection, its store is damaged, or an older version wrote down too little.
        ConfigError: where its strategy or belief belongs to a package that was not imported.
    """
    with opened(root) as stored:
        if stored.meta.kind == SCREENING:
            raise ConfigError(
                f"{root}: this is the first stage of a search. Give the directory of the search, {root.parent}."
            )
        read = _by_documents if stored.meta.kind == "documents" else _by_trainings
        return read(stored, for_report=for_report)


def _by_trainings(stored: Stored, *, for_report: bool) -> Reading:
    settings = merge(stored.meta.settings or {})
    metric = settings.scored_by
    strategy = not_importing(
        settings.include_package, lambda: build_strategy(settings, stored.names, minimise=metric.minimise)
    )
    read = replace(
        _selection(stored, strategy, settings.strategy_params(), metric=metric, max_failures=settings.max_failures),
        asked_confidence=getattr(strategy, "confidence", None),
        num_parameters={candidate.name: candidate.facts["num_parameters"] for candidate in stored.candidates},
        data=stored.fingerprint,
        splits=settings.splits,
        scored=settings.score,
        legend=stored.legend(stored.names),
        test_share=None if settings.on_official_splits else stored.share_of(settings.score),
    )
    return _described(read, stored, settings) if for_report else read


def _described(read: Reading, stored: Stored, settings: Settings) -> Reading:
    from fiesta_allennlp.reports.checklist import selection_checklist

    read = replace(read, checklist=selection_checklist(stored, settings, read))
    if not stored.directory.screening.store.is_file():
        return read
    from fiesta_allennlp.reports.search import screening_report

    return replace(read, screening=screening_report(stored.directory, stored.meta.seed, read.summary()["candidates"]))


def _by_documents(stored: Stored, *, for_report: bool) -> Reading:
    from fiesta_allennlp.documents.answers import read_charges
    from fiesta_allennlp.documents.choice import DocumentChoice, DocumentFacts, answers_path, task_of
    from fiesta_allennlp.documents.settings import DocumentSettings

    root, facts = stored.directory.root, stored.meta.document_facts
    if facts is None:
        raise StoreError(
            f"{root}: the selection was made by an older version, which did not write down what a report needs. Let "
            f"{command('documents')} -s {root} --recover add it: no answer is paid for again."
        )
    settings = DocumentSettings(**overlay(stored.meta.settings or {}, of=DocumentSettings))
    task = task_of(settings)
    choice = not_importing(
        settings.include_package, lambda: DocumentChoice.of(settings, task, DocumentFacts(**facts), stored.names)
    )
    read = _selection(
        stored,
        choice.strategy,
        choice.strategy_params,
        metric=Metric.of(task.metric),
        max_failures=settings.max_failures,
    )
    charges = read_charges(answers_path(settings, root) or stored.directory.answers, run=str(stored.meta.run))
    read = replace(
        read,
        asked_confidence=getattr(choice.strategy.strategy, "confidence", None),
        documents=choice.summary(read.history, read.decision, seed=str(stored.meta.seed), charges=charges),
        words=DOCUMENTS if settings.batch_size == 1 else BATCHES,
    )
    return _described_documents(read, stored, choice) if for_report else read


def _described_documents(read: Reading, stored: Stored, choice: "DocumentChoice") -> Reading:
    from fiesta_allennlp.reports.checklist import documents_checklist

    return replace(
        read, intervals=_intervals(read.history, read.belief), checklist=documents_checklist(stored, choice, read)
    )


def _intervals(history: History, belief: Belief) -> "Dict[str, Interval]":
    """Return the interval of every system's measure, where the belief is about measures and knows enough of all."""
    from fiesta_allennlp.beliefs.dirichlet_f_measure import FMeasurePosterior

    if not history.active or not all_finished(history, history.active, belief.min_evaluations):
        return {}
    posterior = belief.posterior(history)
    if not isinstance(posterior, FMeasurePosterior):
        return {}
    ends = posterior.interval(LEVEL).tolist()
    return {name: (low, high) for name, (low, high) in zip(history.active, ends, strict=True)}


def _selection(
    stored: Stored, strategy: Strategy, params: Mapping[str, Any], *, metric: Metric, max_failures: int
) -> Reading:
    """Read what all selections have in common. `params` are the strategy's, with its belief."""
    running, history = stored.running, stored.history(max_failures=max_failures)
    decision = strategy.recommend(history)
    if decision.stopped_by is None and not running:
        decision = replace(decision, stopped_by=stored.stopped_by(len(history.evaluations)))
    if decision.stopped_by in UNDECIDED:
        decision = replace(decision, credible_margin=strategy.credible_margin(history))
    return Reading(
        name=str(stored.directory.root),
        metric=replace(metric, name=visible(metric.name)),  # somebody else may have chosen it
        history=history,
        decision=decision,
        belief=build(Belief, params["belief"]),
        belief_name=params["belief"]["type"],
        strategy=params["type"],
        changes=stored.meta.changes,
        is_selection=True,
        adaptive=True,
        running=running and decision.stopped_by is None,
    )


# A table of scores, or either.


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


def read_source(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Reading:
    """Read the selection in a directory, or the table in a file.

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
        return read_directory(path)
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return read_table(path, options, least_candidates=least_candidates)
    what = "is neither a directory nor a file that ends with .json or .csv" if path.exists() else "does not exist"
    raise ConfigError(
        f"{path}: {what}. Give the directory of a selection, the one after -s, or a table of scores as "
        f"{command('replay')} reads it."
    )


def read_table(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Reading:
    """Read a table of scores, as `fiesta-replay` does.

    Raises:
        ConfigError: where there is no such file or belief.
        DataError: where the content is wrong, or there are fewer than `least_candidates`.
    """
    from fiesta_allennlp.replays.files import read_csv, read_json
    from fiesta_allennlp.replays.settings import done_note
    from fiesta_allennlp.replays.sources import METRIC
    from fiesta_allennlp.replays.table import history_of
    from fiesta_allennlp.reports.checklist import table_checklist

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
    read = Reading(
        name=str(path),
        metric=Metric(METRIC, minimise=options.minimise or table.minimise),
        history=history_of(table),
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        checklist=table_checklist(path, table),
        split_names=tuple(table.split_names),
        table_notes=(*table.notes, *done_note(options.done)),
    )
    for name in options.done:
        read.check_name(name)
    return replace(read, decision=believed(read.directed(read.history), read.belief).decision)
