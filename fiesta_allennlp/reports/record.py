"""The content of a report in one record: every page, table and figure is made from it and computes nothing itself. A
number that does not exist is None."""

import shlex
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.records import History
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.reports.candidates import (
    CandidateReport,
    Comparison,
    Development,
    SingleScore,
    compare,
    report_development,
    single_score,
)
from fiesta_allennlp.reports.formats import LEVEL, Interval, Lines, Shown, join_pairs, render_rows
from fiesta_allennlp.reports.reading import Origin, Reading
from fiesta_allennlp.reports.screening import ScreeningReport, screening_report
from fiesta_allennlp.reports.stored import Stored
from fiesta_allennlp.reports.words import (
    changes,
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
from fiesta_allennlp.strategies.base import believed
from fiesta_allennlp.trainings.candidate_types import stored_type_of
from fiesta_allennlp.trainings.settings import Settings

Checklist = Tuple[Tuple[str, str], ...]


def checklist_of(reading: Reading) -> Checklist:
    """Return what you need to repeat what was read, as pairs of key and value."""
    if reading.compared:
        return tuple((f"{name}: {key}", value) for name, side in reading.compared for key, value in checklist_of(side))
    if reading.table is not None:
        file_digests = (f"{Path(file).name}, SHA-256 {file_digest(Path(file))}" for file in reading.table_files)
        values: Dict[str, Any] = {"result": reading.result, "environments": [describe_environment()]}
        values["source"] = "; ".join(file_digests) or "rows from Python"
        return render_rows("checklist.j2", reading=reading, table=reading.table, config_text=_as_text, **values)
    return () if reading.stored is None else _selection_checklist(reading, reading.stored, reading.settings)


def _selection_checklist(reading: Reading, stored: Stored, settings: Any) -> Checklist:
    by_runs = not reading.by_documents
    run_candidates = stored.candidates if by_runs else []
    programs = [candidate.name for candidate in run_candidates if not stored_type_of(candidate.config).builds_model]
    with translated_store_errors(stored.directory.store):
        rows = render_rows(
            "checklist.j2",
            reading=reading,
            result=reading.result,
            table=None,
            meta=stored.meta,
            environments=stored.meta.environments,
            candidates=stored.candidates,
            settings=settings,
            facts=reading.documents and reading.documents.documents,
            programs=programs,
            doing="runs" if by_runs else "queries",
            unknown="not recorded: the selection began with an older version",
            config_text=_as_text,
        )
    repeat_all = ("command to repeat it all", repeat_command(settings, stored.meta.seed))
    return (*rows, repeat_all, *(_repeat_one(stored, settings, programs) if by_runs else ()))


def repeat_command(settings: Union[Settings, DocumentSettings], seed: Optional[str]) -> str:
    """Return the command that makes the same selection: options that are not defaults, and the seed."""
    command, positional = ("select", "candidates") if isinstance(settings, Settings) else ("documents", "systems")
    words = command_words(settings, positional=positional, seed=seed)
    num_names = len(getattr(settings, positional))
    return shlex.join(["python", "-m", "fiesta_allennlp", command, *words[:num_names], "-s", "NEW", *words[num_names:]])


def _as_text(params: Mapping[str, Any], without: str = "") -> str:
    """Describe a config with a `type`."""
    options = {key: value for key, value in params.items() if key not in ("type", without)}
    listed = join_pairs({key: _as_text(value) if isinstance(value, dict) else value for key, value in options.items()})
    return f"{params['type']} ({listed or 'defaults'})"


def _repeat_one(stored: Stored, settings: Settings, programs: List[str]) -> Checklist:
    """Return the commands that make one run again, AllenNLP's first."""
    commands: Dict[str, List[str]] = {}
    for candidate in sorted(stored.candidates, key=lambda candidate: candidate.name in programs):
        command = stored_type_of(candidate.config).repeat_command(settings.include_package)
        commands.setdefault(command, []).append(candidate.name)
    return tuple(
        ("command to repeat one run" + (f" of {', '.join(names)}" if names[0] in programs else ""), command)
        for command, names in commands.items()
    )


MOST_POINTS = 120
"""The most points of P(best) that a figure can show; each costs as much as a step of the selection."""

SHARED_SPLITS = (
    "Several scores of a candidate share a split, so they are not independent: the intervals of the means are too "
    "narrow. P(best) and the paired differences take the splits into account."
)


@dataclass(frozen=True)
class PathPoint:
    """P(best) after this number of finished evaluations. `prob_best` has the active candidates."""

    num_evaluations: int
    prob_best: Mapping[str, float]


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(Shown, Origin, Standings):
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
    comparisons: Tuple[Comparison, ...] = ()
    single_score: Optional[SingleScore] = None
    development: Optional[Development] = None
    minimise: bool = False
    checklist: Checklist = ()
    screening: Optional[ScreeningReport] = None
    missed_target: Optional[float] = None
    is_pair: bool = False
    collapsed: Tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, reading: Reading, *, pair: bool = False) -> "Report":
        """Build the report of a selection or a table; with `pair`, on its two candidates alone."""
        history, result = reading.history, reading.result
        intervals = _intervals(reading)
        candidates = tuple(
            CandidateReport.with_scores(
                history,
                candidate,
                development=reading.development,
                num_parameters=reading.num_parameters.get(candidate.name),
                interval=intervals.get(candidate.name),
            )
            for candidate in result.candidates
        )
        run_fields = {} if reading.by_documents else _run_fields(reading, candidates, pair=pair)
        comparisons = run_fields.get("comparisons", ())
        origin_fields = {f.name: getattr(reading, f.name) for f in fields(Origin)}
        has_shared = not reading.by_documents and any(len(set(c.split_seeds)) < c.num_evaluations for c in candidates)
        notes = (*changes(reading.changes, reading.words), *reading.notes, *((SHARED_SPLITS,) if has_shared else ()))
        return cls(
            title=_title(reading, pair=pair),
            source=reading.name,
            decision=tuple(filter(None, _decision(reading, result, comparisons if pair else ()))),
            metric=reading.metric.name,
            minimise=reading.metric.minimise,
            leading=result.leading,
            candidates=candidates,
            margin=result.margin,
            stopped_by=result.stopped_by,
            belief=reading.belief_name,
            path=belief_path(reading.directed(history), reading.belief),
            order=tuple(e.request.candidate for e in history.evaluations) if reading.is_selection else (),
            checklist=checklist_of(reading.unrestricted or reading),
            screening=_screening(reading.unrestricted or reading),
            missed_target=reading.table_target,
            collapsed=tuple(result.collapsed),
            is_pair=pair,
            **{**origin_fields, "notes": notes},
            **run_fields,
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
            return candidate.name != self.leading, candidate.withdrawn, -self._directed_mean(candidate)

        return tuple(sorted(self.candidates, key=rank_key))

    @property
    def ranked_comparisons(self) -> Tuple[Comparison, ...]:
        """The comparisons in the order of `ranked`."""
        ranks = {candidate.name: rank for rank, candidate in enumerate(self.ranked)}
        return tuple(sorted(self.comparisons, key=lambda comparison: ranks[comparison.second]))

    @property
    def rival(self) -> Optional[CandidateReport]:
        """The other candidate of the best mean that took part to the end, None if there is none."""
        rivals = (c for c in self.ranked if c.name != self.leading and not c.withdrawn and c.mean is not None)
        return next(rivals, None)

    def _directed_mean(self, candidate: CandidateReport) -> float:
        mean = candidate.measure if self.by_documents else candidate.mean
        return float("-inf") if mean is None else Metric(self.metric, self.minimise).sign * mean

    def candidate(self, name: str) -> CandidateReport:
        """Return the report of one candidate.

        Raises:
            ConfigError: if no candidate has this name.
        """
        candidates_by_name = {candidate.name: candidate for candidate in self.candidates}
        if name not in candidates_by_name:
            raise ConfigError(f"the report has no candidate '{name}'; its candidates: {', '.join(candidates_by_name)}.")
        return candidates_by_name[name]

    def shown(self) -> Lines:
        numbers: Columns[CandidateReport] = (
            ("scores", lambda c: str(c.num_evaluations)),
            ("mean", lambda c: number_text(c.mean, self.decimals)),
            ("sd", lambda c: number_text(c.sd, self.decimals)),
        )
        if self.by_documents:
            numbers = (
                ("documents", lambda c: str(c.num_documents)),
                (self.metric, lambda c: number_text(c.measure)),
            )
        columns = ((self.words.candidate, lambda c: c.name), *numbers, ("P(best)", lambda c: c.standing))
        return [build_table(columns, self.ranked), *self.decision]


def _screening(reading: Reading) -> Optional[ScreeningReport]:
    if reading.stored is None or not reading.stored.directory.screening.store.is_file():
        return None
    return screening_report(reading.stored.directory, reading.stored.meta.seed, reading.result.candidates)


def _intervals(reading: Reading) -> Dict[str, Interval]:
    """Return the interval of every system's measure, where the posterior is about measures."""
    posterior = believed(reading.history, reading.belief).posterior if reading.by_documents else None
    ends = None if posterior is None else posterior.interval(LEVEL)
    return {} if ends is None else dict(zip(reading.history.active, map(tuple, ends.tolist()), strict=True))


def _run_fields(reading: Reading, candidates: Sequence[CandidateReport], *, pair: bool) -> Dict[str, Any]:
    leading, development = reading.result.leading, reading.development
    active = [candidate for candidate in candidates if not candidate.withdrawn]
    return {
        "comparisons": _comparisons(reading, candidates, pair=pair),
        "single_score": None if leading is None else single_score(active, leading, minimise=reading.metric.minimise),
        "development": None if development is None else report_development(active, development),
    }


def _comparisons(reading: Reading, candidates: Sequence[CandidateReport], *, pair: bool) -> Tuple[Comparison, ...]:
    """Compare the leading candidate with every other that has a score, or the two that were asked for."""
    first_name = candidates[0].name if pair else reading.result.leading
    return tuple(
        compare(first, second, minimise=reading.metric.minimise, test_share=reading.test_share)
        for first in candidates
        for second in candidates
        if first.name == first_name != second.name and (pair or second.scores)
    )


def _title(reading: Reading, *, pair: bool) -> str:
    if pair:
        return " against ".join(reading.history.candidates)
    kind = "Selection" if reading.is_selection else "Scores"
    return f"{kind} among {len(reading.history.candidates)} {reading.words.candidates} by {reading.metric.display_name}"


def _decision(reading: Reading, result: Result, pair: Sequence[Comparison]) -> Tuple[str, ...]:
    more = (limit_in_words(result, reading), *reading.table_notes)
    if reading.is_selection and not pair:
        return (*selection_in_words(result, running=reading.running), *more)
    template_values = {
        "pair": pair[0] if pair else None,
        "belief": reading.belief_name,
        "min_evaluations": reading.belief.min_evaluations,
        "target": reading.table_target,
    }
    scope = scope_in_words(result) if pair and not reading.table_notes else ""
    return (*scores_in_words(result, **template_values), *collapsed_in_words(result), scope, *more)


def belief_path(history: History, belief: Belief) -> Tuple[PathPoint, ...]:
    """Compute P(best) after each evaluation, at most `MOST_POINTS` times, as in figure 2 of the FIESTA paper. A
    point has the candidates that are active at the end and had begun by then."""
    num_runs = len(history.evaluations)
    point_sizes = np.unique(np.linspace(num_runs, 1, num=min(num_runs, MOST_POINTS), dtype=int)) if num_runs else []
    prob_best_path: List[PathPoint] = []
    prefix = history.first_evaluations(0)
    for size in map(int, point_sizes):
        prefix = prefix.with_finished(history.evaluations[len(prefix.evaluations) : size])
        begun = tuple(name for name in prefix.active if prefix.num_finished(name))
        begun_history = prefix if begun == prefix.active else replace(prefix, candidates=begun, withdrawn=frozenset())
        prob_best_path.append(PathPoint(size, believed(begun_history, belief).decision.prob_best))
    return tuple(point for point in prob_best_path if point.prob_best)
