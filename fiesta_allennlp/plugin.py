"""Importing this module registers with AllenNLP the commands, as `allennlp fiesta-select` and so on, and the classes
that configs can name: it is what `.allennlp_plugins` names."""

# ruff: noqa: F401
import argparse
from typing import Any

from allennlp.commands.subcommand import Subcommand

import fiesta_allennlp.candidates.allennlp.instances
import fiesta_allennlp.candidates.allennlp.training
import fiesta_allennlp.models
from fiesta_allennlp.commands import COMMANDS, add_command
from fiesta_allennlp.core.files import set_default_variables


class FiestaSubcommand(Subcommand):
    """A command of this package, which is registered as `fiesta-` and its name."""

    def add_subparser(self, parser: Any) -> argparse.ArgumentParser:
        return add_command(parser, self.name.removeprefix("fiesta-"), command_name=self.name, program="allennlp")


for name in COMMANDS:
    if name != "plugin":
        Subcommand.register(f"fiesta-{name}")(type(f"Fiesta{name.title()}", (FiestaSubcommand,), {}))
set_default_variables()
