"""`python -m fiesta_allennlp select ...` is `allennlp fiesta-select ...` without a plugins file, and so on."""

import argparse
import sys

EXIT_INTERRUPTED = 130

HELP = {
    "select": "find the best of several models",
    "plan": "tell how many runs a selection will need",
    "replay": "repeat a selection over released scores",
    "report": "tell what a selection came to, or how it stands",
    "documents": "find the best of several trained systems",
}


def main() -> None:
    try:
        args = _parse()  # imports AllenNLP, which takes seconds
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    args.func(args)


def _parse() -> argparse.Namespace:
    from importlib import import_module

    from allennlp.common.util import import_module_and_submodules

    import fiesta_allennlp.plugin  # noqa: F401

    parser = argparse.ArgumentParser(prog="python -m fiesta_allennlp")
    commands = parser.add_subparsers(title="commands", required=True)
    for name, text in HELP.items():
        module = import_module(f"fiesta_allennlp.commands.fiesta_{name}")
        command = commands.add_parser(name, help=text)
        module.add_arguments(command)
        command.add_argument("--include-package", action="append", default=[], help="additional packages to include")
        command.set_defaults(func=getattr(module, f"{name}_from_args"), program=f"python -m fiesta_allennlp {name}")
    args = parser.parse_args()
    for package in args.include_package:
        import_module_and_submodules(package)
    return args


if __name__ == "__main__":
    main()
