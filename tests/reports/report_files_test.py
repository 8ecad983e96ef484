"""The LaTeX and the page of a report, and how names are shown."""

import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import pairwise
from typing import Dict, List, Optional, Tuple

import pytest

from fiesta_allennlp.reports.figures import draw_all, shorten_names
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report_files import escape_latex, render_html, render_latex, render_scores
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from tests.reports.made_up import CASES, UGLY_NAMES, by_documents, just_begun, made_up, with_failures

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


# The page is whole, escaped, in need of nothing else, and without numbers that do not exist.

VOID = ("meta", "img", "source", "br", "link")
TEXTLESS = ("style", "script")


class Page(HTMLParser):
    """The elements of a page; an element that is closed out of turn is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: List[Tuple[str, Dict[str, str]]] = []
        self.words: List[str] = []
        self._open: List[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: "List[Tuple[str, Optional[str]]]") -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in TEXTLESS and data.strip():
            self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def all(self, tag: str) -> List[Dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, str]:
    drawn = {"two": draw_all(CASES["two"](), tmp_path_factory.mktemp("figures"))}
    return {name: render_html(make(), drawn.get(name, {})) for name, make in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_page_is_whole_and_needs_nothing_else(pages: Dict[str, str], name: str) -> None:
    page = Page(pages[name])
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), "no level is left out"
    anchors = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert {link["href"] for link in page.all("a")} == {f"#{anchor}" for anchor in anchors}
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.all("img"))
    assert not re.search(
        r"(?:https?:)?//\w|url\(|@import", re.sub(r"(?s)<pre.*?</pre>|data:[\w/+;]+,[\w/+=]+", "", pages[name])
    )
    assert not re.search(r"\b(nan|None|inf)\b", page.text), "a number that does not exist"


def test_captions_are_alternative_texts_and_names_are_escaped(pages: Dict[str, str]) -> None:
    page = Page(pages["two"])
    captions = [image["alt"] for image in page.all("img")]
    assert len(captions) == 3 and all(caption in page.words for caption in captions)
    assert "Test macro_f1 of every candidate" in page.text
    assert "<script" not in pages["ugly"] and 'best" <b>' not in pages["ugly"]
    assert set(UGLY_NAMES) <= set(Page(pages["ugly"]).words)


@pytest.mark.parametrize(("stopped_by", "rank"), [("confidence", "best"), ("max_hours", "leads"), (None, "leads")])
def test_only_a_decided_selection_has_a_best_candidate(stopped_by: Optional[str], rank: str) -> None:
    words = Page(render_html(made_up(2, stopped_by=stopped_by), {})).words
    assert words[words.index("model_0", words.index("parameters")) + 1] == rank


def test_a_page_of_documents_speaks_of_documents_alone(pages: Dict[str, str]) -> None:
    page = Page(pages["documents"])
    assert not re.search(r"training|candidate|split", page.text)
    best = by_documents().result.ranked[0]
    assert f"{best.measure:.4f}" in page.words and f"{best.cost:.2f}" in page.words


def test_the_best_is_first_then_the_better_mean_then_the_order_given() -> None:
    candidates = (
        CandidateResult("a", mean=0.1),
        CandidateResult("gone", prob_best=0.9, state="failed"),
        CandidateResult("b", mean=0.3),
        CandidateResult("c", prob_best=0.4),
        CandidateResult("best", prob_best=0.3),
        CandidateResult("d"),
        CandidateResult("e"),
    )
    result = replace(just_begun().result, candidates=candidates, leading="best")
    assert [candidate.name for candidate in result.ranked] == ["best", "b", "a", "c", "d", "e", "gone"]
