import os
from pathlib import Path
from typing import Callable, List

import pytest

from fiesta_allennlp.errors import DataChangedError
from fiesta_allennlp.trainings import data_files
from fiesta_allennlp.trainings.data_files import files_behind, mark_data, shared_files, unchanged


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda shards: (shards / "a.txt").write_text("b.txt"),
            r"\S+/a.txt is not what it was when the selection began$",
        ),
        (lambda shards: (shards / "a.txt").write_text("more"), r"\S+/a.txt is not .* \(5 bytes then, 4 now\)$"),
        (lambda shards: (shards / "e.txt").write_text("new"), r"\S+/e.txt was not there when the selection began"),
    ],
    ids=range(3),
)
@pytest.mark.parametrize("path", ["{}", "{}/*.txt"])
def test_data_that_changed_are_noticed_before_and_after(
    shards: Path, path: str, change: Callable[[Path], object], message: str
) -> None:
    mark = mark_data({"train": path.format(shards), "test": "https://example.org/test.txt"})

    def work() -> None:
        with unchanged(mark, {}):
            change(shards)
            raise ValueError("half written")

    with pytest.raises(DataChangedError, match=message):
        work()
    with pytest.raises(DataChangedError, match=message), unchanged(mark, {}):
        raise AssertionError("it did not look before")


@pytest.mark.parametrize("path", ["{}", "{}/*.txt"])
def test_a_file_that_is_away_may_come_again(shards: Path, path: str) -> None:
    mark = mark_data({"train": path.format(shards)})
    with unchanged(mark, {}):
        (shards / "b.txt").unlink()
    with pytest.raises(FileNotFoundError, match="b.txt"), unchanged(mark, {}):
        raise AssertionError("it did not look before")
    (shards / "b.txt").write_text("b.txt!")
    with pytest.raises(DataChangedError, match="b.txt is not what it was"), unchanged(mark, {}):
        pass


def test_only_files_with_other_times_are_read(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = mark_data({"train": str(shards)})
    read: List[Path] = []
    digest_of = data_files.digest_of
    monkeypatch.setattr(data_files, "digest_of", lambda file: read.append(file) or digest_of(file))
    with unchanged(mark, {}):
        (shards / ".hidden.txt").write_text("an editor's")
    assert read == []
    os.utime(shards / "a.txt", (1, 1))
    with unchanged(mark, {}):
        pass
    assert read == [shards / "a.txt"], "once, for then its new times are known"


def test_a_file_at_another_place_is_known_by_its_content(shards: Path, tmp_path: Path) -> None:
    a, copy = shards / "a.txt", tmp_path / "sent.txt"
    mark = mark_data({"train": str(a)})
    copy.write_bytes(a.read_bytes())
    a.unlink()
    with unchanged(mark, {str(a): str(copy)}):
        pass
    copy.write_text("a.tx!")
    with pytest.raises(DataChangedError, match="/a.txt is not what it was"), unchanged(mark, {str(a): str(copy)}):
        pass
