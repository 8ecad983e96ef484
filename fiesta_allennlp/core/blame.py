"""Tells failures of candidates from failures of machines, by all outcomes of a selection.

A failure counts against its candidate only once there is a reason to blame the candidate: its machine, which is a host
with the GPUs that the run saw, has finished a run of some candidate; or the same run has failed on a second machine; or
the selection has only one machine. Until then the run is tried again.
"""

from typing import Dict, Protocol, Sequence, Set, Tuple

from fiesta_allennlp.core.origin import Machine, Origin

RunKey = Tuple[str, int]
"""The candidate and the replicate of a run."""


class MadeRun(Protocol):
    """An outcome, as far as it is looked at here."""

    @property
    def origin(self) -> Origin: ...


class FailedRun(MadeRun, Protocol):
    """A failure, as far as it is looked at here."""

    @property
    def run(self) -> RunKey: ...

    @property
    def kind(self) -> str: ...


class MachineHistory:
    """The machines behind the outcomes of a selection. Those of unknown origin count as one machine alone."""

    def __init__(self, evaluations: Sequence[MadeRun], failures: Sequence[FailedRun]) -> None:
        finished: Sequence[MadeRun] = [*evaluations, *(f for f in failures if f.kind == "score")]
        self._working_machines = {run.origin.machine for run in finished}
        self._working_hosts = {machine.host for machine in self._working_machines}
        self._machines_by_run: Dict[RunKey, Set[Machine]] = {}
        for failure in failures:
            if failure.kind != "score":
                self._machines_by_run.setdefault(failure.run, set()).add(failure.origin.machine)

    def is_of_candidate(self, failure: FailedRun) -> bool:
        """Return whether a failure counts against its candidate. Of a job that died, the GPU may be unknown."""
        origin = failure.origin
        is_working = origin.machine in self._working_machines or (not origin.gpu and origin.host in self._working_hosts)
        return origin.is_only_machine or is_working or len(self._machines_by_run.get(failure.run, ())) > 1
