import shutil
from pathlib import Path

import pytest

from fiesta_allennlp.candidates.data_files import checking_unchanged, files_behind, take_snapshot
from fiesta_allennlp.core.errors import DataChangedError


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A directory of two shards, one more below it, and two that nobody reads."""
    for name in ("b.txt", "a.txt", "more/c.txt", ".hidden.txt", ".cache/d.txt"):
        (tmp_path / "shards" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shards" / name).write_text(name)
    (tmp_path / "shards" / "broken.txt").symlink_to("nowhere")
    return tmp_path / "shards"


def test_what_stands_behind_a_path(shards: Path) -> None:
    a, b, c = (shards / name for name in ("a.txt", "b.txt", "more/c.txt"))
    assert files_behind(str(a)) == [a]
    assert files_behind(str(shards)) == [a, b, c]
    assert files_behind(f"{shards}/*.txt") == [a, b]
    assert files_behind([str(b), str(a)]) == [b, a]
    assert files_behind({"y": str(b), "x": str(a)}) == [a, b]
    assert files_behind("https://example.org/a.txt") == files_behind("nowhere.txt") == files_behind(None) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "b.txt", "/a.txt has changed"),
        ("a.txt", "more", r"/a.txt has changed .* \(5 bytes then, 4 now\)$"),
        ("e.txt", "new", "/e.txt is a new data file"),
    ],
)
@pytest.mark.parametrize("path", ["{}", "{}/*.txt"])
def test_data_that_changed_are_noticed_before_and_after(
    shards: Path, path: str, name: str, content: str, message: str
) -> None:
    mark = take_snapshot({"train": path.format(shards), "test": "https://example.org/test.txt"})
    before = take_snapshot({"train": path.format(shards)}).fingerprint
    with pytest.raises(DataChangedError, match=message), checking_unchanged(mark):
        raise ValueError(f"half of {(shards / name).write_text(content)} characters were read")
    with pytest.raises(DataChangedError, match=message), checking_unchanged(mark):
        raise AssertionError("it did not look before")
    assert take_snapshot({"train": path.format(shards)}).fingerprint != before


def test_a_file_that_is_away_may_come_again(shards: Path) -> None:
    mark = take_snapshot({"train": str(shards)})
    with checking_unchanged(mark):
        (shards / "b.txt").unlink()
    with pytest.raises(FileNotFoundError, match="b.txt"), checking_unchanged(mark):
        raise AssertionError("it did not look before")
    (shards / "b.txt").write_text("b.txt!")
    with pytest.raises(DataChangedError, match="b.txt has changed"), checking_unchanged(mark):
        pass


def test_files_at_another_place_are_known_by_their_content(shards: Path) -> None:
    moved = shards.with_name("copy")
    shutil.copytree(shards, moved, symlinks=True)
    assert take_snapshot({"train": str(moved)}).fingerprint == take_snapshot({"train": str(shards)}).fingerprint


# The data of archives that a config starts from.
