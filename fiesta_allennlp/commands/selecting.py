"""What the commands have in common that make a selection in a directory: options, outcome, how to go on."""

import argparse
import shlex
from pathlib import Path
from typing import Any, Dict, Mapping, Type

from rich.console import Console

from fiesta_allennlp.commands.running import EXIT_INTERRUPTED, EXIT_NO_DECISION


def add_directory(parser: argparse.ArgumentParser, *, force: str, dry_run: str) -> None:
    """Where the selection is kept, and what is to be done with it. `force` and `dry_run` are these options' help."""
    parser.add_argument("-s", "--serialization-dir", type=Path, help="directory for the run; needed unless --dry-run")
    parser.add_argument("-r", "--recover", action="store_true", help="go on with the selection in the directory")
    parser.add_argument("-f", "--force", action="store_true", help=force)
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--config", type=Path, help="a Jsonnet file with any of the options below; flags win over it")


def typed_settings(args: argparse.Namespace, of: Type[Any]) -> Dict[str, Any]:
    """The settings of the class `of` that were typed, above those of the `--config` file."""
    from dataclasses import fields

    from fiesta_allennlp.selection.settings import overlay, settings_from_file

    given = settings_from_file(args.config, of) if args.config is not None else {}
    typed = {f.name: getattr(args, f.name) for f in fields(of) if hasattr(args, f.name)}
    return overlay(given, {name: value for name, value in typed.items() if value not in ([], ())}, of=of)


def directory_of(args: argparse.Namespace) -> Path:
    """# Raises

    `ConfigError` : where no directory was given.
    """
    from fiesta_allennlp.errors import ConfigError

    if args.serialization_dir is None:
        what = "of the selection to go on with" if args.recover else "in which the selection is to be kept"
        raise ConfigError(f"-s is missing: give the directory {what}.")
    return args.serialization_dir


def say_failures(summary: Mapping[str, Any], console: Console) -> None:
    """Every failure and every withdrawal of a `selection.json`, each in a line."""
    for candidate in summary["candidates"]:
        for reason in candidate.failure_reasons:
            console.print(f"failed: {reason}", markup=False, soft_wrap=True)
        if candidate.withdrawn:
            reason = f"{candidate.name}: {candidate.withdrawn_because}"
            console.print(f"withdrawn: {reason}", markup=False, soft_wrap=True)


def status_of(summary: Mapping[str, Any], args: argparse.Namespace, console: Console) -> int:
    """The exit status that belongs to a `selection.json`; of an interrupted one it says how to go on."""
    if summary["stopped_by"] == "interrupted":
        console.print(f"Go on with: {recover_command(args)}", markup=False, soft_wrap=True)
        return EXIT_INTERRUPTED
    return EXIT_NO_DECISION if summary["stopped_by"] == "failures" else 0


def how_to_go_on(args: argparse.Namespace, *, step: str, kept: str) -> str:
    """What to say of an interruption before the first `step`, or after the last one; `kept` says what is not lost."""
    from fiesta_allennlp.directory import RunDirectory

    if args.dry_run or args.serialization_dir is None or not RunDirectory(args.serialization_dir).store.exists():
        return f"Interrupted before the first {step}. Start it again."
    return f"Interrupted; {kept}. Go on with: {recover_command(args)}"


def recover_command(args: argparse.Namespace) -> str:
    """The command that goes on with the selection."""
    return f"{args.program} -s {shlex.quote(str(args.serialization_dir))} --recover"
