"""The example in the documentation runs as it stands."""

import re
from typing import Any, Dict

import pytest

from tests.conftest import REPOSITORY


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "api" / "functional.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (example,) = (block for block in blocks if "fiesta_allennlp.functional" in block)
    names: Dict[str, Any] = {}
    exec(compile(example, "docs/api/functional.md", "exec"), names)
    assert sum(names["confidence_scores"]) == pytest.approx(1)
    assert len(names["scores"]) == 3
    assert "is the best of 60 evaluations" in capsys.readouterr().out
