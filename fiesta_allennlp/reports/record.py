"""The content of a report in one record: every page, table and figure is made from it and computes nothing itself. A
number that does not exist is None."""

import shlex
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.records import History
from fiesta_allennlp.reports.candidates import (
    CandidateReport,
    Comparison,
    DevelopmentCorrelation,
    SingleScoreRisk,
    compare_scores,
    compute_single_score_risk,
    correlate_development,
)
from fiesta_allennlp.reports.formats import INTERVAL_LEVEL, Interval, Printable, TerminalLines, join_pairs, render_rows
from fiesta_allennlp.reports.source_data import SourceData, SourceFacts
from fiesta_allennlp.reports.stored_selection import StoredSelection
from fiesta_allennlp.reports.words import (
    changes_in_words,
    collapsed_in_words,
    limit_in_words,
    scope_in_words,
    scores_in_words,
    selection_in_words,
)
from fiesta_allennlp.selection.database import translated_store_errors
from fiesta_allennlp.selection.environment import describe_environment
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import command_words
from fiesta_allennlp.selection.progress import Columns, build_table
from fiesta_allennlp.selection.result import DECIDED_REASONS, Result, Standings, num_decimals
from fiesta_allennlp.selection.summary import number_text
from fiesta_allennlp.strategies.base import analyse
from fiesta_allennlp.trainings.candidate_types import stored_type_of
from fiesta_allennlp.trainings.settings import Settings
from fiesta_allennlp.trainings.starting_weights import describe_starting_weights

if TYPE_CHECKING:
    from fiesta_allennlp.documents.settings import DocumentSettings
    from fiesta_allennlp.reports.screening import ScreeningReport
    from fiesta_allennlp.tables.read_back import ReadBack

Checklist = Tuple[Tuple[str, str], ...]
Comparisons = Tuple[Comparison, ...]


def build_checklist(source: SourceData) -> Checklist:
    """Return what you need to repeat what was read, as pairs of key and value."""
    if source.compared:
        checklists = ((name, build_checklist(side)) for name, side in source.compared)
        return tuple((f"{name}: {key}", value) for name, checklist in checklists for key, value in checklist)
    if source.table is not None:
        file_digests = (f"{Path(file).name}, SHA-256 {file_digest(Path(file))}" for file in source.table_files)
        return render_rows(
            "checklist.j2",
            source=source,
            result=source.result,
            table=source.table,
            environments=[describe_environment()],
            files_text="; ".join(file_digests) or "rows from Python",
        )
    return () if source.selection is None else _build_selection_checklist(source, source.selection, source.settings)


def _build_selection_checklist(source: SourceData, selection: StoredSelection, settings: Any) -> Checklist:
    is_of_runs = not source.by_documents
    run_candidates = selection.candidates if is_of_runs else []
    program_names = [c.name for c in run_candidates if not stored_type_of(c.config).builds_model]
    with translated_store_errors(selection.directory.store):
        rows = render_rows(
            "checklist.j2",
            source=source,
            result=source.result,
            table=None,
            meta=selection.meta,
            environments=selection.meta.environments,
            candidates=selection.candidates,
            settings=settings,
            document_facts=source.documents_result and source.documents_result.documents,
            program_names=program_names,
            starts=describe_starting_weights({n: p.starting_weights for n, p in selection.preparations.items()}),
            work_noun="runs" if is_of_runs else "queries",
            config_text=_describe_config,
        )
    repeat_all = ("command to repeat it all", build_repeat_command(settings, selection.meta.seed))
    return (*rows, repeat_all, *(_list_run_commands(selection, settings, program_names) if is_of_runs else ()))


def build_repeat_command(settings: "Union[Settings, DocumentSettings]", seed: Optional[str]) -> str:
    """Return the command that makes the same selection: options that are not defaults, and the seed."""
    command_name, positional = ("select", "candidates") if isinstance(settings, Settings) else ("documents", "systems")
    arguments = command_words(settings, positional=positional, seed=seed)
    num_positional = len(getattr(settings, positional))
    arguments[num_positional:num_positional] = ["-s", "NEW"]
    return shlex.join(["python", "-m", "fiesta_allennlp", command_name, *arguments])


def _describe_config(params: Mapping[str, Any], omitted_key: str = "") -> str:
    """Describe a config with a `type`."""
    options = {key: value for key, value in params.items() if key not in ("type", omitted_key)}
    texts = {key: _describe_config(value) if isinstance(value, dict) else value for key, value in options.items()}
    return f"{params['type']} ({join_pairs(texts) or 'defaults'})"


def _list_run_commands(selection: StoredSelection, settings: Settings, program_names: List[str]) -> Checklist:
    """Return the commands that make one run again, AllenNLP's first."""
    names_by_command: Dict[str, List[str]] = {}
    for candidate in sorted(selection.candidates, key=lambda candidate: candidate.name in program_names):
        command = stored_type_of(candidate.config).repeat_command(settings.include_package)
        names_by_command.setdefault(command, []).append(candidate.name)
    return tuple(
        ("command to repeat one run" + (f" of {', '.join(names)}" if names[0] in program_names else ""), command)
        for command, names in names_by_command.items()
    )


MAX_PATH_POINTS = 120
"""The most points of P(best) that a figure can show; each costs as much as a step of the selection."""

SHARED_SPLITS_NOTE = (
    "Several scores of a candidate share a split, so they are not independent: the intervals of the means are too "
    "narrow. P(best) and the paired differences take the splits into account."
)


@dataclass(frozen=True)
class PathPoint:
    """P(best) after this number of finished evaluations. `prob_best` has the active candidates."""

    num_evaluations: int
    prob_best: Mapping[str, float]


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(Printable, SourceFacts, Standings):
    """The full content of a report on a selection, on a table of scores, or on two candidates.

    `decision` is about two sentences, each an element. `leading` leads or has won; it is None if nothing is known yet.
    Scores have their natural sign; with `minimise`, lower scores are better. `stopped_by` is as in `selection.json`. It
    is None for a table of scores, and as long as nothing has stopped the selection. `belief` is the registered name of
    the model of the scores.

    `path` is P(best) over the evaluations. `order` names the candidate of every finished evaluation in order of
    finishing (empty for a table). `comparisons` are of `leading` with every other candidate, or of the two that you
    asked for. `checklist` is what you need to repeat the selection, as pairs of key and value, and `screening` the
    first stage of a search whose second stage is this selection. `missed_target` is the target confidence that a table
    has not reached, and `is_pair` is true for a report on two candidates that you named. `collapsed` are the runs far
    below (or above) their candidate's others, as in `selection.json`.

    `read_backs` say what was understood of each table.

    A selection by documents has no comparisons, `single_score` or `development`.
    """

    title: str
    source: str
    decision: Tuple[str, ...]
    candidates: Tuple[CandidateReport, ...]
    stopped_by: Optional[str] = None
    belief: str = ""
    path: Tuple[PathPoint, ...] = ()
    order: Tuple[str, ...] = ()
    comparisons: Comparisons = ()
    single_score: Optional[SingleScoreRisk] = None
    development: Optional[DevelopmentCorrelation] = None
    minimise: bool = False
    checklist: Checklist = ()
    screening: "Optional[ScreeningReport]" = None
    missed_target: Optional[float] = None
    is_pair: bool = False
    collapsed: Tuple[Mapping[str, Any], ...] = ()
    read_backs: "Tuple[ReadBack, ...]" = ()

    @classmethod
    def of(cls, source: SourceData, *, is_pair: bool = False) -> "Report":
        """Build the report of a selection or a table; with `is_pair`, on its two candidates alone."""
        history, result = source.history, source.result
        measure_intervals = _measure_intervals(source)
        candidates = tuple(
            CandidateReport.from_result(
                history,
                candidate,
                development_metric=source.development_metric,
                num_parameters=source.num_parameters.get(candidate.name),
                measure_interval=measure_intervals.get(candidate.name),
            )
            for candidate in result.candidates
        )
        run_candidates = () if source.by_documents else candidates
        active_candidates = [candidate for candidate in run_candidates if not candidate.withdrawn]
        comparisons = _compare_candidates(source, run_candidates, is_pair=is_pair)
        sources = [side for _, side in source.compared] or [source]
        read_backs = tuple(side.table.read_back for side in sources if side.table and side.table.read_back)
        source_facts = {f.name: getattr(source, f.name) for f in fields(SourceFacts)}
        notes = (*changes_in_words(source.changes, source.words), *source.notes)
        notes = (*notes, *(line for read_back in read_backs for line in read_back.lines))
        if any(len(set(c.split_seeds)) < c.num_evaluations for c in run_candidates):
            notes = (*notes, SHARED_SPLITS_NOTE)
        return cls(
            title=_compose_title(source, is_pair=is_pair),
            source=source.name,
            decision=tuple(filter(None, _compose_decision(source, result, comparisons if is_pair else ()))),
            metric=source.metric.name,
            minimise=source.metric.minimise,
            leading=result.leading,
            candidates=candidates,
            margin=result.margin,
            stopped_by=result.stopped_by,
            belief=source.belief_name,
            path=compute_belief_path(source.history_for_belief(history), source.belief),
            order=tuple(e.request.candidate for e in history.evaluations) if source.is_selection else (),
            checklist=build_checklist(source.full_source or source),
            screening=_report_screening(source.full_source or source),
            missed_target=source.table_target,
            collapsed=tuple(result.collapsed),
            read_backs=read_backs,
            is_pair=is_pair,
            **{**source_facts, "notes": notes},
            comparisons=comparisons,
            single_score=compute_single_score_risk(active_candidates, result.leading, minimise=source.metric.minimise),
            development=correlate_development(active_candidates, source.development_metric),
        )

    @property
    def decimals(self) -> int:
        """The decimals of scores in all tables and sentences."""
        return num_decimals(self.candidates)

    @property
    def metric_text(self) -> str:
        """The metric's name, with a note if it is minimised."""
        return Metric(self.metric, self.minimise).display_name

    @property
    def decided(self) -> bool:
        """False if `leading` only leads."""
        return not self.running and self.missed_target is None and self.stopped_by in (None, *DECIDED_REASONS)

    @cached_property
    def ranked(self) -> Tuple[CandidateReport, ...]:
        """The candidates by the better mean; `leading` comes first, and those that are out come last."""

        def rank_key(candidate: CandidateReport) -> Tuple[bool, bool, float]:
            mean = candidate.measure if self.by_documents else candidate.mean
            gain = float("-inf") if mean is None else Metric(self.metric, self.minimise).sign * mean
            return candidate.name != self.leading, candidate.withdrawn, -gain

        return tuple(sorted(self.candidates, key=rank_key))

    @property
    def ranked_comparisons(self) -> Comparisons:
        """The comparisons in the order of `ranked`."""
        ranks = {candidate.name: rank for rank, candidate in enumerate(self.ranked)}
        return tuple(sorted(self.comparisons, key=lambda comparison: ranks[comparison.second]))

    @property
    def rival(self) -> Optional[CandidateReport]:
        """The other candidate of the best mean that took part to the end, None if there is none."""
        rivals = (c for c in self.ranked if c.name != self.leading and not c.withdrawn and c.mean is not None)
        return next(rivals, None)

    def candidate(self, name: str) -> CandidateReport:
        """Return the report of one candidate.

        Raises:
            ConfigError: if no candidate has this name.
        """
        candidates_by_name = {candidate.name: candidate for candidate in self.candidates}
        if name not in candidates_by_name:
            raise ConfigError(f"the report has no candidate '{name}'; its candidates: {', '.join(candidates_by_name)}.")
        return candidates_by_name[name]

    def shown(self) -> TerminalLines:
        score_columns: Columns[CandidateReport] = (
            ("scores", lambda c: str(c.num_evaluations)),
            ("mean", lambda c: number_text(c.mean, self.decimals)),
            ("sd", lambda c: number_text(c.sd, self.decimals)),
        )
        if self.by_documents:
            score_columns = (
                ("documents", lambda c: str(c.num_documents)),
                (self.metric, lambda c: number_text(c.measure)),
            )
        columns = ((self.words.candidate, lambda c: c.name), *score_columns, ("P(best)", lambda c: c.standing))
        return [build_table(columns, self.ranked), *self.decision]


def _report_screening(source: SourceData) -> "Optional[ScreeningReport]":
    if source.selection is None or not source.selection.directory.screening.store.is_file():
        return None
    from fiesta_allennlp.reports.screening import read_screening  # only the report of a search has one

    return read_screening(source.selection.directory, source.selection.meta.seed, source.result.candidates)


def _measure_intervals(source: SourceData) -> Dict[str, Interval]:
    """Return the interval of every system's measure, where the posterior is about measures."""
    posterior = analyse(source.history, source.belief).posterior if source.by_documents else None
    interval_ends = None if posterior is None else posterior.interval(INTERVAL_LEVEL)
    if interval_ends is None:
        return {}
    return dict(zip(source.history.active, map(tuple, interval_ends.tolist()), strict=True))


def _compare_candidates(source: SourceData, candidates: Sequence[CandidateReport], *, is_pair: bool) -> Comparisons:
    """Compare the leading candidate with every other that has a score, or the two that were asked for."""
    first_name = source.history.candidates[0] if is_pair else source.result.leading
    return tuple(
        compare_scores(first, second, minimise=source.metric.minimise, test_share=source.test_share)
        for first in candidates
        for second in candidates
        if first.name == first_name != second.name and (is_pair or second.scores)
    )


def _compose_title(source: SourceData, *, is_pair: bool) -> str:
    if is_pair:
        return " against ".join(source.history.candidates)
    subject = "Selection" if source.is_selection else "Scores"
    return f"{subject} among {len(source.history.candidates)} {source.words.candidates} by {source.metric.display_name}"


def _compose_decision(source: SourceData, result: Result, pair_comparisons: Sequence[Comparison]) -> Tuple[str, ...]:
    closing_sentences = (limit_in_words(result, source), *source.table_notes)
    if source.is_selection and not pair_comparisons:
        return (*selection_in_words(result, running=source.running), *closing_sentences)
    template_values = {
        "pair": pair_comparisons[0] if pair_comparisons else None,
        "belief": source.belief_name,
        "min_evaluations": source.belief.min_evaluations,
        "target": source.table_target,
    }
    scope_sentence = scope_in_words(result) if pair_comparisons and not source.table_notes else ""
    return (
        *scores_in_words(result, **template_values),
        *collapsed_in_words(result),
        scope_sentence,
        *closing_sentences,
    )


def compute_belief_path(history: History, belief: Belief) -> Tuple[PathPoint, ...]:
    """Compute P(best) after each evaluation, at most `MAX_PATH_POINTS` times, as in figure 2 of the FIESTA paper. A
    point has the candidates that are active at the end and had begun by then."""
    num_runs = len(history.evaluations)
    run_counts = np.unique(np.linspace(num_runs, 1, num=min(num_runs, MAX_PATH_POINTS), dtype=int)) if num_runs else []
    points: List[PathPoint] = []
    prefix = history.first_evaluations(0)
    for num_evaluations in map(int, run_counts):
        prefix = prefix.with_finished(history.evaluations[len(prefix.evaluations) : num_evaluations])
        names = tuple(name for name in prefix.active if prefix.num_finished(name))
        active_history = prefix if names == prefix.active else replace(prefix, candidates=names, withdrawn=frozenset())
        points.append(PathPoint(num_evaluations, analyse(active_history, belief).decision.prob_best))
    return tuple(point for point in points if point.prob_best)
