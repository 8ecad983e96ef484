"""Runs `fiesta select ...` and `python -m fiesta_allennlp select ...`, which are `allennlp fiesta-select ...` without a
plugins file. Only commands that work with AllenNLP models import AllenNLP."""

import os
import signal
import sys


def _quit_before_command(*_: object) -> None:
    os.write(2, b"Interrupted before the command began.\n")
    os._exit(130)


if "__mp_main__" not in sys.modules and (__name__ == "__main__" or sys.argv[0].endswith("fiesta")):
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # while Python imports the rest
        if signal.getsignal(ending) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(ending, _quit_before_command)

import argparse
from pathlib import Path

from fiesta_allennlp.commands import COMMANDS, add_command
from fiesta_allennlp.commands.command import DOCS_HINT, EXIT_INTERRUPTED, EXIT_USER_ERROR, Parser
from fiesta_allennlp.core.errors import did_you_mean
from fiesta_allennlp.version import __version__

DESCRIPTION = """Find the best of several models in few runs.

examples:
  %(prog)s select 'bert=python train.py --arch bert {seed}' 'roberta=python train.py --arch roberta {seed}' \\
      --splits official --metric accuracy -s runs/first
  %(prog)s report runs/first
  %(prog)s next scores.csv
  %(prog)s select --help"""


def main() -> None:
    try:
        args = _parse()
        args.func(args)
    except SystemExit:  # also after help, or a usage error
        _flush_output()
        raise
    except KeyboardInterrupt:  # before or after the command
        print("Interrupted.", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


def _flush_output() -> None:
    """Write out the output. If its reader is gone, Python must not end with a status of its own for that."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parse() -> argparse.Namespace:
    program = "fiesta" if Path(sys.argv[0]).stem == "fiesta" else "python -m fiesta_allennlp"
    parser = Parser(
        prog=program, description=DESCRIPTION, epilog=DOCS_HINT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"fiesta-allennlp {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        if name not in sys.argv:  # its options are not needed, and take time to import
            commands.add_parser(name, help=command.help)
            continue
        chosen = add_command(commands, name, command_name=name, program=program)
        if name not in ("docs", "plugin"):
            chosen.add_argument("--include-package", action="append", default=[], help="additional packages to include")
    if len(sys.argv) == 1:
        parser.print_help()
        parser.exit(EXIT_USER_ERROR)
    typed_name = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    if typed_name is not None and typed_name not in COMMANDS:
        parser.error(f"'{typed_name}' is an unknown command.{did_you_mean(typed_name, COMMANDS)}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
