"""`fiesta select ...` and `python -m fiesta_allennlp select ...` are `allennlp fiesta-select ...` without a plugins
file, and so on. The commands import AllenNLP, which takes seconds, after their arguments are parsed."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from fiesta_allennlp.commands import HELP, add_command
from fiesta_allennlp.commands.statuses import EXIT_INTERRUPTED, EXIT_USER_ERROR
from fiesta_allennlp.version import __version__


def main() -> None:
    try:
        find_spec("allennlp")  # where it is missing, the error says how to install it
        args = _parse()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except ModuleNotFoundError as error:
        if error.name != "allennlp":
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    args.func(args)


def _parse() -> argparse.Namespace:
    program = "fiesta" if Path(sys.argv[0]).stem == "fiesta" else "python -m fiesta_allennlp"
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--version", action="version", version=f"fiesta-allennlp {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in HELP:
        command = add_command(commands, name, called=name, program=program)
        if name != "plugin":
            command.add_argument(
                "--include-package", action="append", default=[], help="additional packages to include"
            )
    return parser.parse_args()


if __name__ == "__main__":
    main()
