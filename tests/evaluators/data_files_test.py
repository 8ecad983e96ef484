from pathlib import Path

import pytest

from fiesta_allennlp.evaluators.data_files import files_behind, shared_files


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


def test_files_that_two_parts_share(shards: Path, tmp_path: Path) -> None:
    a, b, c = (shards / name for name in ("a.txt", "b.txt", "more/c.txt"))
    link, copy = tmp_path / "link.txt", tmp_path / "copy.txt"
    link.symlink_to(a)
    copy.write_bytes(b.read_bytes())
    assert shared_files([a], [b]) is None
    assert shared_files([], [a]) is None
    assert shared_files([b, a], [c, link]) == (a, link)
    assert shared_files([copy], [a, b]) == (copy, b)
    assert shared_files([a, b], [copy]) == (b, copy)


def test_a_file_that_stands_beside_both_is_no_data(shards: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "LICENCE", tmp_path / "theirs" / "LICENCE"
    theirs.parent.mkdir()
    for licence in (ours, theirs):
        licence.write_text("free")
    assert shared_files([ours, shards / "a.txt"], [theirs, shards / "b.txt"]) is None
