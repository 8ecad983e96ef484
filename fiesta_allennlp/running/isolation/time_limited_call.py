"""A call in a process of its own, as a future, with a time limit."""

import threading
from concurrent.futures import Future, TimeoutError
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Callable, Optional, Sequence

from fiesta_allennlp.running.isolation.process_tree import end_tree

STOP_TIMEOUT_SECONDS = 10.0


class ProcessDied(Exception):
    """Raised for a process that ended without a result. `exit_code` is negative if a signal ended it."""

    def __init__(self, exit_code: Optional[int]) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


process_table_lock = threading.Lock()  # `multiprocessing` reads the exit code of a process once


class ProcessCall(Future[Any]):
    """A call in a process of its own, as a future of its result, of the error that it raised, of a `ProcessDied`, or of
    a `TimeoutError`, after which the process was ended."""

    def __init__(self, process: Any, reader: Connection, timeout: Optional[float]) -> None:
        super().__init__()
        self.process = process
        threading.Thread(target=self._wait_for_end, args=(reader, timeout), daemon=True).start()

    def _wait_for_end(self, reader: Connection, timeout: Optional[float]) -> None:
        if not connection.wait([reader, self.process.sentinel], timeout):
            self.stop()
            self.set_exception(TimeoutError())
            return
        with reader:
            try:
                is_result, value = reader.recv() if reader.poll() else (False, None)
            except (EOFError, OSError):
                is_result, value = False, None
        self.stop()
        if is_result:
            self.set_result(value)
        else:
            self.set_exception(ProcessDied(self.process.exitcode) if value is None else value)

    def stop(self) -> None:
        """End the process with all that it has started, and wait for its end."""
        end_process(self.process)
        with process_table_lock:
            self.process.join(timeout=STOP_TIMEOUT_SECONDS)


def end_process(process: Any) -> None:
    """End a process of a call with its children."""
    if not connection.wait([process.sentinel], 0):
        process.terminate()
        if not connection.wait([process.sentinel], STOP_TIMEOUT_SECONDS):
            process.kill()
            end_tree(process.pid)
            connection.wait([process.sentinel], STOP_TIMEOUT_SECONDS)


def call_and_send(writer: Connection, function: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> None:
    """Call the function in its process, and send its result or the error that it raised."""
    try:
        result = True, function(*args, **kwargs)
    except BaseException as error:
        result = False, error
    writer.send(result)
