"""The LaTeX of a report, and how names are shown."""

import re
from functools import partial

import pytest

from fiesta_allennlp.reports.drawing import shorten_names
from fiesta_allennlp.reports.latex_and_html import escape_latex
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report import render_html, render_latex, render_scores
from tests.reports.made_up import made_up, with_failures

NAMES = ("a_b", '<i>&"x"', "50% | *bold* #1")


@pytest.fixture
def report() -> Report:
    return with_failures(made_up(4, names=NAMES, margin=0.01))


def test_latex_tables_are_whole_and_escaped(report: Report) -> None:
    text = render_latex(report)
    assert r"candidate & runs & failed & mean & sd & P(best) & tier \\" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 1
    for table in re.findall(r"\\begin\{tabular\}\{(l r*)\}(.*?)\\end", text.replace("{l", "{l "), re.DOTALL):
        columns, body = len(table[0].replace(" ", "")), table[1]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert lines
        assert all(len(re.findall(r"(?<!\\)&", line)) == columns - 1 for line in lines)
    best = report.result.candidates[0]
    assert rf"a\_b & {len(best.scores)} & 0 & {best.mean:.4f}" in text and r"50\% \textbar{} *bold* \#1 & 0" in text


def test_no_file_has_what_a_terminal_obeys_or_a_spreadsheet_runs() -> None:
    made = made_up(3, names=["a\x1b[2J", "b\u202ec", "=1+1"])
    page, table = render_html(made, {}) + render_latex(made), render_scores(made)
    assert not {"\x1b", "\u202e"} & {*page, *table}
    assert r"a\textbackslash{}x1b[2J" in page and r">b\u202ec<" in page
    names = {line.partition(",")[0] for line in table.splitlines()}
    assert names == {"candidate", r"a\x1b[2J", r"b\u202ec", "'=1+1"}


def test_long_names_are_cut_in_the_middle_and_those_that_would_look_the_same_bear_their_place() -> None:
    shown = partial(shorten_names, has_glyph=str.isprintable)
    assert shown(["td_lstm", "ian"], 7) == {"td_lstm": "td_lstm", "ian": "ian"}
    assert shown(["abcdefghij", "a\nb"], 5) == {"abcdefghij": "ab…ij", "a\nb": "a□b"}
    names = ["model-with-dropout-0.1-large", "other", "model-with-dropout-0.2-large"]
    assert shown(names, 12) == {names[0]: "#1 mode…arge", "other": "other", names[2]: "#3 mode…arge"}


def test_escapes() -> None:
    assert escape_latex("\\a{b}$^~") == r"\textbackslash{}a\{b\}\$\textasciicircum{}\textasciitilde{}"
    assert (escape_latex("[5cm] a"), escape_latex("*")) == ("{[}5cm] a", "{*}"), "no argument or star of the row before"
