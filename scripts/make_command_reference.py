"""Writes `docs/commands.md` from the parsers of the `fiesta-` commands.

python scripts/make_command_reference.py
"""

import argparse
import re
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from allennlp.commands.subcommand import Subcommand

import fiesta_allennlp.plugin  # noqa: F401

REFERENCE = Path(__file__).parent.parent / "docs" / "commands.md"

HEAD = """# Command reference

This page has every option. `scripts/make_command_reference.py` makes it from the parsers, so do not edit it. The guides
of [the index](index.md) say when to use which option.

Type `allennlp NAME`, or `fiesta` with the end of the name (`fiesta select`) where AllenNLP does not know this package.
`--include-package PKG` imports your own package first; all commands have it.
"""


def parsers() -> Dict[str, argparse.ArgumentParser]:
    """The parser of every command of this package, by its name."""
    commands = argparse.ArgumentParser(prog="allennlp").add_subparsers()
    names = sorted(name for name in Subcommand.list_available() if name.startswith("fiesta-"))
    return {name: Subcommand.by_name(name)().add_subparser(commands) for name in names}


def reference() -> str:
    sections = (line for name, parser in parsers().items() for line in section(name, parser))
    return "\n".join([HEAD.rstrip(), *sections]) + "\n"


def section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """The lines of one command: its description, then a table for each group of options that has any."""
    yield f"\n## `{name}`\n"
    yield with_code(plain(parser.description))
    for group in parser._action_groups:
        actions = [
            action for action in group._group_actions if action.help != argparse.SUPPRESS and action.dest != "help"
        ]
        if actions:
            yield f"\n**{group.title}**\n\n| option | meaning |\n|---|---|"
            yield from (f"| {synopsis(action)} | {meaning(action)} |" for action in actions)


def synopsis(action: argparse.Action) -> str:
    """How an option is typed, with what stands for its value."""
    if not action.option_strings:
        return code(str(action.metavar or action.dest))
    *others, last = action.option_strings
    if action.nargs != 0:
        kind = {int: "N", float: "NUMBER"}.get(action.type, action.dest.upper())  # type: ignore[call-overload]
        values = "|".join(map(str, action.choices)) if action.choices else kind
        metavar = action.metavar or values
        last += " " + (metavar if isinstance(metavar, str) else " ".join(metavar))
    return ", ".join(map(code, [*others, last]))


def plain(text: Optional[str]) -> str:
    """In one line, with nothing that is special in a table."""
    return " ".join((text or "").split()).replace("%%", "%").replace("|", "\\|")


def meaning(action: argparse.Action) -> str:
    """The help text, in one line."""
    return with_code(plain(action.help))


def with_code(text: str) -> str:
    """The text with names of options set as code."""
    parts: List[str] = text.split("`")
    parts[::2] = (re.sub(r"(?<![\w`-])(--?[a-z][\w-]*)", r"`\1`", part) for part in parts[::2])
    return "`".join(parts)


def code(text: str) -> str:
    """As a cell of a table shows it."""
    return "`" + text.replace("|", "\\|") + "`"


def main() -> None:
    REFERENCE.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
