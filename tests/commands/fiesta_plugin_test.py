"""The plugins file that `fiesta plugin` writes."""

import argparse
from pathlib import Path

import pytest
from allennlp.common.plugins import discover_file_plugins

from fiesta_allennlp.commands.fiesta_plugin import add_arguments, plugin_from_args


@pytest.mark.parametrize(("typed", "place"), [([], ".allennlp_plugins"), (["--user"], "home/.allennlp/plugins")])
def test_the_line_is_added_once_and_others_stay(
    typed: list, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("of_mine")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for _ in range(2):
        plugin_from_args(parser.parse_args(typed))
    said = capsys.readouterr().out.splitlines()
    assert list(discover_file_plugins(str(path))) == ["of_mine", "fiesta_allennlp.plugin"]
    assert "now" in said[0] and "Nothing was changed" in said[1]
    path.unlink()
    path.mkdir()
    with pytest.raises(SystemExit, match="2"):
        plugin_from_args(parser.parse_args(typed))
    assert capsys.readouterr().err == (
        f"error: {path if typed else place}: the line fiesta_allennlp.plugin cannot be written: Is a directory.\n"
    )
