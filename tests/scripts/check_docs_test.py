"""The pages are in order, and the check would notice if they were not."""

import re
from importlib import import_module
from pathlib import Path
from typing import Callable, List

import check_docs
import make_command_reference
import pytest
import yaml

import fiesta_allennlp
from fiesta_allennlp.version import __version__
from tests.conftest import REPOSITORY


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes a page beside another one, `other.md` with a heading, in a repository of its own."""
    monkeypatch.setattr(check_docs, "REPOSITORY", tmp_path)
    monkeypatch.setattr(check_docs, "COPIED", ())
    (tmp_path / "scripts").mkdir()
    (tmp_path / "other.md").write_text("# A heading: of `code`, and more\n")

    def write(text: str) -> Path:
        (tmp_path / "README.md").write_text(text)
        return tmp_path / "README.md"

    return write


def test_links_anchors_and_commands_of_all_pages_and_the_reference_is_up_to_date() -> None:
    assert check_docs.problems() == []
    text = make_command_reference.REFERENCE.read_text(encoding="utf-8")
    assert text == make_command_reference.reference(), "run: python scripts/make_command_reference.py"
    calls = make_command_reference.CALLS.read_text(encoding="utf-8")
    assert calls == make_command_reference.with_calls(calls), "run: python scripts/make_command_reference.py"
    assert all(
        f"| `{name}(" in calls and f"autofunction:: fiesta_allennlp.{name}\n" in calls
        for name in fiesta_allennlp.__all__
    )
    for parser in make_command_reference.parsers().values():
        for action in parser._actions:
            assert action.dest == "help" or all(f"`{name}" in text for name in action.option_strings)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](other.md) [b](other.md#a-heading-of-code-and-more) [c](https://x.y/z)", []),
        ("![a](pictures/x.png)", ["README.md: there is no pictures/x.png"]),
        ("# Here\n[a](#here) [b](#there)", ["README.md: .* #there"]),
        ("```bash\nallennlp fiesta-replay tie --budget 3 | head\n```", []),
        ("```bash\npython -m fiesta_allennlp select a b \\\n    --workers x\n```", ["README.md:1: "]),
        ("```bash\nfiesta rply tie\n```", ["README.md:1: .*fiesta rply"]),
        ("<!-- not run: x -->\n```bash\nallennlp fiesta-replay --x\n```", ["README.md:2: "]),
        ("```text\nallennlp fiesta-replay --x\n```", []),
        ("<!-- pairs -->\n| 7 |\n<!-- end -->", ["README.md: .*that pairs makes"]),
        ("<!-- paper: default -->\n<!-- end -->", ["README.md: .*that reproduce_paper makes"]),
        ("```bash\npython scripts/nothing.py\n```", ["README.md:1: there is no scripts/nothing.py"]),
        ("<!-- ends: foo -->\n| a |\n<!-- end -->", ["README.md: no script .*'ends: foo'"]),
    ],
)
def test_what_is_wrong_is_found(page: Callable[[str], Path], text: str, wrong: List[str]) -> None:
    page(text)
    found = check_docs.problems()
    assert len(found) == len(wrong)
    assert all(re.match(start, problem) for problem, start in zip(found, wrong, strict=True))


def test_tables_of_another_rule_are_refused(
    page: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page(import_module("pairs").TABLES.fill("<!-- pairs -->\n<!-- end -->\n"))
    assert check_docs.problems() == []
    monkeypatch.setattr(import_module("common"), "FINAL_RULE", tmp_path / "final_rule.txt")
    (tmp_path / "final_rule.txt").write_text("0123abcd\n")
    message = "<!-- pairs --> has no results whose rule is in final_rule.txt. Measure it again."
    assert check_docs.problems() == [f"README.md: {message}"]


def test_a_block_that_fails_and_what_is_not_printed_are_told(page: Callable[[str], Path]) -> None:
    error = check_docs.run(page("```bash\nexport N=7\n```\n\n```bash\npython -c 'raise ValueError('$N')'\n```\n"))
    assert error.startswith("=== README.md:5") and "ValueError: 7" in error
    block = "```bash\necho '2 in 3.5 s'\n```\n\n<!-- printed: times vary -->\n```text\ntwo\n...\n 2 in 9 s\n```"
    assert check_docs.run(page(block)) == "README.md:6: not printed: two"


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
