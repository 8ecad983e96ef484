"""The machines of a selection: their runs, and where their software differs."""

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, History, Outcome


@dataclass(frozen=True)
class MachineRuns:
    """The runs of one machine with one software: an entry of `machines` in `selection.json`. `mean_seconds` is that of
    its finished runs."""

    origin: Origin
    num_evaluations: int = 0
    num_failures: int = 0
    mean_seconds: Optional[float] = None

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> "MachineRuns":
        return cls(**{**entry, "origin": Origin(**entry["origin"])})


def count_machine_runs(history: History) -> Tuple[MachineRuns, ...]:
    """Count the runs of each machine in the order of its first finished run, then those whose runs all failed. Runs
    that nobody can tell the machine of are left out."""
    outcomes: Tuple[Outcome, ...] = (*history.evaluations, *history.failures)
    origins: Dict[str, Origin] = {}
    outcomes_by_key: Dict[str, List[Outcome]] = {}
    for outcome in outcomes:
        if outcome.origin.host:
            origin = outcome.origin.without_job
            origins.setdefault(key := repr(origin), origin)
            outcomes_by_key.setdefault(key, []).append(outcome)
    return tuple(_machine_runs(origin, outcomes_by_key[key]) for key, origin in origins.items())


def _machine_runs(origin: Origin, outcomes: List[Outcome]) -> MachineRuns:
    seconds = [outcome.seconds for outcome in outcomes if isinstance(outcome, Evaluation)]
    mean_seconds = sum(seconds) / len(seconds) if seconds else None
    return MachineRuns(origin, len(seconds), len(outcomes) - len(seconds), mean_seconds)


def different_versions(origins: Iterable[Origin]) -> Dict[str, Dict[str, List[str]]]:
    """Return the machines by the version of each package that differs between them. A package that one lacks decides
    no score there."""
    known_origins = [origin for origin in origins if origin.host]
    names = dict.fromkeys(name for origin in known_origins for name in origin.software)
    machines_by_package: Dict[str, Dict[str, List[str]]] = {name: {} for name in names}
    for name, machines_by_version in machines_by_package.items():
        for origin in (origin for origin in known_origins if name in origin.software):
            machines = machines_by_version.setdefault(origin.software[name], [])
            if str(origin.machine) not in machines:
                machines.append(str(origin.machine))
    return {name: machines for name, machines in machines_by_package.items() if len(machines) > 1}


def describe_different_versions(origins: Iterable[Origin]) -> str:
    """Describe the versions that differ between machines; empty if none does."""
    texts = []
    for name, machines_by_version in different_versions(origins).items():
        versions = (f"{version} on {join_some(machines)}" for version, machines in machines_by_version.items())
        texts.append(f"{name} {' and '.join(versions)}")
    return f"Runs have different versions, which can change scores: {'; '.join(texts)}." if texts else ""
