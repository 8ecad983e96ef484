"""Whether a signal has asked this command to end. Python drops what a handler raises in a callback, such as that of a
fork or a `__del__`, so the loop of a selection asks again."""

from typing import List

received_signals: List[int] = []
"""The ending signals since the command began."""


def raise_if_interrupted() -> None:
    """Raise a `KeyboardInterrupt` if an ending signal has come."""
    if received_signals:
        raise KeyboardInterrupt
