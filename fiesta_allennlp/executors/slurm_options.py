"""From what is asked for each run to the options of `sbatch`."""

import json
from typing import Any, Dict, List, Mapping, Optional

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors.slurm_commands import SlurmDown, ask

OUR_OWN = ("array", "job-name", "output", "error", "signal", "wrap", "parsable", "test-only")
"""Options of `sbatch` that the selection gives itself."""


def job_options(
    given: Mapping[str, Optional[str]], *, cpus: float, gpus: float, memory: Optional[float], further: Any
) -> Dict[str, Any]:
    """Options of `sbatch` by their long names; True for one without a value.

    Args:
        given: options as they are; None for the cluster's default.
        cpus: what each job takes; memory in GiB, None for the cluster's default.
        gpus: what each job takes; memory in GiB, None for the cluster's default.
        memory: what each job takes; memory in GiB, None for the cluster's default.
        further: `key=value` each, or an object. These go before the others.

    Raises:
        ConfigError: where a number is out of range, or a further option is none.
    """
    if memory is not None and not memory > 0:
        raise ConfigError(f"--memory-per-evaluation must be above 0 GiB but got {memory}.")
    options = {
        **given,
        "cpus-per-task": whole("cpus-per-evaluation", cpus),
        "gpus": whole("gpus-per-evaluation", gpus, least=0) or None,
        "mem": None if memory is None else f"{max(1, round(1024 * memory))}M",
        **further_options(further),
    }
    return {name: value for name, value in options.items() if value is not None}


def whole(name: str, value: float, *, least: int = 1) -> int:
    """
    Raises:
        ConfigError: where the number is not whole or too small: Slurm gives out whole CPUs and GPUs.
    """
    if value != int(value) or value < least:
        raise ConfigError(f"--{name} must be a whole number and at least {least} with Slurm but got {value:g}.")
    return int(value)


def further_options(given: Any) -> Dict[str, Any]:
    """See `job_options`."""
    if isinstance(given, Mapping):
        pairs = {str(key): value for key, value in given.items()}
    else:
        split = [str(text).lstrip("-").partition("=") for text in ([given] if isinstance(given, str) else given)]
        pairs = {key: value if equals else True for key, equals, value in split}
    options = {key.strip().replace("_", "-"): value for key, value in pairs.items()}
    for key in options:
        if not key or key in OUR_OWN:
            raise ConfigError(
                f"--slurm must be an option of sbatch, as in --slurm qos=long, but got {json.dumps(key)}. The name, "
                "array, logs and signal of a job are the selection's own."
            )
    return options


def asks_for_gpus(options: Mapping[str, Any]) -> bool:
    return any(name.startswith(("gpus", "gres", "tres")) for name in options)


def as_flags(options: Mapping[str, Any]) -> List[str]:
    """Options of `sbatch` as they are typed."""
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]


def check_options(options: Mapping[str, Any]) -> None:
    """Have Slurm say whether it would take such a job. Nothing is submitted.

    Raises:
        ConfigError: with what Slurm says.
    """
    try:
        ask("sbatch", "--test-only", *as_flags(options), "--wrap=true")
    except SlurmDown as error:
        raise ConfigError(
            f"Slurm takes no job with {' '.join(as_flags(options))}: {error}. Correct these options, or add those that "
            "the cluster wants, such as --partition or --account."
        ) from error
