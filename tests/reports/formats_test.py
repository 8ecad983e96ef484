from rich.table import Table

from fiesta_allennlp.reports.formats import as_text, escape_latex, escape_markdown, shown_names


def test_long_names_are_cut_in_the_middle_and_those_that_would_look_the_same_bear_their_place() -> None:
    assert shown_names(["td_lstm", "ian"], 7) == {"td_lstm": "td_lstm", "ian": "ian"}
    assert shown_names(["abcdefghij", "a\nb"], 5) == {"abcdefghij": "ab…ij", "a\nb": "a□b"}
    names = ["model-with-dropout-0.1-large", "other", "model-with-dropout-0.2-large"]
    shown = {names[0]: "#1 mode…arge", "other": "other", names[2]: "#3 mode…arge"}
    assert shown_names(names, 12) == shown


def test_escapes() -> None:
    assert escape_latex("\\a{b}$^~") == r"\textbackslash{}a\{b\}\$\textasciicircum{}\textasciitilde{}"
    assert escape_markdown("a\n b`[c]") == r"a b\`\[c\]"
    assert (escape_latex("a\x1b"), escape_markdown("a\x1b")) == (r"a\textbackslash{}x1b", r"a\\x1b")
    table = Table("h")
    table.add_row("a\x1b")
    assert r"a\x1b" in as_text(table, [])
