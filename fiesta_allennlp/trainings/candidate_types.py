"""The types of candidates: AllenNLP configs, programs, and those that your own packages register.

Nothing else asks for the type of a candidate. `type_of` returns the object that answers for one config. The checks
refuse what AllenNLP accepts although it would silently give a wrong score.
"""

import json
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Type

from fiesta_allennlp.core.errors import NO_ALLENNLP, ConfigError
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.core.splits import PARTS, Division
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.selection.environment import visible_gpus
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import words_of
from fiesta_allennlp.trainings.candidate_run import CandidateRun
from fiesta_allennlp.trainings.config import (
    Config,
    check_complete,
    leaves_of,
    official_paths,
    readers_of,
    vector_references,
    with_absolute_paths,
)
from fiesta_allennlp.trainings.data_files import DataMark, files_behind
from fiesta_allennlp.trainings.pool import Pool, Preparation
from fiesta_allennlp.trainings.programs.config import (
    TYPE,
    check_keys,
    check_no_split_options,
    check_program,
    code_of,
    division_for,
    example_command,
    notes_on_program,
    program_paths,
)
from fiesta_allennlp.trainings.programs.pool import program_pool
from fiesta_allennlp.trainings.programs.run import ProgramRun

SHORTENING = ("batches_per_epoch", "instances_per_epoch", "drop_last")  # keys of data loaders that skip instances


def check_sets(paths: Mapping[str, Any], division: Division, key_of: Callable[[str], str]) -> None:
    """Refuse data paths that lack a set which runs on official splits need, or that leave the sizes of the sets of a
    random split open. `key_of` returns the key of the config for a set."""
    missing_sets = [set_name for set_name in division.parts if set_name not in paths] if division.is_official else []
    if missing_sets:
        hidden = "; or use --score validation if the test labels are hidden" * (missing_sets[0] == "test")
        raise ConfigError(
            f"--splits official needs '{key_of(missing_sets[0])}', which is missing. Add the file{hidden}; or use "
            "--splits shared for random splits."
        )
    if not division.is_official and not division.ratios and len(division.used(paths)) < 2:
        keys = " or ".join(f"'{key_of(set_name)}'" for set_name in division.parts[1:])
        ratios = "0.64,0.16,0.2" if len(division.parts) == len(PARTS) else "0.8,0.2"
        raise ConfigError(
            f"without {keys}, the sizes of random splits are unknown. Add a file, or set the sizes, for example with "
            f"--split-ratios {ratios}."
        )


def check_group_by(config: Config, group_by: Optional[str]) -> None:
    """Refuse a group key of a program's own that is not the key of the option."""
    key = config["data"].get("group_by")
    if key is not None and (not isinstance(key, str) or key == "none"):
        raise ConfigError(
            f"'data.group_by' must be a metadata key but is {json.dumps(key)}. Remove it, and use --group-by none for "
            "splits without groups."
        )
    if key is not None and group_by not in (None, key):
        raise ConfigError(
            f"'data.group_by' is '{key}' but --group-by is '{group_by}'. All splits use the same groups, so remove one."
        )


def check_parts(paths: Mapping[str, Any], division: Division, mark: DataMark, key_of: Callable[[str], str]) -> None:
    """Refuse the same data in two sets: runs would be scored on data that they were trained on or chose their epoch by.

    Two sets are the same if they share a file, or if the contents of one are all among the contents of the other.
    """
    digests = {file.path: file.digest for file in mark.files}
    for a, b in combinations([set_name for set_name in division.parts if set_name in paths], 2):
        files_a, files_b = ({file.resolve(): digests[str(file)] for file in files_behind(paths[p])} for p in (a, b))
        contents_a, contents_b = set(files_a.values()), set(files_b.values())
        is_copy = bool(files_a and files_b) and (contents_a <= contents_b or contents_b <= contents_a)
        if paths[a] == paths[b] or files_a.keys() & files_b.keys() or is_copy:
            keys = [key_of(set_name) for set_name in (a, b)]
            remedy = f"; or remove '{keys[1]}', and random splits draw that set from the rest"
            if division.is_official:
                remedy = "; or remove 'test_data_path' and use --score validation" * (a != "train")
            raise ConfigError(
                f"'{keys[0]}' ({paths[a]}) and '{keys[1]}' ({paths[b]}) contain the same data, so runs would be "
                f"scored on data that they were fitted to. Use a different file{remedy}."
            )


def check_test_loader(config: Config) -> None:
    """Refuse a data loader that would skip some of the test set: AllenNLP scores it with the loader for validation, or
    else with the loader for training."""
    loader = "data_loader" if config.get("validation_data_loader") is None else "validation_data_loader"
    for key, value in leaves_of(config[loader], loader):
        if key.rpartition(".")[2] in SHORTENING and value is not None and value is not False:
            raise ConfigError(
                f"'{key}' is {json.dumps(value)}, so scores would cover only part of the test set. Remove it, or add a "
                "'validation_data_loader' that does not set it, such as {\"batch_size\": 64}."
            )


def check_direction(config: Config, metric: Metric) -> None:
    """Refuse a metric that the trainer optimises in the opposite direction: the worst candidate would win."""
    tracked = config.get("trainer", {}).get("validation_metric")
    opposite = ("+" if metric.minimise else "-") + metric.name
    if opposite in (tracked if isinstance(tracked, list) else [tracked]):
        better, end = ("higher", "lowest") if metric.minimise else ("lower", "highest")
        raise ConfigError(
            f"'trainer.validation_metric' is {json.dumps(tracked)}, so the trainer prefers a {better} '{metric.name}', "
            f"but --metric={metric.typed} selects the candidate with the {end} mean. Use --metric={opposite}, or fix "
            "'trainer.validation_metric'."
        )


TRIAL_RECORDS = 200  # of a program


class CandidateType(Registrable):
    """A candidate of one type, found by the `type` in its config.

    A subclass needs `run_class` and `check_complete`. The defaults are for a candidate that splits its data itself, by
    the `split_seed` of each request. Refuse other divisions than the official one in `check` if yours does not.

    Attributes:
        worker_module: a module of this package that workers import first.
        builds_model: whether the selection builds the model itself, once before the first run, and runs choose an
            epoch.
    """

    default = "allennlp"
    run_class: ClassVar[Type[CandidateRun]]
    worker_module: ClassVar[str] = "fiesta_allennlp.trainings.candidate_run"
    builds_model: ClassVar[bool] = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config: Config = dict(config)

    # The config.

    def check_complete(self) -> None:
        """Refuse unknown and missing keys, and values of the wrong type."""
        raise NotImplementedError

    def check(self, *, metric: Metric, group_by: Optional[str] = None, division: Division) -> None:
        """Refuse everything that can be found wrong without building the candidate."""
        check_no_split_options(group_by, division)

    def check_metric(self, metric: Metric) -> None:
        """Refuse a metric that contradicts the config."""

    def check_installed(self) -> None:
        """Refuse a candidate whose libraries are not installed."""

    def check_device(self, executor: Executor) -> None:
        """Refuse a device that the config asks for and the executor does not give."""

    def notes(self, division: Division) -> Iterator[str]:
        """Yield what is doubtful about the config."""
        return iter(())

    # The data and code.

    @property
    def data_paths(self) -> Dict[str, Any]:
        """The data paths by set, with absolute files; empty if the candidate splits its data itself."""
        return {}

    def data_key(self, set_name: str) -> str:
        """Return the key of the config that names the data of a set."""
        return f"data.{set_name}"

    def absolute(self) -> Config:
        """Return the config with data that are found from any current directory."""
        return self.config

    @property
    def code(self) -> List[str]:
        """The files of code that the config names."""
        return []

    def own_division(self, division: Division) -> Division:
        """Return the division of the data for this candidate."""
        return division

    # Before the first run.

    @property
    def preparation_key(self) -> str:
        """A text that is equal for candidates whose preparations are equal, apart from the number of parameters."""
        return json.dumps([self.data_paths])

    def prepare(self, *, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
        """Read the pool, and build what can be built. `data` is the fingerprint of the data files; `vectors` is a
        directory for word vectors."""
        return Preparation(Pool({}, {}, num_groups=0, group_by=None, data=data, fingerprint="", is_of_program=True))

    def example_command(self, division: Division, directory: Path) -> str:
        """Return the shell command of a first run in this directory; empty if there is none."""
        return ""

    # The runs.

    def run(
        self, *, vectors: Mapping[str, str], keep_models: bool, free_device: bool, is_trial: bool, **shared: Any
    ) -> CandidateRun:
        """Return what makes the runs. `shared` are the fields of every `CandidateRun`; a trial is a short run."""
        return self.run_class(self.absolute(), **shared)

    def repeat_command(self, packages: Sequence[str]) -> str:
        """Return the shell command that repeats one run."""
        file = f"DIR/evaluations/CANDIDATE-REPLICATE/{self.run_class.description}"
        return " ".join(["python -m fiesta_allennlp.trainings.programs.repeat", file, "NEW", *packages])


@CandidateType.register("allennlp")
class AllenNLPCandidate(CandidateType):
    """A complete config for `allennlp train`."""

    worker_module = "fiesta_allennlp.trainings.allennlp.loaded"
    builds_model = True

    def check_complete(self) -> None:
        check_complete(self.config)

    def check(self, *, metric: Metric, group_by: Optional[str] = None, division: Division) -> None:
        if not division.has_validation:
            raise ConfigError(
                "AllenNLP configs need a validation set. Use three numbers, such as --split-ratios 0.64,0.16,0.2."
            )
        check_sets(self.data_paths, division, self.data_key)
        check_test_loader(self.config)
        self.check_metric(metric)

    def check_metric(self, metric: Metric) -> None:
        check_direction(self.config, metric)

    def check_installed(self) -> None:
        if find_spec("allennlp") is None:
            raise ConfigError(NO_ALLENNLP)

    def check_device(self, executor: Executor) -> None:
        """Refuse a config that asks for a GPU if runs see none, because it would silently train on the CPU; and a
        config that asks for a device that does not exist on this machine, if runs use the device of their config."""
        trainer = self.config.get("trainer", {})
        device = trainer.get("cuda_device", -1)
        wrong = f"'trainer.cuda_device' is {json.dumps(device)}, but"
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
                f"{wrong} runs on a cluster see a GPU only if they request one. Use --gpus-per-evaluation 1, or a "
                "fraction such as 0.25 with Ray; or train on the CPU with --overrides '{\"trainer.cuda_device\": -1}'."
            )
        is_own = trainer.get("type", "gradient_descent") != "gradient_descent"  # which may accept other devices
        is_here = device is None or is_own
        if isinstance(device, int):
            is_here = device < 0 or device < len(visible_gpus())
        if not executor.gives_devices and not is_here:
            raise ConfigError(
                f"{wrong} this machine has {len(visible_gpus())} GPUs, numbered from 0. Correct it, use -1 for the "
                "CPU, or remove the key to let AllenNLP choose."
            )

    @property
    def data_paths(self) -> Dict[str, Any]:
        return official_paths(self.config)

    def data_key(self, set_name: str) -> str:
        return f"{set_name}_data_path"

    def absolute(self) -> Config:
        return with_absolute_paths(self.config)

    @property
    def preparation_key(self) -> str:
        uris = sorted(holder[key] for holder, key in vector_references(self.config))
        return json.dumps([readers_of(self.config), self.data_paths, uris])

    def prepare(self, *, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
        from fiesta_allennlp.trainings.allennlp.preparing import prepare_candidate

        return prepare_candidate(
            self.config, group_by=group_by, division=division, data=data, vectors_directory=vectors
        )

    def run(
        self, *, vectors: Mapping[str, str], keep_models: bool, free_device: bool, is_trial: bool, **shared: Any
    ) -> CandidateRun:
        from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPTraining

        config = of_one_epoch(self.absolute()) if is_trial else self.absolute()
        return AllenNLPTraining(config, vectors=vectors, keep_archives=keep_models, free_device=free_device, **shared)

    def repeat_command(self, packages: Sequence[str]) -> str:
        options = " ".join(words_of("include_package", ("fiesta_allennlp.plugin", *packages)))
        file = "DIR/evaluations/CANDIDATE-REPLICATE/config.json"
        return f"OMP_NUM_THREADS=1 allennlp train {file} -s NEW {options}"


@CandidateType.register(TYPE)
class ProgramCandidate(CandidateType):
    """A command in any language, which gets its sets as files and reports its metrics."""

    run_class = ProgramRun
    worker_module = ProgramRun.__module__

    def check_complete(self) -> None:
        check_keys(self.config)

    def check(self, *, metric: Metric, group_by: Optional[str] = None, division: Division) -> None:
        division = self.own_division(division)
        if self.data_paths:
            check_sets(self.data_paths, division, self.data_key)
            if not division.is_official:
                check_group_by(self.config, group_by)
        check_program(self.config, group_by=group_by, division=division)

    def notes(self, division: Division) -> Iterator[str]:
        return notes_on_program(self.config, division)

    @property
    def data_paths(self) -> Dict[str, Any]:
        return program_paths(self.config)

    def absolute(self) -> Config:
        data = self.config.get("data")
        return self.config if data is None else {**self.config, "data": {**data, **self.data_paths}}

    @property
    def code(self) -> List[str]:
        return code_of(self.config)

    def own_division(self, division: Division) -> Division:
        return division_for(self.config, division)

    def prepare(self, *, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
        return Preparation(program_pool(self.config, group_by, data=data, division=division))

    def example_command(self, division: Division, directory: Path) -> str:
        return example_command(self.config, division, directory)

    def run(
        self, *, vectors: Mapping[str, str], keep_models: bool, free_device: bool, is_trial: bool, **shared: Any
    ) -> CandidateRun:
        most_records = TRIAL_RECORDS if is_trial else None
        return ProgramRun(self.absolute(), keep_models=keep_models, most_records=most_records, **shared)

    def repeat_command(self, packages: Sequence[str]) -> str:
        return super().repeat_command(())


def of_one_epoch(config: Config) -> Config:
    """Return an AllenNLP config with one epoch, unless its trainer counts none."""
    trainer = config["trainer"]
    has_epochs = "num_epochs" in trainer or trainer.get("type", "gradient_descent") == "gradient_descent"
    return {**config, "trainer": {**trainer, "num_epochs": 1}} if has_epochs else config


def type_of(config: Mapping[str, Any]) -> CandidateType:
    """Return the object that answers for a config. Raise a `ConfigError` if its type is not registered. An AllenNLP
    config may also have a `type`, of its training loop."""
    name = config.get("type", CandidateType.default)
    is_loop = "model" in config and name not in CandidateType.available()
    return CandidateType.by_name(str(CandidateType.default) if is_loop else name)(config)
