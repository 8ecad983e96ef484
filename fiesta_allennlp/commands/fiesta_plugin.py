"""
The `plugin` command tells AllenNLP of this package, so that `allennlp fiesta-select` and its own `train` find it:

    fiesta plugin
"""

import argparse
import sys
from pathlib import Path

from fiesta_allennlp.commands.running import PLUGIN
from fiesta_allennlp.commands.statuses import EXIT_USER_ERROR
from fiesta_allennlp.files import replacing

DESCRIPTION = """Add the line fiesta_allennlp.plugin to the file .allennlp_plugins of this directory, where AllenNLP
looks for plugins. A file that already has the line stays unchanged."""

EXAMPLES = """examples:
  %(prog)s
  %(prog)s --user"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.allow_abbrev = False
    parser.add_argument(
        "--user", action="store_true", help="add it to ~/.allennlp/plugins, which works in every directory"
    )


def plugin_from_args(args: argparse.Namespace) -> None:
    """Run the command, and say what it did."""
    path = Path.home() / ".allennlp" / "plugins" if args.user else Path(".allennlp_plugins")
    try:
        is_new = add_plugin(path)
    except OSError as error:
        print(f"error: {path}: the line {PLUGIN} cannot be written: {error.strerror}.", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    if is_new:
        print(f"{path} has the line {PLUGIN} now: `allennlp` finds the fiesta- commands.")
    else:
        print(f"{path} has the line {PLUGIN} already. Nothing was changed.")


def add_plugin(path: Path) -> bool:
    """Add the line to the file, which may be missing. Returns whether it was not there yet."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if PLUGIN in map(str.strip, lines):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text("\n".join([*lines, PLUGIN]) + "\n", encoding="utf-8")
    return True
