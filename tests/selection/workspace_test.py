from pathlib import Path

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.selection.workspace import check_no_foreign_files


def test_a_directory_with_other_files_is_refused_and_ours_are_not(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    check_no_foreign_files(directory, force=False)
    directory.root.mkdir()
    for name in ("store.lock", "answers.sqlite", "answers.sqlite-wal", "detached.log", "selection.log", ".gitignore"):
        (directory.root / name).touch()
    check_no_foreign_files(directory, force=False)
    for name in ("thesis.tex", "b", "c", "d"):
        (directory.root / name).touch()
    with pytest.raises(StoreError, match="other files, such as b, c, d\\."):
        check_no_foreign_files(directory, force=False)
    check_no_foreign_files(directory, force=True)


@pytest.mark.parametrize("name", ["selection.json", "evaluations.csv"])
def test_results_of_somebody_else_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for force in (False, True):
        with pytest.raises(StoreError, match=f"{name} would be overwritten"):
            check_no_foreign_files(RunDirectory(tmp_path), force=force)
