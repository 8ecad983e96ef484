"""A report as a page: one file that needs nothing else. Names and texts are escaped by the templates."""

from dataclasses import dataclass, replace
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.records import UNDECIDED
from fiesta_allennlp.reports import tables as cells
from fiesta_allennlp.reports import texts
from fiesta_allennlp.reports.captions import caption
from fiesta_allennlp.reports.content import CandidateReport, Report
from fiesta_allennlp.reports.figures.alt_texts import ALT_TEXTS
from fiesta_allennlp.reports.figures.drawing import FIGURES, Embedded, embed
from fiesta_allennlp.reports.tables import ranked
from fiesta_allennlp.selection.summary import duration_text, probability_text

BELIEF = "P(best)"
"""The column that the candidates are sorted by."""


@dataclass(frozen=True)
class PageFigure:
    """A figure with what stands in its place where it cannot be seen, and beneath it."""

    pictures: Embedded
    alt: str
    caption: str


@dataclass(frozen=True)
class Row:
    """A row of a table: the name of a candidate, its other cells, and P(best) for a bar behind it."""

    name: str
    cells: Tuple[str, ...]
    prob_best: float = 0.0
    is_best: bool = False
    withdrawn: bool = False


def render(report: Report) -> str:
    """The page: decision, candidates by falling P(best), figures, tests, checklist. It needs no other file and no
    network, and has a narrow form of each figure for telephones."""
    shown = _in_order(report)
    pages = {name: _page_figure(shown, name) for name in FIGURES}
    return _template("report.html.j2").render(
        report=shown,
        words=shown.words,
        bar=BELIEF,
        rank=_rank(shown),
        facts=_facts(shown),
        candidate_header=_belief_first(cells.candidate_header(shown), shown)[1:],
        candidate_rows=_candidate_rows(shown),
        figures=pages,
        difference_header=cells.DIFFERENCE_HEADER[1:],
        difference_rows=_rows(cells.difference_rows(shown)),
        p_value_header=cells.p_value_header(shown)[1:],
        p_value_rows=_rows(cells.p_value_rows(shown)),
        single_score=cells.single_score_lines(shown),
        development=_development(shown),
        commands=[row for row in shown.checklist if row[0].startswith("command")],
        checklist=[row for row in shown.checklist if not row[0].startswith("command")],
        descriptive=texts.descriptive(shown),
        texts=texts,
    )


def render_fragment(report: Report) -> str:
    """The decision and a small table of the candidates, for notebooks."""
    shown = _in_order(report)
    return _template("fragment.html.j2").render(
        report=shown, header=_fragment_header(shown), rows=[_fragment_row(c) for c in shown.candidates]
    )


def _fragment_header(report: Report) -> List[str]:
    if report.by_documents:
        return ["system", "documents", report.metric, BELIEF]
    return ["candidate", "evaluations", "mean", "sd", BELIEF]


def _fragment_row(candidate: CandidateReport) -> List[str]:
    believed = "withdrawn" if candidate.withdrawn else probability_text(candidate.prob_best)
    asked = candidate.asked
    if asked is not None:
        return [candidate.name, str(asked.num_documents), cells.number_text(asked.measure), believed]
    moments = [cells.number_text(candidate.mean), cells.number_text(candidate.sd)]
    return [candidate.name, str(candidate.num_evaluations), *moments, believed]


def _in_order(report: Report) -> Report:
    """With candidates and comparisons as they are shown."""
    candidates = ranked(report)
    places = {candidate.name: place for place, candidate in enumerate(candidates)}
    comparisons = tuple(sorted(report.comparisons, key=lambda comparison: places[comparison.second]))
    return replace(report, candidates=candidates, comparisons=comparisons)


def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("fiesta_allennlp.reports", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(name)


def _page_figure(report: Report, name: str) -> Optional[PageFigure]:
    pictures = embed(report, name)
    return None if pictures is None else PageFigure(pictures, ALT_TEXTS[name](report), caption(report, name))


def _rank(report: Report) -> str:
    """What `report.best` is: nothing was decided while a selection runs, or where a limit ended it."""
    return "leads" if report.running or report.stopped_by in UNDECIDED else "best"


def _facts(report: Report) -> List[Tuple[str, str]]:
    """The numbers that a reader looks for first."""
    best = next((candidate for candidate in report.candidates if candidate.name == report.best), None)
    facts: List[Tuple[str, str]] = []
    if best is not None:
        facts += [(_rank(report), best.name), (BELIEF, probability_text(best.prob_best))]
    if best is not None and report.margin:
        facts.append((f"P(within {report.margin:g} of the best)", probability_text(best.prob_within_margin)))
    evaluated = report.words.finished if report.by_documents else report.words.evaluations
    facts.append((evaluated if report.adaptive else "scores", str(report.num_evaluations)))
    if report.num_failures:
        facts.append((f"failed {report.words.evaluations}", str(report.num_failures)))
    if report.adaptive and report.equal_evaluations is not None:
        facts.append(("with equal allocation", str(report.equal_evaluations)))
    if report.by_documents:
        facts += _spent(report)
    if report.seconds:
        doing = "answering" if report.by_documents else "training"
        facts.append((f"{doing} time, all workers", duration_text(report.seconds)))
    if report.stopped_by:
        facts.append(("stopped by", report.stopped_by.replace("_", " ")))
    return facts


def _spent(report: Report) -> List[Tuple[str, str]]:
    """On queries, where that is known of all systems."""
    asked = [candidate.asked for candidate in report.candidates if candidate.asked is not None]
    numbers = [one.num_queries for one in asked if one.num_queries is not None]
    costs = [one.cost for one in asked if one.cost is not None]
    return [("queries", str(sum(numbers))), ("cost", f"{sum(costs):g}")] if numbers else []


def _candidate_rows(report: Report) -> List[Row]:
    rows = []
    for candidate, texts_of in zip(report.candidates, cells.candidate_rows(report), strict=True):
        name, *others = _belief_first(texts_of, report)
        is_best = candidate.name == report.best
        rows.append(Row(name, tuple(others), candidate.prob_best or 0.0, is_best, candidate.withdrawn))
    return rows


def _belief_first(row: Sequence[str], report: Report) -> List[str]:
    """A row of the candidates' table with its probabilities right of the name: a telephone shows little more."""
    start = cells.candidate_header(report).index(BELIEF)
    end = start + (2 if report.margin else 1)
    return [row[0], *row[start:end], *row[1:start], *row[end:]]


def _rows(rows: cells.Rows) -> List[Row]:
    return [Row(name, tuple(others)) for name, *others in rows]


def _development(report: Report) -> Optional[Mapping[str, Any]]:
    found = report.development
    if found is None:
        return None
    named = [Row(name, (cells.number_text(value, 3),)) for name, value in found.by_candidate.items()]
    everything = Row(f"all {found.num_evaluations} evaluations", (cells.number_text(found.overall, 3),))
    return {"explained": texts.DEVELOPMENT.format(metric=found.metric), "rows": [everything, *named]}
