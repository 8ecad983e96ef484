"""Counts words and long sentences of every page of the site, and finds the words that we replace.

python scripts/check_words.py                # a line for each page; fails on replaced words and long pages
python scripts/check_words.py PAGE.md ...    # every replaced word and long sentence of these pages
"""

import argparse
import re
import sys
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
    r"beside": "next to; compared with; in addition to",
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

MOST_WORDS: Dict[str, int] = {
    "README.md": 580,
    "cluster.md": 1070,
    "cost.md": 790,
    "documents.md": 970,
    "evaluation.md": 1800,
    "faq.md": 1290,
    "files.md": 700,
    "huggingface.md": 600,
    "method.md": 2080,
    "programs.md": 800,
    "quickstart.md": 600,
    "report.md": 850,
    "reviewers.md": 780,
    "searching.md": 780,
    "select.md": 1440,
    "splits.md": 850,
    "tables.md": 800,
}
"""The most words of a page, code and tables left out."""

SITE = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")


class Page(NamedTuple):
    """What was found on one page. `long` are sentences, `replaced` words with their line numbers."""

    num_words: int
    long: List[str]
    replaced: List[Tuple[int, str, str]]


def prose(text: str) -> Iterator[Tuple[int, str]]:
    """The lines of a Markdown page that are written for reading, with their numbers: without code, formulas, tables,
    comments and the targets of links."""
    in_code = in_formula = False
    before = ""
    for number, line in enumerate(text.splitlines(), start=1):
        in_formula = line.startswith("    ") and (in_formula or not before.strip())
        before = line
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not in_formula and not line.lstrip().startswith(("|", "<!--", "#")):
            yield number, re.sub(r"`[^`]*`", "CODE", re.sub(r"\]\([^)]*\)", "]", line))


def sentences(lines: Sequence[str]) -> Iterator[str]:
    """The sentences of paragraphs and list items."""
    text = "\n".join(re.sub(r"^\s*([-*]|\d+\.)\s+", "\n\n", line) for line in lines)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from (
            part for part in re.split(r"(?<=[.!?:])\s+|(?<=[.!?:]\*\*)\s+", " ".join(paragraph.split())) if part
        )


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


def site() -> List[Path]:
    return [path for pattern in SITE for path in sorted(REPOSITORY.glob(pattern))]


def problems(path: Path, page: Page) -> Iterator[str]:
    """What has to be changed on a page."""
    most = MOST_WORDS.get(path.name, page.num_words)
    if page.num_words > most:
        yield f"{path.name} has {page.num_words} words, more than {most}"
    yield from (f"{path.name}:{number}: '{word}': {better}" for number, word, better in page.replaced)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages to list in detail (default: a summary of the site)")
    paths = parser.parse_args().pages
    messages: List[str] = []
    for path in paths or site():
        page = check(path.read_text(encoding="utf-8"))
        print(f"{path.name:24} {page.num_words:6} words {len(page.long):4} long {len(page.replaced):4} to replace")
        for sentence in page.long if paths else ():
            print(f"  {len(sentence.split())} words: {sentence[:100]}")
        messages += problems(path, page)
    sys.exit("\n".join(messages) if messages else 0)


if __name__ == "__main__":
    main()
