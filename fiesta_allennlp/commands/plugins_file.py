"""The command `fiesta plugin`: it tells AllenNLP of this package, so that `allennlp fiesta-select` is found."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.command import FiestaCommand
from fiesta_allennlp.commands.exit_handling import say
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import replacing

if TYPE_CHECKING:
    from rich.console import Console

LINE = "fiesta_allennlp.plugin"
"""The module that AllenNLP imports."""


class PluginCommand(FiestaCommand):
    help = "make the fiesta- commands available in `allennlp`"
    description = """Add the line fiesta_allennlp.plugin to the file .allennlp_plugins of this directory, where AllenNLP
looks for plugins. A file that already has the line stays unchanged."""
    examples = """examples:
  %(prog)s
  %(prog)s --user"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--user", action="store_true", help="add it to ~/.allennlp/plugins, which works in every directory"
        )

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Add the line, and say whether it was there."""
        path = Path.home() / ".allennlp" / "plugins" if args.user else Path(".allennlp_plugins")
        try:
            is_new = add_plugin(path)
        except OSError as error:
            raise ConfigError(f"{path}: the line {LINE} cannot be written: {error.strerror}.") from error
        said = "now: `allennlp` finds the fiesta- commands" if is_new else "already. Nothing was changed"
        say([f"{path} has the line {LINE} {said}."], console)
        return 0


def add_plugin(path: Path) -> bool:
    """Add the line to the file, which may be missing. Returns whether it was not there yet."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if LINE in map(str.strip, lines):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text("\n".join([*lines, LINE]) + "\n", encoding="utf-8")
    return True
