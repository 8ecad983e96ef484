"""
The `plugin` command tells AllenNLP of this package, so that `allennlp fiesta-select` and its own `train` find it:

    fiesta plugin
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import replacing

if TYPE_CHECKING:
    from rich.console import Console

PLUGIN = "fiesta_allennlp.plugin"
"""The module that AllenNLP imports."""

DESCRIPTION = """Add the line fiesta_allennlp.plugin to the file .allennlp_plugins of this directory, where AllenNLP
looks for plugins. A file that already has the line stays unchanged."""

EXAMPLES = """examples:
  %(prog)s
  %(prog)s --user"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--user", action="store_true", help="add it to ~/.allennlp/plugins, which works in every directory"
    )


def interrupted(args: argparse.Namespace) -> str:
    return "Interrupted; run it again."


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command, and say what it did. Returns its status, 0."""
    path = Path.home() / ".allennlp" / "plugins" if args.user else Path(".allennlp_plugins")
    try:
        is_new = add_plugin(path)
    except OSError as error:
        raise ConfigError(f"{path}: the line {PLUGIN} cannot be written: {error.strerror}.") from error
    said = "now: `allennlp` finds the fiesta- commands" if is_new else "already. Nothing was changed"
    console.print(f"{path} has the line {PLUGIN} {said}.", markup=False, soft_wrap=True)
    return 0


def add_plugin(path: Path) -> bool:
    """Add the line to the file, which may be missing. Returns whether it was not there yet."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if PLUGIN in map(str.strip, lines):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text("\n".join([*lines, PLUGIN]) + "\n", encoding="utf-8")
    return True
