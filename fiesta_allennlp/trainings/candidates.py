"""Who takes part in a selection: the candidates that are given, those of the store, and what became of them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, Tuple

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.selection.run_state import withdrawn
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.trainings.config import Config, first_difference
from fiesta_allennlp.trainings.pool import data_fingerprint


@dataclass(frozen=True)
class Roster:
    """The candidates of a selection.

    `given` are the configs of those that take part. `stored` is what the store has of every candidate, `removed` those
    of them that are not given. `late` are those that join a selection which has begun: new ones, and removed ones that
    are given again.
    """

    given: Mapping[str, Config]
    stored: Mapping[str, Mapping[str, Any]]
    removed: FrozenSet[str]
    late: Tuple[str, ...]

    @property
    def names(self) -> List[str]:
        """All candidates in the store's order, removed ones included, and then the new ones."""
        return [*self.stored, *(name for name in self.given if name not in self.stored)]

    @property
    def configs(self) -> Dict[str, Config]:
        """The config of every candidate, of removed ones the store's."""
        return {name: self.given[name] if name in self.given else self.stored[name]["config"] for name in self.names}

    def joined(self, history: History, *, max_failures: int) -> History:
        """The history as it is once the late ones have joined and the removed ones have gone."""
        gone = withdrawn(history, max_failures=max_failures, removed=self.removed)
        return replace(history, candidates=tuple(self.names), withdrawn=gone, removed=self.removed)


def read_roster(
    given: Mapping[str, Config], store: RunStore, directory: RunDirectory, *, allow_removed: bool
) -> Roster:
    """Compare the given candidates with those of the store.

    # Raises

    `ConfigError` : where a candidate of the store is not given and `allow_removed` is false, or a config or its data
        have changed, with the first key that differs.
    """
    stored = {candidate["name"]: candidate for candidate in store.candidates()}
    before = store.removed()
    for name, candidate in stored.items():
        if name in given:
            _check_unchanged(name, given[name], candidate, directory)
        elif name not in before and not allow_removed:
            raise ConfigError(
                f"candidate '{name}' ({candidate['source']}) belongs to the selection in {directory.root} but is not "
                f"given. Give all of its candidates, {_sources(stored)}, with any new ones; or none, to take them from "
                "the store; or withdraw this one with --allow-removed."
            )
    late = tuple(name for name in given if name not in stored or name in before) if stored else ()
    return Roster(given, stored, removed=frozenset(stored) - frozenset(given), late=late)


def _sources(stored: Mapping[str, Mapping[str, Any]]) -> str:
    """The stored candidates as they are typed."""
    sources = {name: str(candidate["source"]) for name, candidate in stored.items()}
    return " ".join(path if Path(path).stem == name else f"{name}={path}" for name, path in sources.items())


def _check_unchanged(name: str, config: Config, candidate: Mapping[str, Any], directory: RunDirectory) -> None:
    """Refuse to go on with another config or other data than at the start."""
    difference = first_difference(candidate["config"], config)
    if difference is None and data_fingerprint(config) != candidate["facts"]["pool"]["data"]:
        difference = "the contents of its data files have changed"
    if difference is not None:
        raise ConfigError(
            f"candidate '{name}' ({candidate['source']}) is not what it was when the selection in {directory.root} "
            f"began: {difference}. Undo the change, give it another name with NAME=PATH to add it as another "
            "candidate, or start anew with another directory or --force."
        )
