"""A report as Markdown."""

import re
from typing import Iterable, List, Mapping, Optional, Sequence

from fiesta_allennlp.reports import tables as cells
from fiesta_allennlp.reports import texts
from fiesta_allennlp.reports.captions import caption
from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.figures.alt_texts import ALT_TEXTS

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def render_markdown(report: Report, figures: Optional[Mapping[str, str]] = None) -> str:
    """The whole of a report. `figures` are the files of those that were drawn, by name."""
    drawn = {name: _figure(report, name, path) for name, path in (figures or {}).items()}
    sections = (
        _head(report),
        _candidates(report),
        drawn.get("distributions", []),
        drawn.get("measures", []),
        drawn.get("path", []),
        drawn.get("allocation", []),
        _comparisons(report),
        drawn.get("differences", []),
        _tests(report),
        _single_score(report),
        _development(report),
        _checklist(report),
    )
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def _head(report: Report) -> List[str]:
    notes = [f"- {escape_markdown(note)}" for note in report.notes]
    return [f"# {escape_markdown(report.title)}", "", escape_markdown(" ".join(report.decision)), "", *notes, ""]


def _figure(report: Report, name: str, path: str) -> List[str]:
    return [f"![{escape_markdown(ALT_TEXTS[name](report))}]({path})", "", escape_markdown(caption(report, name)), ""]


def _candidates(report: Report) -> List[str]:
    heading = f"## {report.words.candidates.capitalize()}"
    lines = [heading, "", *_table(cells.candidate_header(report), cells.candidate_rows(report)), ""]
    lines += [escape_markdown(texts.interval(report)), ""]
    for candidate in report.candidates:
        name = f"- **{escape_markdown(candidate.name)}**"
        lines += [f"{name} failed: {escape_markdown(reason)}" for reason in candidate.failures]
        if candidate.withdrawn:
            lines.append(
                f"{name} was withdrawn: {escape_markdown(candidate.withdrawn_because or 'no reason is known')}"
            )
    return [*lines, ""]


def _comparisons(report: Report) -> List[str]:
    if not report.comparisons:
        return []
    rows = _table(cells.DIFFERENCE_HEADER, cells.difference_rows(report))
    return ["## Differences", "", *_whose(report), *rows, "", texts.EFFECT_SIZES, "", texts.ALMOST_STOCHASTIC_ORDER, ""]


def _whose(report: Report) -> List[str]:
    if report.comparisons[0].first != report.best:
        return []
    return [f"Every difference is {escape_markdown(report.comparisons[0].first)} less the other one.", ""]


def _tests(report: Report) -> List[str]:
    if not report.comparisons:
        return []
    tests = [f"- **{test.name}**: {test.asks} Assumes {test.assumes}." for test in report.comparisons[0].tests]
    rows = _table(cells.p_value_header(report), cells.p_value_rows(report))
    return ["## Tests, descriptive only", "", texts.descriptive(report), "", *rows, "", texts.TESTS, "", *tests, ""]


def _single_score(report: Report) -> List[str]:
    if report.single_score is None:
        return []
    explained = texts.SINGLE_SCORE.format(best=escape_markdown(report.single_score.best))
    rows = _table(["what is compared", "names another one"], cells.single_score_lines(report))
    return ["## Why not one score", "", explained, "", *rows, ""]


def _development(report: Report) -> List[str]:
    found = report.development
    if found is None:
        return []
    named = [[name, f"{value:.3f}"] for name, value in found.by_candidate.items()]
    rows = [[f"all {found.num_evaluations} evaluations", cells.number_text(found.overall, 3)], *named]
    explained = texts.DEVELOPMENT.format(metric=escape_markdown(found.metric))
    return ["## Development and test scores", "", explained, "", *_table(["of", "Spearman's rho"], rows), ""]


def _checklist(report: Report) -> List[str]:
    return ["## Checklist", "", *_table(["what", "value"], report.checklist), ""]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> List[str]:
    return [
        "| " + " | ".join(map(escape_markdown, header)) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows),
    ]
