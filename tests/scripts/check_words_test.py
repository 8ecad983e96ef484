from importlib import import_module
from types import ModuleType

import pytest

PAGE = """# Trainings in a heading

- It spends the trainings
  where `so many` help. A second sentence.

| in place of | a table |

```text
anew
```
<!-- likewise -->
One [link](entropy.md) and one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three.
"""


@pytest.fixture
def script() -> ModuleType:
    return import_module("check_words")


def test_prose_is_counted_and_searched(script: ModuleType) -> None:
    page = script.check(PAGE)
    assert page.replaced == [(3, "trainings", "runs")]
    assert [len(sentence.split()) for sentence in page.long] == [26]
    assert page.num_words == 5 + 6 + 19 + 7


def test_every_replaced_word_is_found(script: ModuleType) -> None:
    for word in ("mended", "strictly", "in place of", "macro-F1", "macro-F"):
        found = script.check(f"It is {word} here.").replaced
        assert bool(found) is (word not in ("strictly", "macro-F1")), word
