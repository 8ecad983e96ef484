from io import StringIO

from rich.console import Console

from fiesta_allennlp.listeners.progress import repetition_bar


def drawn(*, terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=80, legacy_windows=False)
    with repetition_bar(console, 50) as advance:
        advance(20)
        advance(10)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_bar_counts_repetitions_on_a_terminal_only() -> None:
    assert "30/50" in drawn(terminal=True)
    assert drawn(terminal=False) == ""
