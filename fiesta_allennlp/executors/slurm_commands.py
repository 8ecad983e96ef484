"""The commands of Slurm: whether they take a job, what became of jobs, and how to end them."""

import getpass
import json
import re
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Dict, List, Mapping, Optional

from fiesta_allennlp.core.errors import ConfigError, describe
from fiesta_allennlp.executors.queueing import check_positive
from fiesta_allennlp.isolation.fork_server import POLL_SECONDS, STOP_TIMEOUT_SECONDS

COMMAND_TIMEOUT_SECONDS = 60.0
"""Limits one question to Slurm, which takes its time when it has much to do."""

ENDING_STATE = "COMPLETING"
"""Names the state of a job that has ended or was requeued, and whose processes are being ended."""

WAITING_STATES = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
"""Lists the states of a job in which nothing of it runs. What it had taken before is lost."""

WORKING_STATES = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT", ENDING_STATE)
"""Lists the states of a job of which something may run. It has ended in every other state."""

SQUEUE_WIDTHS = {"JobArrayID": 60, "State": 30, "RestartCnt": 12, "NodeList": 250, "Reason": 250}
"""Gives the columns of `squeue` and their widths in characters."""

RESERVED_OPTIONS = ("array", "job-name", "output", "error", "signal", "wrap", "parsable", "test-only")
"""Lists the options of `sbatch` that the selection gives itself."""

MESSAGE_PREFIX_PATTERN = re.compile(
    r"^(\w+: )*(error|fatal|allocation failure): |^\w+: (?=Batch|Invalid|Job)", re.MULTILINE
)


class SlurmUnavailable(Exception):
    """Raised with Slurm's own words if it gives no answer, or refuses."""


@dataclass(frozen=True)
class JobStatus:
    """The state of a job in Slurm's words, how often it has been requeued, its node if it has one, and why it waits."""

    state: str
    restart_count: int = 0
    node: str = ""
    reason: str = ""

    @property
    def is_active(self) -> bool:
        """True if the job may run or is going to."""
        return self.state in WAITING_STATES + WORKING_STATES

    def has_lost(self, restart_count: int) -> bool:
        """Return whether the job has lost what it took in this life. While a job ends, that is not known yet."""
        return self.state != ENDING_STATE and (self.state not in WORKING_STATES or self.restart_count != restart_count)

    def describe(self) -> str:
        """Describe a job that has lost its run."""
        if self.is_active:
            return "was requeued"
        return f"ended with state {self.state}" if self.state else "is no longer known to Slurm"


def run_slurm_command(*command: str) -> str:
    """Return the output of a command of Slurm. Raise `SlurmUnavailable` if it fails, is missing, or takes too long."""
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmUnavailable(describe(error)) from error
    if process.returncode:
        messages = [line.strip() for line in MESSAGE_PREFIX_PATTERN.sub("", process.stderr).splitlines()]
        raise SlurmUnavailable("; ".join(dict.fromkeys(filter(None, messages))) or f"{command[0]} failed")
    return process.stdout


def query_statuses(name: str) -> Dict[str, JobStatus]:
    """Return all jobs of this name that Slurm remembers, by number. Slurm forgets jobs minutes after their end."""
    columns = ",".join(f"{column}:{width}" for column, width in SQUEUE_WIDTHS.items())
    options = ("--noheader", "--array", "--all", "--states=all", f"--name={name}", f"--Format={columns}")
    statuses = {}
    for line in run_slurm_command("squeue", *options).splitlines():
        ends = list(accumulate(SQUEUE_WIDTHS.values(), initial=0))
        job, state, count, node, reason = (line[start:end].strip() for start, end in pairwise(ends))
        statuses[job] = JobStatus(state, int(count) if count.isdigit() else 0, node, reason)
    return statuses


def query_past_status(job: str) -> JobStatus:
    """Return the status of a job that the scheduler has forgotten; on a cluster without accounting, it has no state."""
    with suppress(SlurmUnavailable):
        options = ("--noheader", "--allocations", "--parsable2", "--format=State,NodeList", f"--jobs={job}")
        state, _, node = run_slurm_command("sacct", *options).partition("\n")[0].partition("|")
        return JobStatus((state.split() or [""])[0], node=node.strip())
    return JobStatus("")


def cancel_jobs(name: str) -> str:
    """Cancel all jobs of this name, wait briefly for their end, and return a sentence about them."""
    try:
        return _cancel_jobs(name)
    except SlurmUnavailable as error:
        return f"Slurm does not respond ({error}). Cancel its jobs later with: scancel --name={name}"


def _cancel_jobs(name: str) -> str:
    filters = (f"--name={name}", f"--user={getpass.getuser()}")
    job_states = run_slurm_command("squeue", "--noheader", "--array", "--format=%T", *filters).split()
    deadline, jobs_before = time.monotonic() + STOP_TIMEOUT_SECONDS, None
    while job_states and time.monotonic() < deadline:
        jobs = {job: status for job, status in query_statuses(name).items() if status.is_active}
        if not jobs:
            break
        if jobs != jobs_before:  # a job that is preempted ends, and waits again afterwards
            run_slurm_command("scancel", *filters)
        jobs_before = jobs
        time.sleep(POLL_SECONDS)
    states = [state.lower() for state in job_states if state != ENDING_STATE]
    counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states), reverse=True))
    return f"Cancelled {len(states)} Slurm job(s): {counts}." if states else ""


def sbatch_options(
    cluster_options: Mapping[str, Optional[str]],
    *,
    cpus: float,
    gpus: float,
    memory: Optional[float],
    extra_options: Any,
) -> Dict[str, Any]:
    """Return the options of `sbatch` for each job by their long names; True for an option without a value. `memory` is
    in GiB. `extra_options` options, an object or `key=value` each, win over the others."""
    check_positive(memory_per_evaluation=memory)
    options = {
        **cluster_options,
        "cpus-per-task": check_whole_number("cpus-per-evaluation", cpus),
        "gpus": check_whole_number("gpus-per-evaluation", gpus, min_value=0) or None,
        "mem": None if memory is None else f"{max(1, round(1024 * memory))}M",
        **_parse_extra_options(extra_options),
    }
    return {name: value for name, value in options.items() if value is not None}


def check_whole_number(name: str, value: float, *, min_value: int = 1) -> int:
    """Refuse a number that is not whole, because Slurm gives out whole CPUs and GPUs, or is below `min_value`."""
    if value != int(value) or value < min_value:
        raise ConfigError(f"--{name} must be an integer of at least {min_value} with Slurm but got {value:g}.")
    return int(value)


def _parse_extra_options(extra_options: Any) -> Dict[str, Any]:
    if isinstance(extra_options, Mapping):
        pairs = {str(key): value for key, value in extra_options.items()}
    else:
        texts = [extra_options] if isinstance(extra_options, str) else extra_options
        parts = [str(text).lstrip("-").partition("=") for text in texts]
        pairs = {key: value if equals else True for key, equals, value in parts}
    options = {key.strip().replace("_", "-"): value for key, value in pairs.items()}
    for key in options:
        if not key or key in RESERVED_OPTIONS:
            raise ConfigError(f"--slurm takes an option of sbatch, such as qos=long, but got {json.dumps(key)}.")
    return options


def requests_gpus(options: Mapping[str, Any]) -> bool:
    return any(name.startswith(("gpus", "gres", "tres")) for name in options)


def sbatch_flags(options: Mapping[str, Any]) -> List[str]:
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]


def refusal_of_jobs(options: Mapping[str, Any]) -> str:
    """Ask Slurm whether it would take such a job, without submitting one. Return its reason against it, or an empty
    text."""
    try:
        run_slurm_command("sbatch", "--test-only", *sbatch_flags(options), "--wrap=true")
    except SlurmUnavailable as error:
        return str(error) or "no reason"
    return ""


def check_sbatch_options(options: Mapping[str, Any]) -> None:
    """Refuse options with which Slurm would take no job."""
    if reason := refusal_of_jobs(options):
        flags = " ".join(sbatch_flags(options))
        raise ConfigError(f"Slurm rejects jobs with {flags}: {reason}. Correct these options, or add others.")
