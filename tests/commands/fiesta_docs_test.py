import re
import sys
from pathlib import Path

import pytest

from fiesta_allennlp import __main__
from fiesta_allennlp.commands import read_only_commands


def run_docs(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fiesta", "docs", *arguments])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    return int(ended.value.code or 0)


def test_a_page_is_printed_and_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho $1 >>{opened}\n")
    browser.chmod(0o755)
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("index", "scripts"):
        (pages / f"{name}.html").touch()
    monkeypatch.setattr(read_only_commands, "PAGES", (tmp_path / "missing", pages))
    monkeypatch.setattr("webbrowser._tryorder", None)  # which browsers there are is found again
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    assert (run_docs(monkeypatch), run_docs(monkeypatch, "scripts")) == (0, 0)
    names = ("index.html", "scripts.html")
    assert capsys.readouterr().out.split() == [str(pages / name) for name in names]
    assert opened.read_text().split() == [(pages / name).as_uri() for name in names]
    assert run_docs(monkeypatch, "script") == 2
    assert re.fullmatch("error: .*'script'.*'scripts'.*\n", capsys.readouterr().err)
    monkeypatch.setattr(read_only_commands, "PAGES", (tmp_path / "missing",))
    assert run_docs(monkeypatch) == 2
    assert "make docs" in capsys.readouterr().err
