"""The command of `--notify`, and the record of an error that ends a selection."""

import logging
import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Optional, Sequence

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError, describe, join_some
from fiesta_allennlp.core.files import open_without_links
from fiesta_allennlp.core.origin import Machine
from fiesta_allennlp.core.records import Failure, History, Outcome, Request
from fiesta_allennlp.selection.listener import Ending, Listener
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.strategies.decision import Decision

logger = logging.getLogger(__name__)


class NotifyCommand(Listener):
    """Starts a shell command, with what happened in the environment variables `FIESTA_EVENT`, `FIESTA_MESSAGE` and
    `FIESTA_DIRECTORY`, and does not wait for it. What it prints goes to `notify.log`. `describe_end` describes the end
    of the selection."""

    def __init__(
        self,
        command: str,
        directory: RunDirectory,
        *,
        describe_end: Callable[[History, Decision], Ending] = Ending.from_decision,
    ) -> None:
        self._command = command
        self._directory = directory
        self._describe_end = describe_end
        self._num_waiting = 0

    def on_end(self, history: History, decision: Decision) -> None:
        ending = self._describe_end(history, decision)
        self._start_command(ending.event, ending.message)

    def on_error(self, error: BaseException) -> None:
        self._start_command("error", describe(error))

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            self._start_command("failure", f"{outcome.request.name} failed ({outcome.kind}): {outcome.error}")

    def on_broken_machine(self, machine: Machine, error: str) -> None:
        self._start_command("machine", f"{machine} takes no more runs, because they fail there: {error}")

    def on_waiting(self, requests: Sequence[Request]) -> None:
        if requests and not self._num_waiting:
            names = join_some([request.name for request in requests])
            self._start_command("waiting", f"{names}: a file or memory is unavailable; retrying later")
        self._num_waiting = len(requests)

    def _start_command(self, event: str, message: str) -> None:
        root = str(self._directory.root.resolve())
        variables = {"FIESTA_EVENT": event, "FIESTA_MESSAGE": message, "FIESTA_DIRECTORY": root}
        log_path = self._directory.notify_log if self._directory.root.is_dir() else Path(os.devnull)
        try:
            with open(log_path, "ab", opener=open_without_links) as log:
                subprocess.Popen(
                    self._command,
                    shell=True,
                    env={**os.environ, **variables},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            logger.warning("--notify: cannot start the command: %s", error)


@contextmanager
def notifying_of_errors(command: Optional[str], directory: RunDirectory) -> Iterator[None]:
    """Start the command of `--notify`, if there is one, when an error ends the block."""
    try:
        yield
    except Exception as error:
        if command:
            NotifyCommand(command, directory).on_error(error)
        raise


@contextmanager
def recording_errors(store: RunStore) -> Iterator[None]:
    """Write an error that ends the block into the log and, where there is room, into the store."""
    try:
        yield
    except Exception as error:
        logger.error("ended by an error: %s", describe(error))
        with suppress(FiestaError, OSError):
            store.record_error(describe(error))
        raise
