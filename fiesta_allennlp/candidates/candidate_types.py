"""The types of candidates: AllenNLP configs, programs, and those that your own packages register.

Nothing else asks for the type of a candidate. `type_of` returns the object that answers for one config.
"""

import json
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Type, Union

from fiesta_allennlp.candidates.candidate_run import CandidateRun, ReportedMetrics
from fiesta_allennlp.candidates.config import AllenNLPConfig, Config
from fiesta_allennlp.candidates.data_files import DataSnapshot, seen_data_reasons
from fiesta_allennlp.candidates.pool import Pool, Preparation, first_group_key
from fiesta_allennlp.candidates.programs.program import PROGRAM_TYPE, ProgramConfig, check_no_split_options
from fiesta_allennlp.candidates.programs.program_data import ProgramData
from fiesta_allennlp.candidates.programs.program_run import ProgramRun
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Division
from fiesta_allennlp.core.directory import OUTCOME_FILE
from fiesta_allennlp.core.errors import ALLENNLP_MISSING_MESSAGE, ConfigError
from fiesta_allennlp.core.files import flatten
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.core.registry import Registrable, build
from fiesta_allennlp.core.settings.options import option_words
from fiesta_allennlp.running.executor import Executor

MAX_TRIAL_RECORDS = 200  # of a program
MAX_CANDIDATES = 1024  # whose objects are kept


class AnyCandidate(Registrable):
    """Everything that a selection asks a candidate of one type. The defaults are for one that splits its data itself.

    A type of your own is a `CandidateType`. Extend this class if the selection splits your data, as for a program.

    Attributes:
        config: the config, with its `type`.
        worker_module: a module of this package that workers import first.
        data_key: the key of the config that names the data of a set, with `{}` for the set.
    """

    default = "allennlp"
    worker_module: ClassVar[str] = "fiesta_allennlp.candidates.candidate_types"
    data_key: ClassVar[str] = "data.{}"

    config: Config

    @classmethod
    def of(cls, config: Config) -> "AnyCandidate":
        """Return the candidate of a config. Raise a `ConfigError` if a key cannot be right."""
        candidate = cls()
        candidate.config = config
        return candidate

    # The config.

    def check(self, settings: Settings) -> None:
        """Refuse everything that can be found wrong without building the candidate: keys, values, options."""
        check_no_split_options(settings)

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

    def seen_data_reasons(self, snapshot: DataSnapshot) -> Iterable[str]:
        """Return which weights that the config starts from were trained on the data of the selection, `snapshot`."""
        return ()

    def prepare(self, *, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
        """Read the pool, and build what can be built. `data` is the fingerprint of the data files; `vectors` is a
        directory for word vectors."""
        return Preparation(Pool({}, {}, num_groups=0, group_by=None, data=data, fingerprint="", is_of_program=True))

    def example_command(self, division: Division, directory: Path) -> str:
        """Return the shell command of a first run in this directory; empty if there is none."""
        return ""

    # The runs.

    @abstractmethod
    def evaluator(
        self, *, vectors: Mapping[str, str], keep_models: bool, free_device: bool, is_trial: bool, **shared: Any
    ) -> CandidateRun:
        """Return what makes the runs. `shared` are the fields of every `CandidateRun`; a trial is a short run."""

    @classmethod
    def repeat_command(cls, packages: Sequence[str]) -> str:
        """Return the shell command that repeats one run."""
        file = f"DIR/evaluations/CANDIDATE-REPLICATE/{OUTCOME_FILE}"
        return " ".join(["python -m fiesta_allennlp.candidates.programs.repeat", file, "NEW", *packages])


class CandidateType(AnyCandidate):
    """A type of your own, for candidates that split their data themselves by the `split_seed` of each request.

    A subclass needs `run`. The keys of its config, apart from `type`, are the arguments of its constructor.
    """

    @classmethod
    def of(cls, config: Config) -> AnyCandidate:
        candidate = build(AnyCandidate, config)
        candidate.config = config
        return candidate

    @abstractmethod
    def run(self, request: Request, directory: Path) -> Union[float, Mapping[str, Any]]:
        """Make one run with the seeds of the request, and return its score, or its metrics by name.

        It runs in a fresh process, in the current directory of the command. Write files into `directory`.
        """

    def evaluator(self, **options: Any) -> CandidateRun:
        shared = {key: value for key, value in options.items() if key in CandidateRun.__dataclass_fields__}
        return CandidateTypeRun(self.config, **shared)


@CandidateRun.register("candidate_type")
@dataclass(frozen=True)
class CandidateTypeRun(CandidateRun):
    """Makes a run of a `CandidateType`. Numbers may be scalars of numpy or torch, and nested."""

    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        candidate = type_of(self.config)
        assert isinstance(candidate, CandidateType)
        result = candidate.run(request, directory)
        metrics = flatten(result if isinstance(result, Mapping) else {self.metric: result})
        values = {name: value.item() if getattr(value, "shape", None) == () else value for name, value in metrics}
        return ReportedMetrics(values, "the value that run() returned")


@AnyCandidate.register("allennlp")
class AllenNLPCandidate(AllenNLPConfig, AnyCandidate):
    """A candidate that is a complete config for `allennlp train`."""

    worker_module = "fiesta_allennlp.candidates.allennlp.loaded"
    data_key = "{}_data_path"

    def check_installed(self) -> None:
        if find_spec("allennlp") is None:
            raise ConfigError(ALLENNLP_MISSING_MESSAGE)

    def check_device(self, executor: Executor) -> None:
        """Refuse a config that asks for a GPU if runs see none, because it would silently train on the CPU."""
        device = self.config["trainer"].get("cuda_device", -1)
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
                f"'trainer.cuda_device' is {json.dumps(device)}, but runs on a cluster see a GPU only if they request "
                "one. Use --executor-option gres=gpu:1 with Slurm, num_gpus=1 with Ray, or --overrides "
                "'{\"trainer.cuda_device\": -1}' for the CPU."
            )

    def seen_data_reasons(self, snapshot: DataSnapshot) -> Iterable[str]:
        return seen_data_reasons(self.config, snapshot)

    def prepare(self, *, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
        from fiesta_allennlp.candidates.allennlp.preparing import prepare_candidate

        return prepare_candidate(
            self.config, group_by=group_by, division=division, data=data, vectors_directory=vectors
        )

    def evaluator(
        self, *, vectors: Mapping[str, str], keep_models: bool, free_device: bool, is_trial: bool, **shared: Any
    ) -> CandidateRun:
        from fiesta_allennlp.candidates.allennlp.allennlp_run import AllenNLPRun

        config = limit_to_one_epoch(self.absolute()) if is_trial else self.absolute()
        return AllenNLPRun(config, vectors=vectors, keep_archives=keep_models, free_device=free_device, **shared)

    @classmethod
    def repeat_command(cls, packages: Sequence[str]) -> str:
        options = " ".join(option_words("include_package", ("fiesta_allennlp.plugin", *packages)))
        file = "DIR/evaluations/CANDIDATE-REPLICATE/config.json"
        return f"OMP_NUM_THREADS=1 allennlp train {file} -s NEW {options}"


@AnyCandidate.register(PROGRAM_TYPE)
class ProgramCandidate(ProgramConfig, AnyCandidate):
    """A command in any language, which gets its sets as files and reports its metrics."""

    worker_module = ProgramRun.__module__

    def prepare(self, *, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
        if not self.data_paths:
            return super().prepare(group_by=group_by, division=division, data=data, vectors=vectors)
        own_key = self.config["data"].get("group_by")
        key = None if division.is_official else first_group_key([group_by, own_key])
        return Preparation(ProgramData.read(self.config["data"], division, key).pool(division, data_digest=data))

    def evaluator(
        self, *, vectors: Mapping[str, str], keep_models: bool, free_device: bool, is_trial: bool, **shared: Any
    ) -> CandidateRun:
        max_records = MAX_TRIAL_RECORDS if is_trial else None
        return ProgramRun(self.absolute(), keep_models=keep_models, max_records=max_records, **shared)


def limit_to_one_epoch(config: Config) -> Config:
    """Return an AllenNLP config with one epoch, unless its trainer counts none."""
    trainer = config["trainer"]
    has_epochs = "num_epochs" in trainer or trainer.get("type", "gradient_descent") == "gradient_descent"
    return {**config, "trainer": {**trainer, "num_epochs": 1}} if has_epochs else config


def type_of(config: Mapping[str, Any]) -> AnyCandidate:
    """Return the object that answers for a config. Raise a `ConfigError` if its type is not registered, or its keys are
    wrong."""
    return _build_candidate(AnyCandidate.by_name(_type_name(config)), json.dumps(config))


@lru_cache(maxsize=MAX_CANDIDATES)
def _build_candidate(candidate_class: Type[AnyCandidate], config_text: str) -> AnyCandidate:
    """Build the object of a config once, although a start asks for it many times."""
    return candidate_class.of(json.loads(config_text))


def stored_type_of(config: Mapping[str, Any]) -> Type[AnyCandidate]:
    """Return the class of a config, or `CandidateType` for that of a package which is not imported."""
    return AnyCandidate.find(_type_name(config)) or CandidateType


def _type_name(config: Mapping[str, Any]) -> Any:
    """Return the type in a config. An AllenNLP config may also have a `type`, of its training loop."""
    is_loop = "model" in config and AnyCandidate.find(config.get("type")) is None
    return AnyCandidate.default if is_loop else config.get("type", AnyCandidate.default)
