"""`python -m fiesta_allennlp select ...` is `allennlp fiesta-select ...` without a plugins file, and so on."""

import argparse
import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    try:
        args = _parse()  # imports AllenNLP, which takes seconds
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    args.func(args)


def _parse() -> argparse.Namespace:
    from allennlp.common.util import import_module_and_submodules

    import fiesta_allennlp.plugin  # noqa: F401
    from fiesta_allennlp.commands import fiesta_documents, fiesta_replay, fiesta_report, fiesta_select

    parser = argparse.ArgumentParser(prog="python -m fiesta_allennlp")
    commands = parser.add_subparsers(title="commands", required=True)
    select = commands.add_parser("select", help="find the best of several models")
    fiesta_select.add_arguments(select)
    select.set_defaults(func=fiesta_select.select_from_args, program="python -m fiesta_allennlp select")
    replay = commands.add_parser("replay", help="repeat a selection over released scores")
    fiesta_replay.add_arguments(replay)
    replay.set_defaults(func=fiesta_replay.replay_from_args)
    report = commands.add_parser("report", help="tell what a selection came to, or how it stands")
    fiesta_report.add_arguments(report)
    report.set_defaults(func=fiesta_report.report_from_args)
    documents = commands.add_parser("documents", help="find the best of several trained systems")
    fiesta_documents.add_arguments(documents)
    documents.set_defaults(func=fiesta_documents.documents_from_args, program="python -m fiesta_allennlp documents")
    for command in (select, replay, report, documents):
        command.add_argument("--include-package", action="append", default=[], help="additional packages to include")
    args = parser.parse_args()
    for package in args.include_package:
        import_module_and_submodules(package)
    return args


if __name__ == "__main__":
    main()
