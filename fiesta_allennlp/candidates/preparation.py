"""What precedes the first run: the candidates that the user passes, those in the store, and those that were removed;
the executor; the checks of candidates, which build each once; and the metric."""

import json
import os
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Collection, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from rich.console import Console

from fiesta_allennlp.candidates import points
from fiesta_allennlp.candidates.candidate_types import AllenNLPCandidate, type_of
from fiesta_allennlp.candidates.config import SEED_KEYS, Config, DataSnapshot, first_difference, take_snapshot
from fiesta_allennlp.candidates.programs.program import check_no_lone_placeholder, config_of_command
from fiesta_allennlp.candidates.select_settings import DEFAULT_TOP, Settings
from fiesta_allennlp.candidates.splits import Division, Preparation
from fiesta_allennlp.core import errors
from fiesta_allennlp.core.console import candidate_counter
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.files import VARIABLE_DEFAULTS, apply_overrides, read_jsonnet
from fiesta_allennlp.core.metrics import METRIC, Metric, check_metric_sign
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.registry import build, constructor_parameters
from fiesta_allennlp.core.texts import check_names, check_no_similar_names, count_text, number_text
from fiesta_allennlp.running.executor import Executor, option_value
from fiesta_allennlp.running.machine import DEVICES_VARIABLE, is_gpu, visible_gpus
from fiesta_allennlp.running.processes import num_workers, run_in_processes
from fiesta_allennlp.running.worker import WorkerSettings
from fiesta_allennlp.selecting.objections import REMOVED
from fiesta_allennlp.selecting.session import StoredState


@dataclass(frozen=True)
class CandidateSet:
    """The candidates of a selection.

    `active` take part, with their `snapshots` as they are now. `stored` are all candidates in the store; `removed` are
    the stored ones that are not given. `corrected` have another config than in the store, where no run of them has
    finished.
    """

    active: Mapping[str, Candidate]
    stored: Mapping[str, Candidate]
    removed: FrozenSet[str]
    snapshots: Mapping[str, DataSnapshot]
    division: Division
    corrected: Tuple[str, ...]

    @property
    def by_name(self) -> Dict[str, Candidate]:
        """All candidates in the store's order, removed ones as they are there, and then the new ones."""
        return {**self.stored, **self.active}

    def notes(self, metric: Metric) -> Iterator[str]:
        """Yield what is doubtful about the configs, and the trials of a study that are candidates."""
        configs = {name: dict(candidate.config) for name, candidate in self.active.items()}
        for names in equal_candidates(configs):
            yield (
                f"the configs of {join_some(names)} are equal apart from seeds, so no number of "
                "runs separates these candidates. Keep them for an A/A test; otherwise correct or remove one."
            )
        if self.corrected:
            yield f"{join_some(self.corrected)}: the config was changed, so failed runs start again. None had finished."
        trials = points.trials_of(self.active)
        for name, trial in trials.items():
            score = f"{number_text(trial.score)} in the study"
            yield f"{name}: {points.Point(trial.values).text}; {score}, which does not count."
        if any(trial.minimise != metric.minimise for trial in trials.values()):
            verbs = ("minimizes", "maximizes") if metric.minimise else ("maximizes", "minimizes")
            yield f"the study {verbs[1]} its objective, but the selection {verbs[0]} {metric.name}."


def load_candidate(spec: points.CandidateSpec, settings: Settings) -> Candidate:
    """Return a candidate with its config as plain data, checked. Its own values win over `--overrides`. A command
    becomes the config of a program over the files of `--data`. A `ConfigError` does not name the candidate."""
    if not spec.command and not os.path.isfile(spec.path):
        if spec.path.suffix and " " not in spec.source:
            raise ConfigError("no such config file.")
        raise ConfigError(
            "neither a file nor a command with a placeholder. Write {seed} in it instead of a fixed seed, for "
            "example: --seed {seed}. With --allow unseeded, add {directory} instead."
        )
    config = _evaluate_config(spec, settings.overrides, settings.data_of_commands)
    type_of(config).check(settings)
    return Candidate(spec.name, spec.source, config)


def _evaluate_config(spec: points.CandidateSpec, overrides: str, data: Optional[Mapping[str, str]]) -> Config:
    source: Union[Path, str] = json.dumps(config_of_command(spec.command, data)) if spec.command else spec.path
    label = f"the config with --overrides '{overrides}'" if overrides else "the config"
    try:
        config = read_jsonnet(source, overrides=overrides, variables=spec.point.variables, label=label)
    except ConfigError as error:
        if overrides:  # which may be innocent
            _evaluate_config(spec, "", data)
        if "undefined external variable" not in str(error):
            raise
        raise ConfigError(f"{error}. Set it with --points or the environment.") from error
    if not isinstance(config, dict):
        raise ConfigError(f"a config must be an object but is a {type(config).__name__}.")
    return apply_overrides(config, spec.point.overrides)


def load_candidates(
    settings: Settings, *, trials: Sequence[points.Trial] = (), min_count: int = 2
) -> Dict[str, Candidate]:
    """Return the candidates by name, in the order given, each with its config and the overrides applied. Each trial
    makes one from the template."""
    check_no_lone_placeholder(settings.candidates)
    trial_points = [points.Point(trial.values, trial.name) for trial in trials]
    specs = points.parse_candidates(settings.candidates, trial_points or settings.points)
    remedy = "Pass two or more."
    check_names(((spec.name, spec.source) for spec in specs), noun="candidate", min_count=min_count, remedy=remedy)
    candidates: Dict[str, Candidate] = {}
    refusals: Dict[str, str] = {}
    for spec in specs:
        try:
            candidates[spec.name] = load_candidate(spec, settings)
        except ConfigError as error:
            label = f"candidate '{spec.name}'" if spec.command else spec.source  # a command may be long
            refusals[label] = str(error)
    if refusals:
        raise errors.combined_error(refusals, noun="invalid candidates")
    if settings.data and not any(spec.command for spec in specs):
        raise ConfigError("--data is only for candidates that are commands. Configs name their own data: remove it.")
    check_variables_are_read(specs, settings.overrides)
    for trial in trials:
        candidates[trial.name] = replace(candidates[trial.name], facts={points.TRIAL_KEY: asdict(trial)})
    return candidates


def take_trials(settings: Settings, stored: StoredState) -> List[points.Trial]:
    """Return the trials of the study that the settings name. A selection that is resumed keeps its own, even if the
    study has gone on."""
    if settings.study is None:
        return []
    stored_settings = stored.meta.settings or {}
    if (settings.study, settings.top) == (stored_settings.get("study"), stored_settings.get("top")):
        active = {candidate.name: candidate for candidate in stored.candidates}
        return [trial for name, trial in points.trials_of(active).items() if name not in stored.meta.removed]
    return points.read_trials(settings.study, settings.top or DEFAULT_TOP)


def check_variables_are_read(specs: Sequence[points.CandidateSpec], overrides: str) -> None:
    """Refuse a variable that its template reads at none of its points. Variables of the environment and those with a
    default count as read."""
    variables_of = {(spec.path, name): spec for spec in specs if not spec.command for name in spec.point.variables}
    for path, name in variables_of:
        if name in os.environ or name in VARIABLE_DEFAULTS:
            continue
        specs_with_variable = [spec for spec in specs if spec.path == path and name in spec.point.variables]
        if not any(_reads_variable(spec, name, overrides) for spec in specs_with_variable):
            raise ConfigError(
                f"{path}: the config does not read the variable '{name}' with std.extVar. Correct the name, or "
                f"write the full path of a key, such as model.{name}, or .{name} for a top-level key."
            )


def _reads_variable(spec: points.CandidateSpec, name: str, overrides: str) -> bool:
    """Return whether the config cannot be read without the variable."""
    other_variables = {key: text for key, text in spec.point.variables.items() if key != name}
    try:
        read_jsonnet(spec.path, overrides=overrides, variables=other_variables, label=str(spec.path))
    except ConfigError:
        return True
    return False


def equal_candidates(configs: Mapping[str, Config]) -> List[List[str]]:
    """Return the names of candidates whose configs train the same model: they are equal apart from seeds, which are
    replaced."""
    names_by_config: Dict[str, List[str]] = {}
    for name, config in configs.items():
        seedless = {**config, **dict.fromkeys(SEED_KEYS)}
        names_by_config.setdefault(json.dumps(seedless, sort_keys=True), []).append(name)
    return [names for names in names_by_config.values() if len(names) > 1]


def compare_with_store(
    active: Mapping[str, Candidate], stored: StoredState, *, allowed: Collection[str], division: Division
) -> CandidateSet:
    """Compare the given candidates with those of the store. Refuse a changed config or changed data, and a candidate of
    the store that is not given, unless the objection to that is `allowed`. A config may change until a run of its
    candidate has finished."""
    stored_candidates = {candidate.name: candidate for candidate in stored.candidates}
    snapshots = _take_snapshots(active, division)
    corrected: List[str] = []
    for name, candidate in stored_candidates.items():
        is_open = name in active and not stored.history.has_finished_own(name)
        if is_open and first_difference(candidate.config, active[name].config) is not None:
            corrected.append(name)
        elif name in active:
            _check_unchanged(active[name], snapshots[name], candidate, stored.directory.root)
        elif name not in stored.meta.removed:
            reason = f"candidate '{name}' ({candidate.source}) belongs to the selection in {stored.directory.root}"
            REMOVED.check([f"{reason}. Pass all of its candidates"], allowed)
    everybody = {**stored_candidates, **active}
    check_no_similar_names(everybody, noun="candidate")
    divisions = (type_of(candidate.config).own_division(division) for candidate in everybody.values())
    division = replace(division, has_validation=any(own.has_validation for own in divisions))
    removed = frozenset(stored_candidates) - frozenset(active)
    return CandidateSet(active, stored_candidates, removed, snapshots, division, tuple(corrected))


def _take_snapshots(candidates: Mapping[str, Candidate], division: Division) -> Dict[str, DataSnapshot]:
    """Return the data of each candidate as they are now. Files that several candidates share are read once. Refuse data
    that cannot be read, or are given as two sets."""
    snapshot_by_paths: Dict[str, DataSnapshot] = {}
    snapshots: Dict[str, DataSnapshot] = {}
    for name, candidate in candidates.items():
        kind = type_of(candidate.config)
        kind.check_installed()
        paths = division.used_paths(kind.data_paths)
        try:
            if repr(paths) not in snapshot_by_paths:
                snapshot_by_paths[repr(paths)] = take_snapshot(paths)
            snapshots[name] = snapshot_by_paths[repr(paths)]
            kind.check_distinct_sets(kind.own_division(division), snapshots[name])
        except (OSError, ConfigError) as error:
            label = f"candidate '{name}' ({candidate.source})"
            raise ConfigError(f"{label}: {errors.describe_as_sentence(error)}") from error
    return snapshots


def _check_unchanged(candidate: Candidate, data: DataSnapshot, stored_candidate: Candidate, root: Path) -> None:
    difference = first_difference(stored_candidate.config, candidate.config)
    remedy = "Undo the change, or add it as a new candidate with NAME=CONFIG"
    fingerprint = stored_candidate.facts["pool"]["data"]
    if difference is None and data.fingerprint != fingerprint:
        new_digests = {file.path: file.digest for file in data.files}
        old_digests = stored_candidate.facts.get("files", {})
        changed_files = [path for path in old_digests if new_digests.get(path) != old_digests[path]]
        difference = f"the content of {join_some(changed_files) or 'its data files'}"
        remedy = "Restore the original data"
    if difference is not None:
        raise ConfigError(
            f"candidate '{candidate.name}' ({stored_candidate.source}) has changed since the selection in {root} "
            f"began: {difference}. {remedy}; or start over in another directory or with --force."
        )


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
        raise ConfigError(f"--executor must be one of {join_some(Executor.available())} but got '{name}'. {advice}")
    parameters, _ = constructor_parameters(executor_class)
    values = {key: option_value(text) for key, text in options.items()}
    params: Dict[str, Any] = {"type": name, **({"options": options} if "options" in parameters else values)}
    if settings.cuda_devices is not None:
        if "cuda_devices" not in parameters:
            raise ConfigError(f"--cuda-devices cannot be combined with --executor {name}. Remove it.")
        params["cuda_devices"] = resolve_devices([device.strip() for device in settings.cuda_devices.split(",")])
    common = {"workers": settings.workers, "time_limit": settings.time_limit, "packages": tuple(packages)}
    if typed_twice := [key for key in params if key in common]:
        raise ConfigError(f"--executor-option {typed_twice[0]}=... has an option of its own. Use that.")
    try:
        return build(Executor, params, directory=directory, **common)
    except ConfigError as error:
        raise ConfigError(f"--executor {name}: {error}") from error


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
            raise ConfigError(f"--cuda-devices: {found}.")
    return [names[device] for device in devices]


def check_gpus(candidates: Mapping[str, Candidate], executor: Executor) -> None:
    """Refuse an AllenNLP config that asks for a GPU where the runs of a cluster see none."""
    own = {name: each for name, each in candidates.items() if isinstance(type_of(each.config), AllenNLPCandidate)}
    for name, candidate in own.items():
        device = candidate.config["trainer"].get("cuda_device", -1)
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
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
            has_clear_message = type(error) in (ConfigError, errors.DataError)
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
    settings: Settings, candidates: Mapping[str, Candidate], preparations: Mapping[str, Preparation], console: Console
) -> Settings:
    """Return the settings with a metric that every candidate reports: the one that the user chose, the default, or else
    the only one that all of them report, which the console then prints."""
    reported = {name: set(built.metrics) for name, built in preparations.items() if built.metrics is not None}
    if settings.metric is None:
        if len(reported) < len(preparations):
            reason = "a program's metrics are unknown before a run"
            raise ConfigError(f"--metric is missing, and {reason}. {METRIC_ADVICE}")
        common_metrics = set.intersection(*reported.values())
        if METRIC in common_metrics:
            return replace(settings, metric=METRIC)
        if len(common_metrics) != 1:
            names = join_some(sorted({*common_metrics, LOSS_METRIC}), limit=errors.MAX_CHOICES)
            raise ConfigError(f"--metric is missing. All candidates report {names}. {METRIC_ADVICE}")
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
                f"its model does not report the metric '{metric}'. It reports: {join_some(choices)}."
                f"{errors.did_you_mean(metric, choices)} {METRIC_ADVICE}"
            )
    if refusals:
        raise errors.combined_error(refusals, noun="invalid candidates")
    return settings
