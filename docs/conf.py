"""Builds the site with Sphinx: `make docs`."""

import os
import re
import sys
from pathlib import Path
from typing import Iterator, List

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
sys.path.insert(0, str(REPOSITORY))

from allennlp.commands.subcommand import Subcommand  # noqa: E402
from allennlp.common import Registrable as OfAllenNLP  # noqa: E402

import fiesta_allennlp.plugin  # noqa: E402, F401
from fiesta_allennlp.core.registry import Registrable  # noqa: E402
from fiesta_allennlp.version import __version__  # noqa: E402

project = "fiesta_allennlp"
author = "The fiesta-allennlp authors"
copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"  # not of what a command prints

default_role = "py:obj"
smartquotes = False  # they would make a dash of the two of an option


myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

clone, commit = os.environ.get("READTHEDOCS_GIT_CLONE_URL"), os.environ.get("READTHEDOCS_GIT_COMMIT_HASH")
forge = f"{clone.removesuffix('.git')}/blob/{commit}" if clone and commit else REPOSITORY.as_uri()
# Files of the repository that are no pages: on the forge, as Read the Docs knows it, or here.
repository_url = {"url": forge + "/{{path}}#{{fragment}}"}
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "repository": repository_url,
    "live": {"url": "{{path}}"},
}

html_theme = "furo"
html_title = "fiesta"
html_static_path = ["static"]
html_search_scorer = str(DOCS / "static" / "scorer.js")
html_css_files = ["site.css"]
html_extra_path = ["live"]  # whole pages, such as that of a report
html_copy_source = False
html_show_copyright = False

LINK = re.compile(r"(\]\()(?!\w+:|#|/)([^)\s]+)(\))")
COPIES = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
"""Pages that show a file of the repository."""


def with_links(text: str, page: Path) -> str:
    """The text of a page of the repository, with links that work on the site."""

    def link(match: "re.Match[str]") -> str:
        path, _, anchor = match[2].partition("#")
        target = (page.parent / path).resolve()
        anchor = f"#{anchor}" if anchor else ""
        if target.parent == DOCS / "live":
            return f"{match[1]}live:{target.name}{match[3]}"
        if target.is_relative_to(DOCS):
            return f"{match[1]}{os.path.relpath(target, DOCS)}{anchor}{match[3]}" if page.parent != DOCS else match[0]
        if not target.exists():
            return match[0]
        copied = next((name for name, file in COPIES.items() if REPOSITORY / file == target), None)
        if copied:
            return f"{match[1]}{copied}.md{anchor}{match[3]}"
        return f"{match[1]}repository:{target.relative_to(REPOSITORY)}{anchor}{match[3]}"

    return LINK.sub(link, text)


def registered() -> Iterator[str]:
    """A section for each registered class of this package, and for its AllenNLP classes."""
    known = {
        base: {name: found for name, (found, _) in classes.items()} for base, classes in OfAllenNLP._registry.items()
    }
    known.update(
        {base: {name: base.by_name(name) for name in base.available()} for base in Registrable.__subclasses__()}
    )
    for base, classes in sorted(known.items(), key=lambda item: item[0].__name__):
        ours = {name: found for name, found in classes.items() if found.__module__.startswith("fiesta_allennlp")}
        if ours and base is not Subcommand:
            yield f"\n## `{base.__name__}`\n"
            for name, found in sorted(ours.items()):
                place = f"{found.__module__}.{found.__qualname__}"
                yield f"### `{name}`\n\n```{{eval-rst}}\n.. autoclass:: {place}\n```\n"


def read_source(app: Sphinx, name: str, source: List[str]) -> None:
    if name == "api/registered":
        source[0] += "\n".join(registered())
    if name in COPIES:
        page = REPOSITORY / COPIES[name]
        app.env.note_dependency(str(page), docname=name)
        source[0] = with_links(page.read_text(encoding="utf-8"), page)
    elif not name.startswith("api/"):
        source[0] = with_links(source[0], DOCS / f"{name}.md")


def setup(app: Sphinx) -> None:
    app.connect("source-read", read_source)
