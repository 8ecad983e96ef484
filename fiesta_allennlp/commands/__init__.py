"""One file for each command. Their parsers need no AllenNLP, so that help and usage errors come at once."""

import argparse
from importlib import import_module
from typing import Any

HELP = {
    "select": "find the best of several models",
    "plan": "tell how many runs a selection will need",
    "replay": "repeat a selection over released scores",
    "lookup": "tell how quickly a searcher finds the best of many configs",
    "report": "tell what a selection came to, or how it stands",
    "documents": "find the best of several trained systems",
    "plugin": "let `allennlp` find the fiesta- commands",
}


def add_command(commands: Any, name: str, *, called: str, program: str) -> argparse.ArgumentParser:
    """Add the parser of one command, `called` so below `program`."""
    module = import_module(f"{__name__}.fiesta_{name}")
    parser = commands.add_parser(called, help=HELP[name], description=module.DESCRIPTION)
    module.add_arguments(parser)
    parser.set_defaults(func=getattr(module, f"{name}_from_args"), program=f"{program} {called}")
    return parser
