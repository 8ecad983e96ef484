"""The tables of a report for a LaTeX document."""

from typing import Iterable, List, Sequence

from fiesta_allennlp.reports import tables as cells
from fiesta_allennlp.reports.content import Report

ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(ESCAPED.get(character, character) for character in " ".join(text.split()))


def render_latex(report: Report) -> str:
    """Two `tabular` environments, of the candidates and of the comparisons, to be put into a `table` each."""
    lines = [
        "% " + " ".join(" ".join(report.decision).split()),
        r"% \usepackage{booktabs} and, for quotes in names, \usepackage[T1]{fontenc}",
        *_tabular(cells.candidate_header(report), cells.candidate_rows(report)),
    ]
    if report.comparisons:
        tests = [row[1:] for row in cells.p_value_rows(report)]
        rows = [[*row, *more] for row, more in zip(cells.difference_rows(report), tests, strict=True)]
        lines += ["", "% p-values are descriptive: p / p with Holm's correction", ""]
        lines += _tabular([*cells.DIFFERENCE_HEADER, *cells.p_value_header(report)[1:]], rows)
    return "\n".join(lines) + "\n"


def _tabular(header: Sequence[str], rows: Iterable[Sequence[str]]) -> List[str]:
    return [
        rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule",
        _row(header),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _row(texts: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, texts)) + r" \\"
