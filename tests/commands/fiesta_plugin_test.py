"""The plugins file that `fiesta plugin` writes."""

from pathlib import Path
from typing import Any

import pytest
from allennlp.common.plugins import discover_file_plugins


@pytest.mark.parametrize(("typed", "place"), [([], ".allennlp_plugins"), (["--user"], "home/.allennlp/plugins")])
def test_the_line_is_added_once_and_others_stay(
    typed: list, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("of_mine")
    call = in_process("plugin")
    said = [call(*typed)[1] for _ in range(2)]
    assert list(discover_file_plugins(str(path))) == ["of_mine", "fiesta_allennlp.plugin"]
    assert "Added" in said[0] and "unchanged" in said[1]
    path.unlink()
    path.mkdir()
    assert "Is a directory" in call.refused(*typed)
