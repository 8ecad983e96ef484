"""Counts words and long sentences of every page, and finds the words that we replace.

python scripts/check_words.py [PAGE.md ...]
"""

import argparse
import re
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

REPOSITORY = Path(__file__).parent.parent

LONGEST = 25
"""Words of a sentence."""

REPLACED: Dict[str, str] = {
    r"trainings": "runs",
    r"undecided": "inconclusive",
    r"anew|likewise|for ever": "again; also; forever",
    r"mend\w*": "fix",
    r"in place of": "instead of",
    r"so many": "this number of",
    r"of which|such a one|that one": "name the thing",
    r"be content with": "accept",
    r"made up": "synthetic",
    r"promise\w*|strict": "guarantee, anytime-valid",
    r"withdrawn|withdraws?": "failed, removed or eliminated",
    r"entropy": "seed",
    r"official parts?|development": "training, validation or test set",
    r"macro-F(?!1)": "macro-F1",
}
"""Patterns, and what to write instead."""


class Page(NamedTuple):
    """What was found on one page. `long` are sentences, `replaced` words with their line numbers."""

    num_words: int
    long: List[str]
    replaced: List[Tuple[int, str, str]]


def prose(text: str) -> Iterator[Tuple[int, str]]:
    """The lines of a Markdown page that are written for reading, with their numbers: without code, tables, comments
    and the targets of links."""
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith(("|", "<!--", "#")):
            yield number, re.sub(r"`[^`]*`", "CODE", re.sub(r"\]\([^)]*\)", "]", line))


def sentences(lines: Sequence[str]) -> Iterator[str]:
    """The sentences of paragraphs and list items."""
    text = "\n".join(re.sub(r"^\s*([-*]|\d+\.)\s+", "\n\n", line) for line in lines)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from (part for part in re.split(r"(?<=[.!?:])\s+", " ".join(paragraph.split())) if part)


def check(text: str) -> Page:
    """Count and find."""
    numbered = list(prose(text))
    found = [
        (number, match.group(), better)
        for number, line in numbered
        for pattern, better in REPLACED.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", line, re.IGNORECASE)
    ]
    long = [sentence for sentence in sentences([line for _, line in numbered]) if len(sentence.split()) > LONGEST]
    return Page(sum(len(line.split()) for _, line in numbered), long, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages to list in detail (default: a summary of all)")
    given = parser.parse_args().pages
    pages = given or [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    for path in pages:
        page = check(path.read_text(encoding="utf-8"))
        print(f"{path.name:24} {page.num_words:6} words {len(page.long):4} long {len(page.replaced):4} to replace")
        for number, word, better in page.replaced if given else ():
            print(f"  line {number}: '{word}': {better}")
        for sentence in page.long if given else ():
            print(f"  {len(sentence.split())} words: {sentence[:100]}")


if __name__ == "__main__":
    main()
