import os
from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.files import (
    CHUNK_BYTES,
    atomic_replacement,
    delete,
    from_csv_cell,
    last_line,
    shorten_log,
    to_csv_cell,
)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("@SUM(1+1)", "'@SUM(1+1)"),
        ("-loss", "'-loss"),
        ("'-a", "''-a"),
        ("+4", "'+4"),
        ("", ""),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe_and_is_read_back(value: str, cell: str) -> None:
    assert to_csv_cell(value) == cell
    assert from_csv_cell(cell) == value


@pytest.mark.parametrize("value", [None, -0.5, 3])
def test_a_number_stays(value: Any) -> None:
    assert to_csv_cell(value) is value


def test_invisible_characters_are_escapes() -> None:
    assert to_csv_cell("\t=1\ud800") == r"\t=1\ud800"


def test_a_log_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"a" * CHUNK_BYTES + b"b" * 5000 + b"c" * CHUNK_BYTES)
    shorten_log(log)
    content = log.read_bytes()
    assert content == b"a" * CHUNK_BYTES + b"\n... 5000 bytes of output were cut here ...\n" + b"c" * CHUNK_BYTES
    log.write_bytes(b"short")
    shorten_log(log)
    assert log.read_bytes() == b"short"


def test_the_last_line_of_a_log_is_read_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    assert last_line(log) == ""
    with log.open("wb") as file:
        file.truncate(2**40)  # a hole: whoever read all of it would need a TiB
        file.seek(0, os.SEEK_END)
        file.write(b"\nstep 1\rstep 2\r\xff broke \n\n \n")
    assert last_line(log) == "\ufffd broke"


def test_a_part_that_a_killed_process_left_goes_with_the_next_writing(tmp_path: Path) -> None:
    old, new = tmp_path / ".x.csv.0123.part", tmp_path / ".x.csv.4567.part"
    for part in (old, new):
        part.touch()
    os.utime(old, (0, 0))
    with atomic_replacement(tmp_path / "x.csv") as made:
        made.write_text("1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, "x.csv"]


def test_a_file_a_folder_or_a_link_is_deleted_and_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    file, folder, link, kept = (tmp_path / name for name in ("file", "folder", "link", "kept"))
    file.touch()
    (folder / "inner").mkdir(parents=True)
    kept.mkdir()
    link.symlink_to(kept)
    for path in (file, folder, link, tmp_path / "missing"):
        delete(path)
    assert list(tmp_path.iterdir()) == [kept]


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, atomic_replacement(tmp_path / "x.csv"):
        Path("/dev/full").write_text("more")
    assert caught.value.filename == str(tmp_path / "x.csv") and list(tmp_path.iterdir()) == []
