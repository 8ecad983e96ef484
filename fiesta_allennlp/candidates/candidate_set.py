"""The candidates of a selection: those that the user passes, those in the store, and those that were removed."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Collection, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.candidates import points
from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.config import SEED_KEYS, Config, DataSnapshot, first_difference, take_snapshot
from fiesta_allennlp.candidates.programs.program import check_no_lone_placeholder, config_of_command
from fiesta_allennlp.candidates.select_settings import DEFAULT_TOP, Settings
from fiesta_allennlp.candidates.splits import Division
from fiesta_allennlp.core.errors import ConfigError, combined_error, describe_as_sentence, join_some
from fiesta_allennlp.core.files import VARIABLE_DEFAULTS, apply_overrides, read_jsonnet
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.texts import check_names, check_no_similar_names, number_text
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
        raise combined_error(refusals, noun="invalid candidates")
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
            raise ConfigError(f"{label}: {describe_as_sentence(error)}") from error
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
