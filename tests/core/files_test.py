import os
from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import (
    CHUNK_BYTES,
    apply_overrides,
    atomic_replacement,
    delete,
    from_csv_cell,
    last_line,
    read_jsonnet,
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


def test_a_template_reads_its_point_before_the_environment(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "one.libsonnet").write_text("{ one: std.extVar('n') }")
    path = tmp_path / "t.jsonnet"
    path.write_text("(import 'one.libsonnet') { text: std.extVar('text'), home: std.extVar('PLACE') }")
    monkeypatch.setenv("PLACE", "é")
    monkeypatch.setenv("n", "environment")
    for number, text in enumerate(['"', "\\n", "😀", "%s"]):
        point = {"n": str(number), "text": text}
        assert read_jsonnet(path, variables=point, label="t") == {"one": str(number), "text": text, "home": "é"}
    path.write_text("if std.extVar('n') == '3' then error 'three' else 1")
    with pytest.raises(ConfigError, match="three"):
        read_jsonnet(path, variables={"n": "3"}, label="t")


CONFIG = '{"model": {"type": "a", "sizes": [1], "inner": {"x": 1}}, "trainer": {"optimizer": "adam"}}'


@pytest.mark.parametrize(
    ("overrides", "place", "value"),
    [
        ("{ model+: { inner+: { y: 2 } } }", "model", {"type": "a", "sizes": [1], "inner": {"x": 1, "y": 2}}),
        ("{ 'model.inner'+: { y: 2 }, model+: {} }", "model", {"type": "a", "sizes": [1], "inner": {"x": 1, "y": 2}}),
        ("local y = 2; { 'model.sizes'+: [y] }", "model", {"type": "a", "sizes": [1, 2], "inner": {"x": 1}}),
        ("{ trainer+: { lr: 2 }, 'trainer.optimizer'+: 'x' }", "trainer", {"optimizer": "x", "lr": 2}),
    ],
)
def test_overrides_with_a_plus_add_to_the_config(overrides: str, place: str, value: Any) -> None:
    assert read_jsonnet(CONFIG, overrides=overrides, label="t")[place] == value


def test_overrides_go_into_lists_and_keys_with_dots_and_change_a_copy() -> None:
    config = {"a": [1, {"b.c": {"d": 2}}], "e": 3}
    changed = {"a": [5, {"b.c": {"d": 4}}], "e": 3, "new": 6}
    assert apply_overrides(config, {"a.1.b.c.d": 4, "a.0": 5, "new": 6}) == changed
    assert config == {"a": [1, {"b.c": {"d": 2}}], "e": 3}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{'trainer.optimizer.lr': 0}", "'trainer.optimizer.lr': 'trainer.optimizer' is \"adam\".* Override it"),
        ("{'modle.dropout': 0}", "'modle.dropout': no key 'modle'.* 'model'"),
        ("{'model.sizes.1': 0}", "'model.sizes.1': no key '1'"),
        ("[5]", "overrides must be"),
    ],
)
def test_overrides_without_a_place_are_refused(overrides: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^here: .*{message}"):
        read_jsonnet(CONFIG, overrides=overrides, label="here")
