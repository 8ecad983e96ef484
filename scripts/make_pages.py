"""Render the pages of `docs` as HTML files that need no server. `setup.py` puts them into the wheel for `fiesta docs`.

python scripts/make_pages.py build/pages
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Dict, List

from markdown_it import MarkdownIt
from markdown_it.token import Token

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
COPIES = {"changelog": "CHANGELOG.md"}
"""Pages that show a file of the repository."""

LEFT_OUT = ("api/registered", "contributing")
"""Pages that need AllenNLP, or a clone."""

DIRECTIVE = re.compile(r"^```\{(toctree|eval-rst)\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CAPTION = re.compile(r":caption: (.*)")
ENTRY = re.compile(r"^(?:(.+) <(\S+)>|([\w/]+))$", re.MULTILINE)
DOCUMENTED = re.compile(r"^\.\. auto\w+:: (\S+)$", re.MULTILINE)
STYLE = """body { max-width: 52em; margin: 0 auto; padding: 1em; font: 16px/1.5 sans-serif }
pre, code { font-family: monospace; font-size: 0.9em; background: #f3f4f6 }
pre { padding: 0.7em; white-space: pre-wrap; overflow-wrap: anywhere }
pre:has(.language-text) { white-space: pre; overflow-x: auto }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: 0.9em }
th, td { border: 1px solid #ccc; padding: 0.3em 0.6em; text-align: left; vertical-align: top }
img { max-width: 100%; height: auto } span[title] { border-bottom: 1px dotted }"""


def find_pages() -> Dict[str, Path]:
    """Return the file of each page, by its name below `docs`."""
    paths = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in DOCS.rglob("*.md")}
    return {name: path for name, path in paths.items() if name not in LEFT_OUT}


def _directive_text(match: "re.Match[str]") -> str:
    """Return a list of links instead of a table of contents, and the help of Python instead of docstrings."""
    if match[1] == "eval-rst":
        return "```\n" + "\n".join(f"python -m pydoc {name}" for name in DOCUMENTED.findall(match[2])) + "\n```"
    caption = CAPTION.search(match[2])
    links = [f"[{title or name.capitalize()}]({path or name}.md)" for title, path, name in ENTRY.findall(match[2])]
    return f"**{caption[1]}**: {', '.join(links)}" if caption else ""


def _local_link(href: str, source: Path, page: Path, pages: Dict[Path, str]) -> str:
    """Return the address of a link's target among the pages; empty if the target is no page."""
    path, _, anchor = href.partition("#")
    target = (source.parent / path).resolve() if path else page
    if target in pages:
        name = f"{pages[target]}.html"
    elif target.is_relative_to(DOCS) and target.suffix != ".md" and target.is_file():
        name = target.relative_to(DOCS).as_posix()
    else:
        return ""
    up = "../" * (len(page.relative_to(DOCS).parts) - 1)
    return up + name + (f"#{anchor}" if anchor else "")


def _set_links(tokens: List[Token], source: Path, page: Path, pages: Dict[Path, str]) -> None:
    """Let links lead to pages, and turn those to other files of the repository into their text with a tooltip."""
    is_open: List[bool] = []
    for token in tokens:
        if token.type == "image" and (local := _local_link(str(token.attrs["src"]), source, page, pages)):
            token.attrs["src"] = local
        elif token.type == "link_open":
            href = str(token.attrs["href"])
            is_web = re.match(r"\w+:", href) is not None
            local = "" if is_web else _local_link(href, source, page, pages)
            is_open.append(is_web or bool(local))
            if not is_open[-1]:
                token.tag, token.attrs = "span", {"title": f"{href} in the repository"}
            elif local:
                token.attrs["href"] = local
        elif token.type == "link_close" and not is_open.pop():
            token.tag = "span"


def render_page(name: str, pages: Dict[str, Path]) -> str:
    """Return the HTML of a page."""
    page = pages[name]
    source = REPOSITORY / COPIES[name] if name in COPIES else page
    by_path = {path.resolve(): own for own, path in pages.items()}
    by_path.update({REPOSITORY / file: own for own, file in COPIES.items()})
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = markdown.parse(DIRECTIVE.sub(_directive_text, source.read_text(encoding="utf-8")))
    anchors: Dict[str, int] = {}
    title = name
    for token, inline in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and inline is not None:
            anchor = re.sub(r"[^\w\- ]", "", inline.content.lower()).replace(" ", "-")
            anchors[anchor] = anchors.get(anchor, -1) + 1
            token.attrs["id"] = f"{anchor}-{anchors[anchor]}" if anchors[anchor] else anchor
            title = inline.content if token.tag == "h1" else title
        _set_links(token.children or [], source, page, by_path)
    up = "../" * name.count("/")
    home = "" if name == "index" else f'<p><a href="{up}index.html">All pages</a></p>\n'
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = markdown.renderer.render(tokens, markdown.options, {})
    return f"<!doctype html>\n<html lang=en>{head}<style>\n{STYLE}\n</style>\n{home}{body}</html>\n"


def write_pages(directory: Path) -> None:
    """Write all pages, their pictures and the example of a report into a directory."""
    pages = find_pages()
    for name in pages:
        path = directory / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_page(name, pages), encoding="utf-8")
    for folder in ("pictures", "live"):
        shutil.copytree(DOCS / folder, directory / folder, dirs_exist_ok=True)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
