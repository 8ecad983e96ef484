import os
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import Progress
from fiesta_allennlp.listeners.steady_console import SteadyConsole
from fiesta_allennlp.records import Failure, Request


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("With a margin of 0.00051 it ends.", "With a margin of\n0.00051 it ends.\n"),
        ("of a_rather_long_name_for_a-model it", "of\na_rather_long_name_for_a-model\nit\n"),
        ("two lines:\n  the second is longer", "two lines:\n  the second is\nlonger\n"),
        ("Continue with: allennlp fiesta-select -s x", "Continue with: allennlp fiesta-select -s x\n"),
    ],
)
def test_a_terminal_gets_messages_broken_at_blanks_and_commands_whole(said: str, shown: str) -> None:
    file = StringIO()
    SteadyConsole(file=file, force_terminal=True, width=20, color_system=None).print(said, soft_wrap=True)
    assert file.getvalue() == shown
    piped = StringIO()
    SteadyConsole(file=piped, width=20).print(said, soft_wrap=True)
    assert piped.getvalue() == f"{said}\n"


def test_elsewhere_no_line_ends_with_blanks_and_a_part_of_one_stays_open() -> None:
    file = StringIO()
    console = SteadyConsole(file=file, width=80)
    console.print("one   ")
    console.print("two ", end="")
    console.print("three")
    assert file.getvalue() == "one\ntwo three\n"


def test_a_terminal_that_is_closed_ends_nothing() -> None:
    ours, theirs = os.openpty()
    with open(theirs, "w") as terminal:
        console = SteadyConsole(file=terminal, force_terminal=True)
        with Progress(console, "accuracy") as progress:
            os.close(ours)
            with pytest.raises(OSError, match="Input/output error"):
                os.write(theirs, b"nobody reads")
            progress.on_outcome(Failure(Request("able", 0, 1, 2, 3, 4), "error", "no"))
        console.print("and more")


def test_a_full_disk_ends_nothing() -> None:
    with open("/dev/full", "w") as full:
        console = SteadyConsole(file=full)
        console.print("no room")
        console.print("none")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_a_terminal_would_obey_is_shown_as_escapes(is_terminal: bool) -> None:
    file = StringIO()
    console = SteadyConsole(file=file, force_terminal=is_terminal, width=60, color_system=None)
    table = Table(title="t\x07", box=None)
    table.add_column("h\x1b[2J")
    table.add_row(escape("a\x1b[red]\u202e\r"))
    console.print(table)
    console.print("one\n\x1b]0;TITLE\x07", markup=False)
    assert [line.strip() for line in file.getvalue().splitlines()] == [
        r"t\x07",
        r"h\x1b[2J",
        r"a\x1b[red]\u202e\r",
        "one",
        r"\x1b]0;TITLE\x07",
    ]


def test_what_an_output_cannot_encode_is_a_question_mark() -> None:
    written = BytesIO()
    console = SteadyConsole(file=TextIOWrapper(written, encoding="latin-1"))
    console.print("caf\u00e9 \u2013 \udcff")
    assert written.getvalue() == b"caf\xe9 ? \\udcff\n"
