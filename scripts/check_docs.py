"""Checks README, docs and the other pages: links, anchors, tables, that every command parses; and runs every command.

    python scripts/check_docs.py           # links, tables and options, in seconds
    python scripts/check_docs.py --run     # every command too, page by page, each in a copy of the repository
    python scripts/check_docs.py --site build/docs   # the links of the built site

A page's code blocks run in their order in one shell, so that a later one finds what an earlier one made. Comments above
a block say what else there is to know: `<!-- not run: why -->`; `<!-- file: NAME -->`, write the block to this file;
`<!-- before: COMMAND -->`, run this first, unseen; and `<!-- printed: WHAT VARIES -->`, its lines are printed by
the blocks before it, "..." and times apart. Blocks in `bash` are commands and in `python` scripts; others are for
reading.

A table between `<!-- KIND: ... -->` and `<!-- end -->` is the one that its script makes of the recorded results whose
rule is in `benchmarks/results/final_rule.txt`.
"""

import argparse
import contextlib
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple
from urllib.parse import unquote

from make_command_reference import parsers

sys.path.append(str(Path(__file__).parent / "benchmarks"))

TABLE_SCRIPTS = (
    "calibration",
    "confirmation",
    "ends",
    "pairs",
    "real_results",
    "reproduce_paper",
    "reproduce_fiesta_ner",
)
"""Scripts with `TABLES`, which are filled with their recorded results."""

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "scripts/benchmarks/*.md",
    "training_configs/*/README.md",
    "examples/README.md",
)
COPIED = (".allennlp_plugins", "data", "docs", "examples", "Makefile", "scripts", "tests", "training_configs")
SECONDS = 1800

BLOCK = re.compile(r"^ *```(\S*)\n(.*?)\n?^ *```$", re.MULTILINE | re.DOTALL)
MARKS = re.compile(r"(?:^ *<!-- .*? -->\n\s*)+\Z", re.MULTILINE)
"""The comments that end right above a block."""
COMMENT = re.compile(r"<!-- (not run|file|before|printed): (.*?) -->")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
OURS = re.compile(r"(?:^|[;&|]\s*|\s)(?:allennlp fiesta-|python -m fiesta_allennlp |fiesta )(\w[\w-]*)")
TIME = re.compile(r"[\d.]+ (?:s|min|h)\b|\d+$")
"""What differs from run to run: a time, and the seconds at the end of a row."""


@dataclass(frozen=True)
class Block:
    """A fenced block. `line` counts from 1; `marks` are the comments above it."""

    page: Path
    line: int
    language: str
    text: str
    marks: Dict[str, str]

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    def script(self) -> Optional[str]:
        """What to run for this block; None where there is nothing, or it must not be run."""
        before = self.marks.get("before", "")
        if "not run" in self.marks:
            return None
        if "file" in self.marks:
            return f"{before}\n{written(self.marks['file'], self.text)}"
        if self.language == "python":
            return f"{before}\n{written('example.py', self.text)}\npython example.py"
        return f"{before}\n{self.text}" if self.language == "bash" else None


def written(name: str, text: str) -> str:
    """Shell commands that write a file."""
    path = shlex.quote(name)
    return f"mkdir -p $(dirname {path})\ncat > {path} <<'END_OF_THE_BLOCK'\n{text}\nEND_OF_THE_BLOCK"


def pages() -> List[Path]:
    return [path for pattern in PAGES for path in sorted(REPOSITORY.glob(pattern))]


def blocks(page: Path) -> Iterator[Block]:
    content = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(content):
        above = content[: match.start()]
        marks = MARKS.search(above)
        yield Block(page, above.count("\n") + 1, match[1], match[2], dict(COMMENT.findall(marks[0] if marks else "")))


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> List[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]


def wrong_links(page: Path) -> Iterator[str]:
    for target in LINK.findall(prose(page)):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield f"{page.relative_to(REPOSITORY)}: there is no {target}"
        elif anchor and anchor not in anchors(path):
            yield f"{page.relative_to(REPOSITORY)}: {name or 'the page'} has no heading #{anchor}"


def wrong_tables(page: Path) -> Iterator[str]:
    """Tables that their script would not make of the recorded results of the final rule."""
    content, name = page.read_text(encoding="utf-8"), page.relative_to(REPOSITORY)
    tables = {script: import_module(script).TABLES for script in TABLE_SCRIPTS}
    filled_elsewhere = import_module("real_runs").TABLES  # of selections that are not recorded here
    for marker in re.findall(r"<!-- (\w+: .*?) -->\n\|", content):
        if not any(re.fullmatch(each.marker, marker) for each in (*tables.values(), filled_elsewhere)):
            yield f"{name}: no script makes the table '{marker}'"
    for script, own in tables.items():
        try:
            if own.fill(content) != content:
                yield f"{name}: not the tables that {script} makes of its results. Let it write them."
        except ValueError as error:
            yield f"{name}: {error}"


def wrong_commands(block: Block) -> Iterator[str]:
    """Commands of this package whose options or arguments do not parse, and scripts that are not there."""
    for line in block.text.replace("\\\n", " ").splitlines() if block.language == "bash" else ():
        found = OURS.search(line)
        if found:
            arguments = first_command(line[found.end() :])
            parser = parsers().get(found[1])
            error = wrong_arguments(parser, arguments) if parser else f"unknown command fiesta {found[1]}"
            if error:
                yield f"{block.where}: {error}"
        for script in re.findall(r"\bscripts/[\w/]+\.py", line):
            if not (REPOSITORY / script).is_file():
                yield f"{block.where}: there is no {script}"


def first_command(text: str) -> List[str]:
    """Return the words of a shell text up to its first operator outside of quotes."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("();<>|&"), words))


def wrong_arguments(parser: argparse.ArgumentParser, arguments: List[str]) -> Optional[str]:
    """What the parser says against these arguments."""
    parser.add_argument("--include-package", action="append", help=argparse.SUPPRESS)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            parser.parse_args(arguments)
    except SystemExit as stopped:
        return said.getvalue().strip().splitlines()[-1] if stopped.code else None
    return None


class LinkParser(HTMLParser):
    """Collects the local targets of a page in `links`: what its links, pictures, scripts and styles name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: List[str] = []

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        targets = [value for name, value in attrs if name in ("href", "src") and value]
        self.links += [target for target in targets if not re.match(r"\w+:|//", target)]


def wrong_site_links(site: Path) -> Iterator[str]:
    """Links of a built site to files that it lacks, and of a page to itself by name."""
    for page in sorted(site.rglob("*.html")):
        parser = LinkParser()
        parser.feed(page.read_text(encoding="utf-8"))
        for target in sorted(set(parser.links)):
            name, _, anchor = target.partition("#")
            path = (page.parent / unquote(name.partition("?")[0])).resolve() if name else page
            if not path.exists():
                yield f"{page.relative_to(site)}: there is no {target}"
            elif name and not anchor and path == page.resolve():
                yield f"{page.relative_to(site)}: {target} is this page"


def wrong_picture(page: Path) -> Iterator[str]:
    """The picture of this page's results, if its script would not draw it of the recorded ones of the final rule."""
    bars = import_module("real_bars")
    if bars.PICTURE in [(page.parent / target).resolve() for target in LINK.findall(prose(page))]:
        try:
            if bars.PICTURE.read_text(encoding="utf-8") != bars.svg_text():
                yield f"{bars.PICTURE.name}: not of the results. Run: python scripts/benchmarks/real_problems.py --pool"
        except ValueError as error:
            yield str(error)


def problems() -> List[str]:
    """All that can be told without running anything."""
    messages: List[str] = []
    for page in pages():
        messages += [*wrong_links(page), *wrong_tables(page), *wrong_picture(page)]
        for block in blocks(page):
            messages += wrong_commands(block)
    return messages


def run(page: Path) -> Optional[str]:
    """Run the blocks of a page in a copy of the repository. Returns what went wrong: the block, and the end of what it
    printed."""
    lines = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT  # what was started in the background"]
    for block in blocks(page):
        script = block.script()
        lines += [] if script is None else [f"echo '=== {block.where}'", script]
    with tempfile.TemporaryDirectory(prefix="docs-") as scratch:
        root = copy_of_repository(Path(scratch))
        path = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "HOME": scratch, "PATH": path, "PYTHONPATH": str(REPOSITORY)}
        try:
            done = subprocess.run(
                ["bash", "-c", "\n".join(lines)],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            return f"took more than {SECONDS} s: {(error.stdout or b'')[-2000:]!r}"
    if done.returncode:
        return "=== " + done.stdout.split("=== ")[-1][-3000:]
    return "\n".join(line for block in blocks(page) for line in not_printed(block, done.stdout)) or None


def not_printed(block: Block, output: str) -> Iterator[str]:
    """The lines of a block marked `printed` that are not in the output, whatever the times in them."""
    if "printed" in block.marks:
        known = {TIME.sub("TIME", line).strip() for line in output.splitlines()}
        for line in block.text.splitlines():
            if line.strip() not in ("", "...") and TIME.sub("TIME", line).strip() not in known:
                yield f"{block.where}: not printed: {line}"


def copy_of_repository(scratch: Path) -> Path:
    """What a clone has for a reader of the pages, with an environment that is installed already."""
    root = scratch / "fiesta_allennlp"
    root.mkdir()
    for name in COPIED:
        source = REPOSITORY / name
        shutil.copytree(source, root / name) if source.is_dir() else shutil.copy(source, root / name)
    (root / ".venv").symlink_to(sys.prefix)
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="run every command too")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="run only pages whose path matches this regular expression"
    )
    parser.add_argument("--site", type=Path, metavar="DIR", help="only check the links of the site that is built there")
    args = parser.parse_args()
    messages = problems() if args.site is None else list(wrong_site_links(args.site))
    for page in pages() if args.run else ():
        name = str(page.relative_to(REPOSITORY))
        if re.search(args.only, name) and any(block.script() for block in blocks(page)):
            print(f"running {name}", flush=True)
            error = run(page)
            messages += [f"{name}: {error}"] if error else []
    sys.exit("\n".join(messages) if messages else 0)


if __name__ == "__main__":
    main()
