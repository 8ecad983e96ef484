"""The commands as AllenNLP's sub-commands: `allennlp fiesta-select` and so on."""

import argparse
from typing import Any

from allennlp.commands.subcommand import Subcommand

from fiesta_allennlp.commands import add_command


class FiestaSubcommand(Subcommand):
    """A command of this package, which is registered as `fiesta-` and its name."""

    def add_subparser(self, parser: Any) -> argparse.ArgumentParser:
        return add_command(parser, self.name.removeprefix("fiesta-"), called=self.name, program="allennlp")


@Subcommand.register("fiesta-select")
class FiestaSelect(FiestaSubcommand):
    """`allennlp fiesta-select`"""


@Subcommand.register("fiesta-search")
class FiestaSearch(FiestaSubcommand):
    """`allennlp fiesta-search`"""


@Subcommand.register("fiesta-plan")
class FiestaPlan(FiestaSubcommand):
    """`allennlp fiesta-plan`"""


@Subcommand.register("fiesta-replay")
class FiestaReplay(FiestaSubcommand):
    """`allennlp fiesta-replay`"""


@Subcommand.register("fiesta-lookup")
class FiestaLookup(FiestaSubcommand):
    """`allennlp fiesta-lookup`"""


@Subcommand.register("fiesta-status")
class FiestaStatus(FiestaSubcommand):
    """`allennlp fiesta-status`"""


@Subcommand.register("fiesta-report")
class FiestaReport(FiestaSubcommand):
    """`allennlp fiesta-report`"""


@Subcommand.register("fiesta-documents")
class FiestaDocuments(FiestaSubcommand):
    """`allennlp fiesta-documents`"""
