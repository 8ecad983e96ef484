from importlib import import_module
from pathlib import Path
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


def test_formulas_are_not_prose_and_bold_sentences_end(script: ModuleType) -> None:
    page = script.check("One two:\n\n    x_ik = mu_i\n    b_s  ~ N\n\n1. Three.\n\n       more formula\n\n   Four.\n")
    assert page.num_words == 2 + 2 + 1
    assert list(script.sentences(["**One.** Two"])) == ["**One.**", "Two"]


def test_a_page_that_is_too_long_is_a_problem(script: ModuleType) -> None:
    most = script.MOST_WORDS["select.md"]
    fits, long = (script.check(("word " * number).strip()) for number in (most, most + 1))
    assert list(script.problems(Path("select.md"), fits)) == []
    assert list(script.problems(Path("select.md"), long)) == [f"select.md has {most + 1} words, more than {most}"]
    assert list(script.problems(Path("other.md"), long)) == []
