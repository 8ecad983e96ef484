"""The pages of the site: every page is in a menu, and the examples run as they are printed."""

import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_the_readme_begins_with_the_two_commands_that_the_makefile_has_and_ci_runs() -> None:
    first_screen = "\n".join((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:25])
    (block,) = re.findall(r"```bash\n(make .*?)```", first_screen, re.DOTALL)
    commands = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert commands == ["make select", "make test"]
    targets = re.findall(
        r"^([a-z]+): \$\(INSTALLED\)", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {"select", "test"} <= set(targets), "each sets everything up"
    assert "bare make test" in (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_page_is_in_a_menu() -> None:
    menus = re.findall(r"```\{toctree\}\n.*?\n\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    entries = [entry for menu in menus for entry in menu.splitlines()]
    named = [entry.rpartition("<")[2].rstrip(">") for entry in entries]
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert len(named) == len(set(named))
    assert set(named) == pages | {"api/index"}


def test_every_extension_point_has_an_example_that_runs(tmp_path: Path) -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    scripts = sorted((REPOSITORY / "examples" / "own_classes").glob("*.py"))
    assert all(f"own_classes/{script.name}" in text for script in scripts)
    blocks = [script.read_text(encoding="utf-8") for script in scripts]
    bases = {base for block in blocks for base in re.findall(r"^class \w+\((\w+)\)", block, re.MULTILINE)}
    assert bases >= {"PosteriorSampling", "Belief", "BayesianStop", "Executor", "Evaluator", "System"}
    (tmp_path / "examples.py").write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, "examples.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "[0.5, None]" in done.stdout
    assert "fine 0.9" in done.stdout
