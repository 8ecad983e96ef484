"""From a selection or a table of scores to its report. What the command line calls."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.errors import ConfigError, DataError, StoreError
from fiesta_allennlp.records import History
from fiesta_allennlp.reports.comparison import compare as compare_two
from fiesta_allennlp.reports.comparison import with_holm
from fiesta_allennlp.reports.content import Asked, CandidateReport, Comparison, Origin, PathPoint, Report
from fiesta_allennlp.reports.formats import Interval
from fiesta_allennlp.reports.opening import TableOptions, open_source
from fiesta_allennlp.reports.pages import check_output, refuse_link, write_report
from fiesta_allennlp.reports.pair import open_pair
from fiesta_allennlp.reports.single_scores import report_candidate, report_development, single_score
from fiesta_allennlp.reports.source import Source
from fiesta_allennlp.reports.texts import changes
from fiesta_allennlp.reports.words import (
    equal_evaluations,
    pair_in_words,
    scope_in_words,
    selection_in_words,
    table_in_words,
)

MOST_POINTS = 120
"""As many as a figure can show; each costs as much as a step of the selection."""


def belief_path(history: History, belief: Belief, most_points: int = MOST_POINTS) -> Tuple[PathPoint, ...]:
    """P(best) after so many evaluations, by the belief that decided: figure 2 of the FIESTA paper.

    A point has the candidates that are active at the end and had begun by then; there is one wherever at least two had
    and the belief had enough evaluations of each. Points are spread evenly, at most `most_points` of them.
    """
    last = len(history.evaluations)
    steps = np.unique(np.linspace(last, 1, num=min(last, most_points), dtype=int)) if last else []
    points: List[PathPoint] = []
    now = history.first(0)
    for number in map(int, steps):
        now = now.after(history.evaluations[len(now.evaluations) : number])
        point = _point(now, belief)
        points += [] if point is None else [point]
    return tuple(points)


def _point(history: History, belief: Belief) -> Optional[PathPoint]:
    begun = tuple(name for name in history.active if history.num_finished(name))
    if len(begun) < 2 or min(map(history.num_finished, begun)) < belief.min_evaluations:
        return None
    if begun != history.active:
        history = replace(history, candidates=begun, withdrawn=frozenset())
    prob_best = belief.posterior(history).prob_best()
    return PathPoint(len(history.evaluations), dict(zip(begun, prob_best.tolist(), strict=True)))


MIN_SCORES = 2
"""With fewer scores in all there is nothing to report."""


Pathlike = Union[str, Path]


def report(
    source: Optional[Pathlike] = None,
    *,
    output: Optional[Pathlike] = None,
    compare: Optional[Sequence[str]] = None,
    evaluations_per_split: Optional[int] = None,
    belief: Any = None,
    paired: bool = False,
    minimise: bool = False,
    columns: Optional[Mapping[str, str]] = None,
    done: Sequence[str] = (),
) -> Report:
    """Everything there is to say of a selection or of a table of scores, or of two candidates.

    Args:
        source: the directory of a selection, finished or running, or a table of scores as `fiesta-replay` reads it. May
            be left out where `compare` names files.
        output: a directory to write the files of the report into; nothing is written where it is None.
        compare: two candidates of `source`; either may be `PATH:NAME` of another source, or its `PATH` where it has one
            candidate.
        evaluations_per_split: of a JSON table: so many consecutive scores of a candidate share a split (default 1).
        belief: of a table: a registered name or a config (default `split_paired`).
        paired: with `compare` and two tables: splits of equal name are the same.
        minimise: of a table: the lowest mean is the best.
        columns: of a CSV table: the names that it gives to some of its columns, such as `{"score": "test_f1"}`.
        done: of a table: candidates that get no further runs, which the report says.

    Raises:
        FiestaError: where there is no such source or candidate, an option does not go with it, there are fewer than two
            scores, or the output cannot be written.
    """
    if output is not None:
        check_output(Path(output))
    options = TableOptions(evaluations_per_split, belief, minimise, columns, tuple(done))
    made = make_report(source, compare=compare, options=options, paired=paired)
    if output is not None:
        write_report(made, Path(output))
    return made


def make_report(
    source: Optional[Pathlike], *, compare: Optional[Sequence[str]], options: TableOptions, paired: bool
) -> Report:
    """The report that `report` writes and returns."""
    if compare is None:
        if source is None:
            raise ConfigError("give the directory of a selection or a table of scores, or two candidates to --compare.")
        if paired:
            raise ConfigError("--paired is about two tables of scores. Add --compare, or leave it out.")
        return _report(open_source(Path(source), options), pair=False)
    if len(compare) != 2:
        raise ConfigError(f"--compare takes two candidates but got {len(compare)}: {', '.join(compare) or 'none'}.")
    opened = None if source is None else open_source(Path(source), options, least_candidates=1)
    return _report(open_pair((compare[0], compare[1]), opened, options, paired=paired), pair=True)


def _report(source: Source, *, pair: bool) -> Report:
    _check_scores(source)
    history, decision, summary = source.history, source.decision, source.summary()
    candidates = _candidates(source, summary)
    made = Report(
        title=_title(source, pair=pair),
        source=source.name,
        decision=(),
        metric=source.scored_by.name,
        minimise=source.scored_by.minimise,
        best=decision.best,
        candidates=candidates,
        confidence=decision.confidence,
        margin=decision.margin,
        stopped_by=decision.stopped_by,
        belief=source.belief_name,
        seconds=summary["seconds"],
        path=belief_path(history, source.directed_belief),
        order=tuple(e.request.candidate for e in history.evaluations) if source.is_selection else (),
        **{f.name: getattr(source, f.name) for f in fields(Origin)},
    )
    if not source.by_documents:
        made = _with_comparisons(made, source, summary, pair=pair)
    notes = (*changes(made), *made.notes)
    told = (*_decision(made, source, summary, pair=pair), *source.table_notes)
    return replace(made, decision=told, notes=notes)


def _with_comparisons(made: Report, source: Source, summary: Mapping[str, Any], *, pair: bool) -> Report:
    """The report with what is told of trainings, or of scores in a table, alone."""
    candidates, best, development = made.candidates, made.best, source.development
    active = [candidate for candidate in candidates if not candidate.withdrawn]
    return replace(
        made,
        equal_evaluations=equal_evaluations(candidates, best),
        equal_seconds=summary["seconds_of_equal_allocation"],
        comparisons=with_holm(_comparisons(made, pair=pair)),
        single_score=None if best is None else single_score(active, best, minimise=made.minimise),
        development=None if development is None else report_development(active, development),
        notes=(*made.notes, *_notes(candidates)),
    )


def _candidates(source: Source, summary: Mapping[str, Any]) -> Tuple[CandidateReport, ...]:
    return tuple(
        report_candidate(
            source.history,
            candidate,
            development=None if source.by_documents else source.development,
            num_parameters=source.num_parameters.get(candidate.name),
            asked=_asked(candidate, source.intervals) if isinstance(candidate, SystemSummary) else None,
        )
        for candidate in summary["candidates"]
    )


def _asked(system: SystemSummary, intervals: Mapping[str, Interval]) -> Asked:
    interval = intervals.get(system.name)
    return Asked(system.num_documents, system.measure, interval, system.num_queries, system.cost)


def _notes(candidates: Sequence[CandidateReport]) -> Tuple[str, ...]:
    if all(len(set(candidate.split_seeds)) == candidate.num_evaluations for candidate in candidates):
        return ()
    return (
        "Several scores of a candidate share a split, so they are not independent: the intervals of the means "
        "and the tests that assume independence are too narrow or too small. P(best), the paired differences and "
        "Wilcoxon's test take the splits into account.",
    )


def _check_scores(source: Source) -> None:
    number = len(source.history.evaluations)
    if number >= MIN_SCORES:
        return
    text = f"{source.name}: a report needs at least {MIN_SCORES} scores but there are {number}."
    raise (StoreError if source.is_selection else DataError)(
        f"{text} Wait until more {source.words.evaluations} have finished." if source.running else f"{text} Add scores."
    )


def _title(source: Source, *, pair: bool) -> str:
    if pair:
        return " against ".join(source.history.candidates)
    kind = "Selection" if source.is_selection else "Scores"
    return f"{kind} among {len(source.history.candidates)} {source.words.candidates} by {source.scored_by.text}"


def _comparisons(made: Report, *, pair: bool) -> Tuple[Comparison, ...]:
    """Of the best candidate against every other that has a score, or of the two that were asked for."""
    candidates, best = made.candidates, made.best
    if pair:
        return (compare_two(*candidates, minimise=made.minimise),)
    firsts = [candidate for candidate in candidates if candidate.name == best]
    others = [candidate for candidate in candidates if candidate.name != best and candidate.scores]
    return tuple(compare_two(first, other, minimise=made.minimise) for first in firsts for other in others)


def _decision(made: Report, source: Source, summary: Mapping[str, Any], *, pair: bool) -> Tuple[str, ...]:
    if pair:
        scope = scope_in_words(summary)
        return (*pair_in_words(summary, made.comparisons[0]), *([scope] if scope else []))
    if source.is_selection:
        return selection_in_words(summary, running=made.running, equal=made.equal_evaluations)
    return table_in_words(summary, belief=made.belief, min_evaluations=source.belief.min_evaluations)


def default_output(source: Optional[Pathlike], compare: Optional[Sequence[str]]) -> Path:
    """Where the files go unless told: `report` in the directory of the selection, or beside the table; for two
    candidates a name made of theirs.

    Raises:
        ConfigError: where there is a symbolic link, which somebody else may have put there.
    """
    output = _default_output(source, compare)
    refuse_link(output)
    return output


def _default_output(source: Optional[Pathlike], compare: Optional[Sequence[str]]) -> Path:
    place = Path() if source is None else Path(source) if Path(source).is_dir() else Path(source).parent
    if compare is not None:
        return place / re.sub(r"[^\w.-]+", "-", "-".join(["compare", *compare]))
    if source is None or Path(source).is_dir():
        return RunDirectory(place).report
    return place / f"{Path(source).stem}-report"
