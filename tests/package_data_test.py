"""What is no Python file goes along into a wheel too."""

from importlib import import_module
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def test_every_other_file_of_the_package_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("setuptools", reason="setuptools is not installed: no wheel can be built here")
    monkeypatch.chdir(REPOSITORY)
    command = import_module("distutils.core").run_setup("setup.py", stop_after="init").get_command_obj("build_py")
    command.ensure_finalized()
    installed = {Path(directory, name) for _, directory, _, names in command.data_files for name in names}
    others = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "fiesta_allennlp").rglob("*")]
    wanted = {p for p in others if (REPOSITORY / p).is_file() and p.suffix not in (".py", ".pyc", ".part")}
    assert Path("fiesta_allennlp/reports/templates/report.html.j2") in installed
    assert wanted <= installed
