"""The plugins file that `fiesta plugin` writes."""

import errno
from pathlib import Path
from typing import Any

import pytest
from allennlp.common.plugins import discover_file_plugins


def write_some(path: Path, text: str, **options: Any) -> int:
    path.write_bytes(text.encode()[:3])
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("typed", "place"), [([], ".allennlp_plugins"), (["--user"], "home/.allennlp/plugins")])
def test_the_line_is_added_once_and_others_stay(
    typed: list, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("of_mine")
    call = call.command("plugin")
    said = [call(*typed)[1] for _ in range(2)]
    assert list(discover_file_plugins(str(path))) == ["of_mine", "fiesta_allennlp.plugin"]
    assert "Added" in said[0] and "unchanged" in said[1]
    path.write_text("of_mine")
    with monkeypatch.context() as full_disk:
        full_disk.setattr(Path, "write_text", write_some)
        assert "The disk is full" in call.refused(*typed)
    assert path.read_text() == "of_mine"
    path.unlink()
    path.mkdir()
    assert "Is a directory" in call.refused(*typed)
