"""Reports decisions, failures and waiting runs to a command of the user."""

import logging
import os
import subprocess
from typing import Sequence

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.files import not_through_links
from fiesta_allennlp.core.records import Decision, Failure, History, Outcome, Request

logger = logging.getLogger(__name__)


class Notify:
    """Starts a shell command, with what happened in the environment variables `FIESTA_EVENT`, `FIESTA_MESSAGE` and
    `FIESTA_DIRECTORY`, and does not wait for it. What it prints goes to `notify.log`."""

    def __init__(self, command: str, directory: RunDirectory) -> None:
        self._command = command
        self._directory = directory
        self._is_over = False
        self._num_waiting = 0

    def on_state(self, history: History, decision: Decision) -> None:
        if decision.stopped_by is not None and not self._is_over:
            self._is_over = True
            best = decision.best or "no candidate"
            self._tell("decision", f"{best} after {len(history.evaluations)} runs, stopped by {decision.stopped_by}")

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            self._tell("failure", f"{outcome.request.name} failed ({outcome.kind}): {outcome.error}")

    def on_waiting(self, requests: Sequence[Request]) -> None:
        if requests and not self._num_waiting:
            names = ", ".join(request.name for request in requests)
            self._tell("waiting", f"{names}: a file or memory is unavailable; retrying later")
        self._num_waiting = len(requests)

    def _tell(self, event: str, message: str) -> None:
        root = str(self._directory.root.resolve())
        variables = {"FIESTA_EVENT": event, "FIESTA_MESSAGE": message, "FIESTA_DIRECTORY": root}
        try:
            with open(self._directory.notify_log, "ab", opener=not_through_links) as log:
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
