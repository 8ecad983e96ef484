import hashlib
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, Iterator, Tuple
from zipfile import ZipFile

import pytest

from fiesta_allennlp.core.errors import DataChangedError
from fiesta_allennlp.trainings.data_files import checking_unchanged, files_behind, take_snapshot


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
    mark = take_snapshot({"train": path.format(shards), "test": "none://example.org/test.txt"})
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


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tuple[str, Path]]:
    """The URL of a file on this machine, and the file. AllenNLP's cache is empty."""
    file = tmp_path / "served.txt"

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("ETag", hashlib.sha256(file.read_bytes()).hexdigest())
            super().end_headers()

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    monkeypatch.chdir(tmp_path)
    file_utils = pytest.importorskip("allennlp.common.file_utils")
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", tmp_path / "cache")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/served.txt", file
        server.shutdown()
        thread.join()


def test_a_url_is_known_by_its_content(served: Tuple[str, Path], tmp_path: Path) -> None:
    url, file = served
    file.write_text("old")
    mark = take_snapshot({"train": url})
    assert mark.fingerprint == take_snapshot({"train": str(file)}).fingerprint
    with checking_unchanged(mark):
        pass
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    with checking_unchanged(mark):
        pass  # another machine, which has no copy yet
    file.write_text("new")
    with pytest.raises(DataChangedError, match=f"{url} has changed"), checking_unchanged(mark):
        import_module("allennlp.common.file_utils").cached_path(url)  # as a reader does
    assert take_snapshot({"train": url}).fingerprint != mark.fingerprint
    file.write_text("old")
    with checking_unchanged(mark):
        pass  # a reader gets the old copy, though that of the other content is newer


def test_a_member_is_known_by_its_archive(tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    paths = {"train": f"{archive}!a.txt", "test": f"{archive}!b.txt"}

    with ZipFile(archive, "w") as members:
        members.writestr("a.txt", "old")
    mark = take_snapshot(paths)
    assert {file.path for file in mark.files} == {str(archive)}
    assert mark.fingerprint != take_snapshot({"train": paths["test"], "test": paths["train"]}).fingerprint
    changed = pytest.raises(DataChangedError, match="all.zip has changed")
    with changed, checking_unchanged(mark), ZipFile(archive, "a") as members:
        members.writestr("b.txt", "new")
    assert take_snapshot(paths).fingerprint != mark.fingerprint
    assert files_behind(paths["train"]) == [], "parts in one archive are not the same data"
    assert take_snapshot({"train": f"file://{tmp_path}"}).files == (), "a URL of a directory is known by its name"
