"""`python -m fiesta_allennlp select ...` is `allennlp fiesta-select ...` without a plugins file."""

import argparse

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.commands.fiesta_select import add_arguments, select_from_args


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fiesta_allennlp")
    commands = parser.add_subparsers(title="commands", required=True)
    select = commands.add_parser("select", help="find the best of several models")
    add_arguments(select)
    select.add_argument("--include-package", action="append", default=[], help="additional packages to include")
    select.set_defaults(func=select_from_args, program="python -m fiesta_allennlp select")
    args = parser.parse_args()
    args.func(args)


if __name__ == "__main__":
    main()
