"""`--detach`: a command that continues in the background after its checks."""

import argparse
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, List, Optional

from fiesta_allennlp.commands.selecting import directory_of
from fiesta_allennlp.core.directory import RunDirectory, at_work_words
from fiesta_allennlp.core.errors import ConfigError, command
from fiesta_allennlp.core.files import not_through_links

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_BETWEEN_LOOKS = 0.1
FLAG = "--detach"


def detach(args: argparse.Namespace, console: "Console") -> int:
    """Start the same command in a session of its own, and show what it writes until it is at work."""
    if args.dry_run:
        raise ConfigError("--detach cannot be combined with --dry-run. Use one or the other.")
    directory = RunDirectory(directory_of(args))
    output = directory.detached_log
    is_new = not output.exists()
    directory.root.mkdir(parents=True, exist_ok=True)
    with open(output, "ab", opener=not_through_links) as log, output.open("rb") as log_reader:
        log_reader.seek(0, os.SEEK_END)
        process = subprocess.Popen(_command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            status = _show_until_at_work(process, log_reader, directory, console)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGTERM)
            process.wait()
            raise
    if status is None:
        watch = f"{command('status')} {shlex.quote(str(directory.root))} --follow"
        console.print(f"Continuing in the background as process {process.pid} on {platform.node()}. Output: {output}")
        console.print(f"To watch it: {watch}", f"To stop it: kill {process.pid}")
        return 0
    if is_new:  # all of it was shown
        output.unlink(missing_ok=True)
        with suppress(OSError):
            directory.root.rmdir()
    return status


def nothing_goes_on(args: argparse.Namespace) -> str:
    return "Interrupted. Nothing is running in the background."


def _command() -> List[str]:
    script = sys.argv[0]  # `fiesta`, `allennlp`, or the file that `python -m` runs
    start = [script] if Path(script).stem != "__main__" else ["-m", Path(script).parent.name]
    return [sys.executable, *start, *(word for word in sys.argv[1:] if word != FLAG)]


def _show_until_at_work(
    process: "subprocess.Popen[bytes]", log_reader: BinaryIO, directory: RunDirectory, console: "Console"
) -> Optional[int]:
    """Show what the command writes. Return its exit status if it ended, and None if it continues."""
    while True:
        status = process.poll()
        is_at_work = status is None and _is_at_work(process.pid, directory)
        console.print(log_reader.read().decode(errors="replace"), end="")
        if status is not None or is_at_work:
            return status
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _is_at_work(pid: int, directory: RunDirectory) -> bool:
    """Return whether this process has begun its runs, the first stage of a search included."""
    for log in (directory.log, directory.screening.log):
        with suppress(OSError):
            if at_work_words(pid) in log.read_text(encoding="utf-8", errors="replace"):
                return True
    return False
