"""The content of a report in one record: every page, table and figure is made from it and computes nothing itself. A
number that does not exist is None."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from rich.markup import escape

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.listeners.progress import number_table
from fiesta_allennlp.reports.candidates import (
    CandidateReport,
    Development,
    SingleScore,
    report_development,
    single_score,
)
from fiesta_allennlp.reports.checklist import Checklist, checklist_of
from fiesta_allennlp.reports.comparison import Comparison, compare
from fiesta_allennlp.reports.formats import LEVEL, Interval, Lines, Shown
from fiesta_allennlp.reports.reading import Origin, Reading
from fiesta_allennlp.reports.screening import ScreeningReport, screening_report
from fiesta_allennlp.reports.words import (
    changes,
    collapsed_in_words,
    scope_in_words,
    scores_in_words,
    selection_in_words,
)
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.result import DECIDED, Result, Standings, decimals_of
from fiesta_allennlp.selection.summary import number_text
from fiesta_allennlp.strategies.base import believed

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
    def of(cls, read: Reading, *, pair: bool = False) -> "Report":
        """Build the report of a selection or a table; with `pair`, on its two candidates alone."""
        history, result = read.history, read.result
        intervals = _intervals(read)
        candidates = tuple(
            CandidateReport.with_scores(
                history,
                candidate,
                development=read.development,
                num_parameters=read.num_parameters.get(candidate.name),
                interval=intervals.get(candidate.name),
            )
            for candidate in result.candidates
        )
        about_runs = {} if read.by_documents else _about_runs(read, candidates, pair=pair)
        compared = about_runs.get("comparisons", ())
        origin = {f.name: getattr(read, f.name) for f in fields(Origin)}
        has_shared = not read.by_documents and any(len(set(c.split_seeds)) < c.num_evaluations for c in candidates)
        notes = (*changes(read.changes, read.words), *read.notes, *((SHARED_SPLITS,) if has_shared else ()))
        return cls(
            title=_title(read, pair=pair),
            source=read.name,
            decision=(*_decision(read, result, compared if pair else ()), *read.table_notes),
            metric=read.metric.name,
            minimise=read.metric.minimise,
            leading=result.leading,
            candidates=candidates,
            margin=result.margin,
            stopped_by=result.stopped_by,
            belief=read.belief_name,
            path=belief_path(read.directed(history), read.belief),
            order=tuple(e.request.candidate for e in history.evaluations) if read.is_selection else (),
            checklist=checklist_of(read.whole or read),
            screening=_screening(read.whole or read),
            missed_target=read.table_target,
            collapsed=tuple(result.collapsed),
            is_pair=pair,
            **{**origin, "notes": notes},
            **about_runs,
        )

    @property
    def decimals(self) -> int:
        """The decimals of scores in all tables and sentences."""
        return decimals_of(self.candidates)

    @property
    def metric_text(self) -> str:
        """The metric's name, with a note if it is minimised."""
        return Metric(self.metric, self.minimise).text

    @property
    def decided(self) -> bool:
        """False if `leading` only leads."""
        return not self.running and self.missed_target is None and self.stopped_by in (None, *DECIDED)

    @cached_property
    def ranked(self) -> Tuple[CandidateReport, ...]:
        """The candidates by the better mean; `leading` comes first, and those that are out come last."""

        def place(candidate: CandidateReport) -> Tuple[bool, bool, float]:
            return candidate.name != self.leading, candidate.withdrawn, -self._directed_mean(candidate)

        return tuple(sorted(self.candidates, key=place))

    @property
    def ranked_comparisons(self) -> Tuple[Comparison, ...]:
        """The comparisons in the order of `ranked`."""
        places = {candidate.name: place for place, candidate in enumerate(self.ranked)}
        return tuple(sorted(self.comparisons, key=lambda comparison: places[comparison.second]))

    @property
    def rival(self) -> Optional[CandidateReport]:
        """The other candidate of the best mean that took part to the end, None if there is none."""
        others = (c for c in self.ranked if c.name != self.leading and not c.withdrawn and c.mean is not None)
        return next(others, None)

    def _directed_mean(self, candidate: CandidateReport) -> float:
        mean = candidate.measure if self.by_documents else candidate.mean
        return float("-inf") if mean is None else Metric(self.metric, self.minimise).sign * mean

    def candidate(self, name: str) -> CandidateReport:
        """Return the report of one candidate.

        Raises:
            ConfigError: if no candidate has this name.
        """
        found = {candidate.name: candidate for candidate in self.candidates}
        if name not in found:
            raise ConfigError(f"the report has no candidate '{name}'; its candidates: {', '.join(found)}.")
        return found[name]

    def shown(self) -> Lines:
        numbers = ("documents", self.metric) if self.by_documents else ("scores", "mean", "sd")
        table = number_table(self.words.candidate, (*numbers, "P(best)"))
        for candidate in self.ranked:
            table.add_row(escape(candidate.name), *self._numbers(candidate), candidate.standing)
        return [table, *self.decision]

    def _numbers(self, candidate: CandidateReport) -> Tuple[str, ...]:
        if self.by_documents:
            return str(candidate.num_documents), number_text(candidate.measure)
        mean, sd = (number_text(value, self.decimals) for value in (candidate.mean, candidate.sd))
        return str(candidate.num_evaluations), mean, sd


def _screening(read: Reading) -> Optional[ScreeningReport]:
    if read.stored is None or not read.stored.directory.screening.store.is_file():
        return None
    return screening_report(read.stored.directory, read.stored.meta.seed, read.result.candidates)


def _intervals(read: Reading) -> Dict[str, Interval]:
    """Return the interval of every system's measure, where the posterior is about measures."""
    posterior = believed(read.history, read.belief).posterior if read.by_documents else None
    ends = None if posterior is None else posterior.interval(LEVEL)
    return {} if ends is None else dict(zip(read.history.active, map(tuple, ends.tolist()), strict=True))


def _about_runs(read: Reading, candidates: Sequence[CandidateReport], *, pair: bool) -> Dict[str, Any]:
    leading, development = read.result.leading, read.development
    active = [candidate for candidate in candidates if not candidate.withdrawn]
    return {
        "comparisons": _comparisons(read, candidates, pair=pair),
        "single_score": None if leading is None else single_score(active, leading, minimise=read.metric.minimise),
        "development": None if development is None else report_development(active, development),
    }


def _comparisons(read: Reading, candidates: Sequence[CandidateReport], *, pair: bool) -> Tuple[Comparison, ...]:
    """Compare the leading candidate with every other that has a score, or the two that were asked for."""
    name = candidates[0].name if pair else read.result.leading
    return tuple(
        compare(first, other, minimise=read.metric.minimise, test_share=read.test_share)
        for first in candidates
        for other in candidates
        if first.name == name != other.name and (pair or other.scores)
    )


def _title(read: Reading, *, pair: bool) -> str:
    if pair:
        return " against ".join(read.history.candidates)
    kind = "Selection" if read.is_selection else "Scores"
    return f"{kind} among {len(read.history.candidates)} {read.words.candidates} by {read.metric.text}"


def _decision(read: Reading, result: Result, pair: Sequence[Comparison]) -> Tuple[str, ...]:
    if pair:
        scope = "" if read.table_notes else scope_in_words(result)
        said = (*scores_in_words(result, pair=pair[0]), *collapsed_in_words(result), scope)
        return tuple(filter(None, said))
    if read.is_selection:
        return selection_in_words(result, running=read.running)
    about = {
        "belief": read.belief_name,
        "min_evaluations": read.belief.min_evaluations,
        "target": read.table_target,
    }
    return (*scores_in_words(result, **about), *collapsed_in_words(result))


def belief_path(history: History, belief: Belief) -> Tuple[PathPoint, ...]:
    """Compute P(best) after each evaluation, at most `MOST_POINTS` times, as in figure 2 of the FIESTA paper. A
    point has the candidates that are active at the end and had begun by then."""
    last = len(history.evaluations)
    steps = np.unique(np.linspace(last, 1, num=min(last, MOST_POINTS), dtype=int)) if last else []
    points: List[PathPoint] = []
    now = history.first(0)
    for number in map(int, steps):
        now = now.after(history.evaluations[len(now.evaluations) : number])
        begun = tuple(name for name in now.active if now.num_finished(name))
        known = now if begun == now.active else replace(now, candidates=begun, withdrawn=frozenset())
        points.append(PathPoint(number, believed(known, belief).decision.prob_best))
    return tuple(point for point in points if point.prob_best)
