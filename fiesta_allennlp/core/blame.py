"""Tells failures of candidates from failures of machines, by all outcomes of a selection.

A failure counts against its candidate only once there is a reason to blame the candidate: its machine, which is a host
with the GPUs that the run saw, has finished a run of some candidate; or the same run has failed on a second machine; or
the selection has only one machine. Until then the run goes to another machine.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Mapping, Protocol, Sequence, Set, Tuple

from fiesta_allennlp.core.origin import Machine, Origin

MAX_FAILURES_BEFORE_FINISH = 3
"""A machine on which this number of runs failed before one finished takes no more."""

FINISHED_KINDS = ("score", "seed")
"""The kinds of failures of runs that finished: these count as finished runs of their machine."""

RunKey = Tuple[str, int]
"""The candidate and the replicate of a run."""


@dataclass(frozen=True)
class MachineFacts:
    """The facts by which executors choose machines. `failed_on` has the machines that a run failed on and is kept away
    from, by its key, and `broken` has the last error of each machine that takes no more runs."""

    failed_on: Mapping[RunKey, FrozenSet[Machine]] = field(default_factory=dict)
    broken: Mapping[Machine, str] = field(default_factory=dict)


NO_FACTS = MachineFacts()


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

    @property
    def error(self) -> str: ...


class MachineHistory:
    """The machines behind the outcomes of a selection. Those of unknown origin count as one machine alone."""

    def __init__(self, evaluations: Sequence[MadeRun], failures: Sequence[FailedRun]) -> None:
        self._failures = [failure for failure in failures if failure.kind not in FINISHED_KINDS]
        has_machines = any(not failure.origin.is_only_machine for failure in self._failures)
        of_verdicts = [failure.origin.machine for failure in failures if failure.kind in FINISHED_KINDS]
        finished_on = [*(run.origin.machine for run in evaluations), *of_verdicts] if has_machines else []
        self._working_machines, self._working_hosts = set(finished_on), {machine.host for machine in finished_on}
        self._machines_by_run: Dict[RunKey, Set[Machine]] = {}
        self._failed_on_working: Set[RunKey] = set()
        for failure in self._failures if has_machines else ():
            self._machines_by_run.setdefault(failure.run, set()).add(failure.origin.machine)
            if self._is_working(failure.origin):
                self._failed_on_working.add(failure.run)

    @property
    def num_failures(self) -> int:
        return len(self._failures)

    def _is_working(self, origin: Origin) -> bool:
        """Return whether the machine has finished a run. Of a job that died, the GPU may be unknown."""
        return origin.machine in self._working_machines or (not origin.gpu and origin.host in self._working_hosts)

    def is_of_candidate(self, failure: FailedRun) -> bool:
        """Return whether a failure counts against its candidate."""
        origin, run = failure.origin, failure.run
        return origin.is_only_machine or self._is_working(origin) or len(self._machines_by_run.get(run, ())) > 1

    def facts(self, *, first_failure: int = 0) -> MachineFacts:
        """Return what executors go by. A machine is broken by the failures from `first_failure` on, because a session
        begins with machines that somebody may have repaired. A run that fails on a working machine too breaks none."""
        failed_on: Dict[RunKey, FrozenSet[Machine]] = {}
        for failure in self._failures:
            if not self.is_of_candidate(failure):
                failed_on[failure.run] = frozenset(self._machines_by_run[failure.run])
        num_failures: Counter[Machine] = Counter()
        broken: Dict[Machine, str] = {}
        for failure in self._failures[first_failure:]:
            origin = failure.origin
            if origin.is_only_machine or self._is_working(origin) or failure.run in self._failed_on_working:
                continue
            num_failures[origin.machine] += 1
            if num_failures[origin.machine] >= MAX_FAILURES_BEFORE_FINISH:
                broken[origin.machine] = failure.error
        return MachineFacts(failed_on, broken)
