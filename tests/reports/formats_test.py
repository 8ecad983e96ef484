from rich.table import Table

from fiesta_allennlp.reports.formats import as_text, escape_latex, escape_markdown, shown_names


def test_short_names_stay() -> None:
    assert shown_names(["td_lstm", "ian"], 7) == {"td_lstm": "td_lstm", "ian": "ian"}


def test_long_names_are_cut_in_the_middle() -> None:
    assert shown_names(["abcdefghij"], 5) == {"abcdefghij": "ab…ij"}


def test_names_that_would_look_the_same_bear_their_place() -> None:
    names = ["model-with-dropout-0.1-large", "other", "model-with-dropout-0.2-large"]
    shown = shown_names(names, 12)
    assert shown == {names[0]: "#1 mode…arge", "other": "other", names[2]: "#3 mode…arge"}


def test_characters_without_a_glyph_are_boxes() -> None:
    assert shown_names(["a\nb"], 9) == {"a\nb": "a□b"}


def test_escapes() -> None:
    assert escape_latex("\\a{b}$^~") == r"\textbackslash{}a\{b\}\$\textasciicircum{}\textasciitilde{}"
    assert escape_markdown("a\n b`[c]") == r"a b\`\[c\]"


def test_invisible_characters_are_escapes_that_each_format_shows() -> None:
    assert escape_latex("a\x1b") == r"a\textbackslash{}x1b"
    assert escape_markdown("a\x1b") == r"a\\x1b"
    table = Table("h")
    table.add_row("a\x1b")
    assert r"a\x1b" in as_text(table, [])
