from typing import Any

import pytest

from fiesta_allennlp.core.settings.options import mention_default


@pytest.mark.parametrize(
    ("default", "text", "expected"),
    [
        (
            2,
            "runs at once; auto: as many as there is room for",
            "runs at once (default 2); auto: as many as there is room for",
        ),
        (60.0, "seconds to wait", "seconds to wait (default 60)"),
        ("best", "keep none, best or all; best is small", "keep none, best (default) or all; best is small"),
        (3, "seconds (default: the pilot's)", "seconds (default: the pilot's)"),
        (None, "a file", "a file"),
        (False, "a switch", "a switch"),
    ],
)
def test_the_help_takes_the_default_from_the_option(default: Any, text: str, expected: str) -> None:
    assert mention_default(text, default) == expected
