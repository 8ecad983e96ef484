"""Reads the confirmations of a selection from its directory. Nothing is locked or changed."""

from dataclasses import replace
from typing import Tuple

from fiesta_allennlp.core.defaults import MAX_FAILURES
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.registry import convert_value
from fiesta_allennlp.selection.confirmation import Confirmation
from fiesta_allennlp.selection.database import translated_store_errors
from fiesta_allennlp.selection.lock import is_at_work
from fiesta_allennlp.selection.store import StoreReader, open_for_reading


def read_confirmations(directory: RunDirectory, *, selection_seed: str) -> Tuple[Confirmation, ...]:
    """Return the confirmations in the directory of the selection with this master seed, in order. One that has not
    begun its first run is left out."""
    confirmations = []
    for number in directory.confirmation_numbers:
        confirmation_directory = directory.confirmation(number)
        with open_for_reading(confirmation_directory) as store:
            meta = store.meta()
            if meta.is_started and meta.confirmation and meta.confirmation.selection_seed == selection_seed:
                confirmations.append(read_confirmation(confirmation_directory, store))
    return tuple(confirmations)


def read_confirmation(directory: RunDirectory, store: StoreReader) -> Confirmation:
    """Return the confirmation whose store this is."""
    meta = store.meta()
    with translated_store_errors(directory.store):
        max_failures = (meta.settings or {}).get("max_failures", MAX_FAILURES)
        history = store.history(max_failures=convert_value(max_failures, int, "max_failures"))
        if meta.confirmation is None or not set(meta.confirmation.names) <= set(history.candidates):
            raise ConfigError("the plan of the confirmation does not fit the candidates")
        read = Confirmation.from_history(meta.confirmation, history, directory=str(directory.root), seed=str(meta.seed))
    return replace(read, running=is_at_work(directory, meta.environments))
