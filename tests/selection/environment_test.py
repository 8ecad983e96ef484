from pathlib import Path
from unittest.mock import Mock

import pytest

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.selection import environment
from fiesta_allennlp.selection.environment import (
    append_environment,
    changed_code,
    check_current_directory,
    describe_environment,
)


def test_a_session_like_the_last_one_is_no_new_one() -> None:
    here = describe_environment()
    assert append_environment([here], here) == [here]
    assert append_environment([here, {"host": "elsewhere"}], here) == [here, {"host": "elsewhere"}, here]


def test_a_selection_goes_on_where_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    began = [{"host": "of an earlier version"}, describe_environment()]
    check_current_directory(began)
    (tmp_path / "linked").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "linked")
    check_current_directory(began)
    monkeypatch.chdir("/")
    with pytest.raises(StoreError, match=f"began in another directory than .*: cd {tmp_path}$"):
        check_current_directory([*began, describe_environment()])
    check_current_directory([{"directory": str(tmp_path / "was moved")}])


def test_edited_code_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "one_file.py").write_text("SCORE = 0.1\n")
    (tmp_path / "whole" / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/model.py"):
        (tmp_path / "whole" / name).write_text("")
    packages = ["one_file", "whole.inner", "no_such_package"]
    before = [describe_environment(packages)]
    assert sorted(before[0]["code"]) == ["one_file", "whole"]
    assert changed_code(before, before[0]) == []
    (tmp_path / "whole" / "inner" / "model.py").write_text("SCORE = 0.9\n")
    assert changed_code(before, describe_environment(packages)) == ["whole"]
    assert changed_code([], before[0]) == []
    del before[0]["code"]  # as older versions wrote it
    assert changed_code(before, describe_environment(packages)) == []


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "image.sif"
    image.write_bytes(b"large")
    read = Mock(wraps=environment.file_digest)
    monkeypatch.setattr(environment, "file_digest", read)
    before = [describe_environment(files=[str(image)]) for _ in range(3)]
    assert read.call_count == 1
    image.write_bytes(b"larger")
    assert changed_code(before, describe_environment(files=[str(image)])) == [str(image)]
    assert read.call_count == 2
