"""Writes `docs/commands.md` from the parsers of the commands, and the table in `docs/api/calls.md` from the calls.

python scripts/make_command_reference.py
"""

import argparse
import inspect
import re
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import fiesta_allennlp
from fiesta_allennlp.commands import COMMANDS, add_command

REFERENCE = Path(__file__).parent.parent / "docs" / "commands.md"
CALLS = REFERENCE.parent / "api" / "calls.md"

HEAD = """# Command reference

This page lists every option. `scripts/make_command_reference.py` writes it from the parsers, so do not edit it. [The
guides](index.md) show when to use which option.

`fiesta COMMAND` works in every directory. `fiesta plugin` lets you type `allennlp fiesta-COMMAND` in the current
directory, and `fiesta plugin --user` in all directories. With `--include-package PKG`, every command imports your own
package first. `--help` lists the options that people use, `--help-all` all of them.
"""


def parsers() -> Dict[str, argparse.ArgumentParser]:
    """The parser of every command, by its name."""
    commands = argparse.ArgumentParser(prog="fiesta").add_subparsers()
    return {name: add_command(commands, name, command_name=name, program="fiesta", shows_all=True) for name in COMMANDS}


def reference() -> str:
    """The page. An option that an earlier command explains in the same words is only listed."""
    explained: Dict[Tuple[str, str], str] = {}
    sections = (line for name, parser in parsers().items() for line in section(name, parser, explained))
    return "\n".join([HEAD.rstrip(), *sections]) + "\n"


def section(name: str, parser: argparse.ArgumentParser, explained: Dict[Tuple[str, str], str]) -> Iterator[str]:
    """The lines of one command: its description, a table for each group of its own options, then the shared ones.

    `explained` maps each row so far to the command that has it, and gets the rows of this command.
    """
    yield f"\n## `fiesta {name}`\n"
    yield with_code(plain(COMMANDS[name].description))
    shared: Dict[str, List[str]] = {}
    for group in parser._action_groups:
        own = []
        for action in group._group_actions:
            row = (synopsis(action), meaning(action))
            if action.help == argparse.SUPPRESS or action.dest in ("help", "help_all"):
                continue
            if explained.setdefault(row, name) == name:
                own.append(row)
            else:
                shared.setdefault(explained[row], []).append(code(long_name(action)))
        if own:
            yield f"\n**{group.title}**\n\n| option | meaning |\n|---|---|"
            yield from (f"| {option} | {text} |" for option, text in own)
    for first, options in shared.items():
        yield f"\nThe same as for [`fiesta {first}`](#fiesta-{first}): {', '.join(options)}."


GUIDES = {
    "select": "[`fiesta select`](../select.md)",
    "confirm": "[`fiesta confirm`](../report.md#a-beats-b)",
    "next_runs": "[`fiesta next`](../tables.md)",
    "plan": "[`fiesta plan`](../cost.md)",
    "replay": "[`fiesta replay`](../cost.md#replay-existing-scores)",
    "report": "[`fiesta report`](../report.md)",
    "choose_system": "[`fiesta documents`](../documents.md)",
}
"""The command of each call, with its guide."""


def with_calls(page: str) -> str:
    """The page about calls with the table and the list of all calls of the package."""
    rows = "".join(map(call_row, fiesta_allennlp.__all__))
    page = re.sub(
        r"(\| call \| command \| returns \|\n\|---\|---\|---\|\n).*?(?=\n\n)",
        rf"\1{rows.rstrip()}",
        page,
        count=1,
        flags=re.DOTALL,
    )
    names = "".join(f".. autofunction:: fiesta_allennlp.{name}\n" for name in fiesta_allennlp.__all__)
    return re.sub(r"(?:\.\. autofunction:: fiesta_allennlp\.\w+\n)+", names, page, count=1)


def call_row(name: str) -> str:
    """The row of a call: the arguments that it begins with or requires, its command, and what it returns."""
    signature = inspect.signature(getattr(fiesta_allennlp, name))
    arguments = []
    for key, parameter in signature.parameters.items():
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            arguments.append(key)
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            arguments.append(f"{key}=...")
    return f"| `{name}({', '.join(arguments)})` | {GUIDES[name]} | `{signature.return_annotation.__name__}` |\n"


def long_name(action: argparse.Action) -> str:
    return next((name for name in action.option_strings if name.startswith("--")), str(action.metavar))


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
    parts[::2] = (re.sub(r"(?<![\w`}-])(--?[a-z][\w-]*(?:=-[\w-]+)?)", r"`\1`", part) for part in parts[::2])
    return "`".join(parts)


def code(text: str) -> str:
    """As a cell of a table shows it."""
    return "`" + text.replace("|", "\\|") + "`"


def main() -> None:
    REFERENCE.write_text(reference(), encoding="utf-8")
    CALLS.write_text(with_calls(CALLS.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
