"""Arguments of several commands: the directory of a selection, and settings, typed or in a file."""

import argparse
from pathlib import Path
from typing import Any, Dict, NoReturn, Optional, Sequence, Type


def add_given(parser: argparse.ArgumentParser, settings: Type[Any], name: str, **kwargs: Any) -> None:
    """Add a positional argument, explained by the settings."""
    from fiesta_allennlp.selection.options import options_of

    declared = dict(options_of(settings))[name]
    parser.add_argument(name, metavar=declared.metavar, help=declared.help, **kwargs)


def add_directory(
    parser: argparse.ArgumentParser,
    *,
    force: str = "delete the selection in the directory first",
    dry_run: str = "check everything and print the plan, without a run",
) -> None:
    """Add the directory and what to do with it. `force` and `dry_run` are the help of these options."""
    parser.add_argument(
        "-s", "--serialization-dir", type=Path, help="directory of the selection; required unless --dry-run"
    )
    parser.add_argument("-r", "--recover", action="store_true", help="resume the selection in the directory")
    parser.add_argument("-f", "--force", action="store_true", help=force)
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    parser.add_argument(
        "--detach",
        action="store_true",
        help="go on in the background once the checks are done; DIR/detached.log gets the output",
    )
    parser.add_argument(
        "--config", type=Path, help="a Jsonnet file with any of the options below; options that are typed override it"
    )


def explain_minus(parser: argparse.ArgumentParser, name: str, example: str) -> None:
    """Say how a value that begins with a minus is typed, where argparse takes it for another option."""
    refuse = parser.error

    def explained(message: str) -> NoReturn:
        if message == f"argument {name}: expected one argument":
            parser.exit(2, f"error: {message}. One with a minus is joined by an equals sign: {name}={example}\n")
        refuse(message)

    parser.error = explained  # type: ignore[method-assign]


def typed_settings(args: argparse.Namespace, of: Type[Any]) -> Dict[str, Any]:
    """Return the settings of the class `of` that were typed, above those of the `--config` file.

    Raises:
        ConfigError: where a value is not one that its option allows.
    """
    from fiesta_allennlp.selection.options import typed_options
    from fiesta_allennlp.selection.settings import overlay, settings_from_file

    given = settings_from_file(args.config, of) if args.config is not None else {}
    typed = overlay(given, typed_options(args, of), of=of)
    if not args.recover:  # else what was typed may go with what the store has
        of(**typed)
    return typed


def directory_of(args: argparse.Namespace) -> Path:
    """Return the directory that was given.

    Raises:
        ConfigError: where no directory was given.
    """
    from fiesta_allennlp.errors import ConfigError

    if args.serialization_dir is None:
        what = "of the selection to go on with" if args.recover else "in which the selection is to be kept"
        raise ConfigError(f"-s is missing: give the directory {what}.")
    return args.serialization_dir


def check_output(name: str, path: Optional[Path], endings: Sequence[str]) -> None:
    """Refuse a file that could not be written, before the work.

    Raises:
        ConfigError: with the option and the path.
    """
    from fiesta_allennlp.errors import ConfigError

    if path is not None and path.suffix not in endings:
        raise ConfigError(f"--{name} {path}: the file's name must end with {' or '.join(endings)}.")
    if path is not None and not path.parent.is_dir():
        raise ConfigError(f"--{name} {path}: there is no directory {path.parent}. Make it first.")
