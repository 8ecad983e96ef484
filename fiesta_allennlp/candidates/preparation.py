"""What precedes the first run: the executor, the checks of candidates, which build each once, and the metric."""

import json
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from rich.console import Console

from fiesta_allennlp.candidates.candidate_set import CandidateSet
from fiesta_allennlp.candidates.candidate_types import AllenNLPCandidate, type_of
from fiesta_allennlp.candidates.config import Config
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Division, Preparation
from fiesta_allennlp.core import errors
from fiesta_allennlp.core.console import candidate_counter
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.metrics import METRIC, check_metric_sign
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.registry import build, constructor_parameters
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.running.executor import Executor, option_value
from fiesta_allennlp.running.machine import DEVICES_VARIABLE, is_gpu, visible_gpus
from fiesta_allennlp.running.processes import num_workers, run_in_processes
from fiesta_allennlp.running.worker import WorkerSettings


def worker_packages(settings: Settings, candidate_set: CandidateSet) -> Tuple[str, ...]:
    """Return what workers import first: AllenNLP if a candidate needs it, and the user's packages. The fork server
    imports the modules of this package once for all workers."""
    modules = sorted({type_of(candidate.config).worker_module for candidate in candidate_set.by_name.values()})
    return (*modules, *settings.include_package)


BUILT_IN_EXECUTORS = ("processes", "ray", "slurm")
"""The modules of `running/` with an executor of their name, which is registered when its module is imported."""


def build_executor(settings: Settings, directory: RunDirectory, *, packages: Sequence[str]) -> Executor:
    """Return the executor that the settings name, ready to work. Its workers import `packages`."""
    name, options = settings.executor, settings.executor_options
    for module in (name,) if name in BUILT_IN_EXECUTORS else BUILT_IN_EXECUTORS:
        import_module(f"fiesta_allennlp.running.{module}")
    executor_class = Executor.find(name)
    if executor_class is None:
        advice = "If it is registered by a package of yours, name that with --include-package."
        names = errors.join_some(Executor.available())
        raise errors.ConfigError(f"--executor must be one of {names} but got '{name}'. {advice}")
    parameters, _ = constructor_parameters(executor_class)
    values = {key: option_value(text) for key, text in options.items()}
    params: Dict[str, Any] = {"type": name, **({"options": options} if "options" in parameters else values)}
    if settings.cuda_devices is not None:
        if "cuda_devices" not in parameters:
            raise errors.ConfigError(f"--cuda-devices cannot be combined with --executor {name}. Remove it.")
        params["cuda_devices"] = resolve_devices([device.strip() for device in settings.cuda_devices.split(",")])
    common = {"workers": settings.workers, "time_limit": settings.time_limit, "packages": tuple(packages)}
    if typed_twice := [key for key in params if key in common]:
        raise errors.ConfigError(f"--executor-option {typed_twice[0]}=... has an option of its own. Use that.")
    try:
        return build(Executor, params, directory=directory, **common)
    except errors.ConfigError as error:
        raise errors.ConfigError(f"--executor {name}: {error}") from error


def resolve_devices(devices: Sequence[str]) -> List[str]:
    """Return devices as `CUDA_VISIBLE_DEVICES` names them for their runs. Numbers count within the GPUs that this
    process may use. Refuse a device that does not exist, on which a run would silently train on the CPU."""
    visible_devices, visible_names = visible_gpus(), os.environ.get(DEVICES_VARIABLE)
    names = dict(zip(map(str, range(len(visible_devices))), visible_devices, strict=True))
    for device in devices:
        if is_gpu(device) and (visible_names is None or device in visible_devices):
            names[device] = device
        if device not in names:
            within = "" if visible_names is None else f" within {DEVICES_VARIABLE}={visible_names}"
            num_devices = len(visible_devices)
            found = f"no GPU '{device}' found; there are {num_devices}{within}, from 0"
            raise errors.ConfigError(f"--cuda-devices: {found}.")
    return [names[device] for device in devices]


def check_gpus(candidates: Mapping[str, Candidate], executor: Executor) -> None:
    """Refuse an AllenNLP config that asks for a GPU where the runs of a cluster see none."""
    own = {name: each for name, each in candidates.items() if isinstance(type_of(each.config), AllenNLPCandidate)}
    for name, candidate in own.items():
        device = candidate.config["trainer"].get("cuda_device", -1)
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise errors.ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but runs on a cluster see a GPU "
                "only if they request one. Use --executor-option gres=gpu:1 with Slurm, num_gpus=1 with Ray, or "
                "--overrides '{\"trainer.cuda_device\": -1}' for the CPU."
            )


def prepare_candidates(
    candidates: Mapping[str, Candidate],
    settings: Settings,
    candidate_set: CandidateSet,
    directory: RunDirectory,
    console: Console,
    *,
    num_threads: int,
) -> Dict[str, Preparation]:
    """Build each of these candidates once, in its own process. Output goes to `checks/` of `directory`, and word
    vectors to `vectors/`. Raise a `ConfigError` that lists all invalid candidates."""
    console.print(f"Checking {count_text(len(candidates), 'candidate')}: reading the data, building models ...")
    num_slots = num_workers("auto", num_threads)  # on this machine, wherever the runs will be made
    tasks = {
        name: (candidate.config, settings.group_by, candidate_set.division, directory.vectors)
        for name, candidate in candidates.items()
    }
    with candidate_counter(console, len(candidates)) as count:
        results = run_in_processes(
            _prepare_candidate,
            tasks,
            logs={name: directory.check_log(name) for name in candidates},
            settings=WorkerSettings(num_threads, worker_packages(settings, candidate_set)),
            max_parallel=num_slots if settings.workers == "auto" else min(num_slots, settings.workers),
            on_done=count,
        )
    failures = {name: result for name, result in results.items() if isinstance(result, BaseException)}
    if failures:
        if not directory.root.is_dir():
            raise errors.StoreError(f"{directory.root} was deleted or moved during the checks. Run the command again.")
        refusals: Dict[str, str] = {}
        for name, error in failures.items():
            if isinstance(error, errors.PackageError):
                raise error  # of a package that all of them import
            has_clear_message = type(error) in (errors.ConfigError, errors.DataError)
            is_kept = directory.store.exists() and directory.check_log(name).exists() and not has_clear_message
            hint = f" Full log: {directory.check_log(name)}" if is_kept else ""
            refusals[f"candidate '{name}' ({candidates[name].source})"] = f"{errors.describe_as_sentence(error)}{hint}"
        raise errors.combined_error(refusals, noun="invalid candidates") from next(iter(failures.values()))
    digests = {name: candidate_set.snapshots[name].fingerprint for name in candidates}
    return {name: replace(built, pool=replace(built.pool, data=digests[name])) for name, built in results.items()}


def _prepare_candidate(config: Config, group_by: Optional[str], division: Division, vectors: Path) -> Preparation:
    return type_of(config).prepare(group_by=group_by, division=division, vectors=vectors)


LOSS_METRIC = "loss"  # which AllenNLP's trainer reports for every model
METRIC_ADVICE = "Choose one with --metric NAME, or with --metric=-NAME if lower is better."


def resolve_metric(
    settings: Settings,
    candidates: Mapping[str, Candidate],
    preparations: Mapping[str, Preparation],
    console: Console,
) -> Settings:
    """Return the settings with a metric that every candidate reports: the one that the user chose, the default, or else
    the only one that all of them report, which the console then prints."""
    reported = {name: set(built.metrics) for name, built in preparations.items() if built.metrics is not None}
    if settings.metric is None:
        if len(reported) < len(preparations):
            reason = "a program's metrics are unknown before a run"
            raise errors.ConfigError(f"--metric is missing, and {reason}. {METRIC_ADVICE}")
        common_metrics = set.intersection(*reported.values())
        if METRIC in common_metrics:
            return replace(settings, metric=METRIC)
        if len(common_metrics) != 1:
            names = errors.join_some(sorted({*common_metrics, LOSS_METRIC}), limit=errors.MAX_CHOICES)
            raise errors.ConfigError(f"--metric is missing. All candidates report {names}. {METRIC_ADVICE}")
        settings = replace(settings, metric=common_metrics.pop())
        check_metric_sign(settings.scored_by.name)
        for candidate in candidates.values():
            type_of(candidate.config).check(settings)
        console.print(f"Comparing by {settings.metric}, the only metric that all candidates report.")
    refusals: Dict[str, str] = {}
    for name, metrics in reported.items():
        metric, choices = settings.scored_by.name, sorted(metrics | {LOSS_METRIC})
        if metric not in choices:
            refusals[f"candidate '{name}'"] = (
                f"its model does not report the metric '{metric}'. It reports: {errors.join_some(choices)}."
                f"{errors.did_you_mean(metric, choices)} {METRIC_ADVICE}"
            )
    if refusals:
        raise errors.combined_error(refusals, noun="invalid candidates")
    return settings
