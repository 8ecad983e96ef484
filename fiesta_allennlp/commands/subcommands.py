"""The commands as AllenNLP's sub-commands: `allennlp fiesta-select` and so on."""

import argparse
from typing import Any

from allennlp.commands.subcommand import Subcommand

from fiesta_allennlp.commands import COMMANDS, add_command


class FiestaSubcommand(Subcommand):
    """A command of this package, which is registered as `fiesta-` and its name."""

    def add_subparser(self, parser: Any) -> argparse.ArgumentParser:
        return add_command(parser, self.name.removeprefix("fiesta-"), called=self.name, program="allennlp")


for name in COMMANDS:
    if name != "plugin":
        Subcommand.register(f"fiesta-{name}")(type(f"Fiesta{name.title()}", (FiestaSubcommand,), {}))
