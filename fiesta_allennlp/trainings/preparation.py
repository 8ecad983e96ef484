"""Everything that can be found wrong with a candidate before its first run."""

import inspect
import math
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import prepare_environment
from allennlp.training import GradientDescentTrainer
from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import (
    ConfigError,
    FiestaError,
    ModelError,
    ReaderError,
    about_unknown_keys,
    all_in_one,
    describe,
    not_keys,
    plainly,
)
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.listeners.progress import counting
from fiesta_allennlp.records import Candidate, Request
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config, evaluation_config, keys_of, vector_references
from fiesta_allennlp.trainings.data_files import missing_file
from fiesta_allennlp.trainings.evaluator import built, number_of
from fiesta_allennlp.trainings.multitask import first_batches
from fiesta_allennlp.trainings.points import split_place
from fiesta_allennlp.trainings.pool import Pool, read_pool
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.programs.pool import program_pool
from fiesta_allennlp.trainings.same_pool import check_same_pool
from fiesta_allennlp.trainings.settings import Settings
from fiesta_allennlp.trainings.vectors import coverage_of, filtered_vectors, rows_of, width_of

Vectors = Tuple[Tuple[str, str], ...]
"""Pairs of a word-vector file as the config names it and the filtered file to read in its place."""


@dataclass(frozen=True)
class Preparation:
    """What building a candidate once told: the pool, the parameters, and what its metrics are called. Of a program only
    the pool is known.

    `coverage` is, for each file of word vectors, the share of the tokens in the data that have a vector.
    """

    pool: Pool
    num_parameters: Optional[int] = None
    metrics: Optional[FrozenSet[str]] = None
    vectors: Vectors = ()
    coverage: Tuple[float, ...] = ()


def facts_of(preparation: Preparation) -> Dict[str, Any]:
    """A preparation as plain data, for the store. The words of the pool are left out."""
    facts = asdict(preparation)
    del facts["pool"]["words"], facts["pool"]["counts"]
    return {**facts, "metrics": None if preparation.metrics is None else sorted(preparation.metrics)}


def preparation_of(facts: Mapping[str, Any]) -> Preparation:
    """Back from `facts_of`, without the words."""
    return Preparation(
        pool=Pool(**{**facts["pool"], "pairing": tuple(facts["pool"].get("pairing", ()))}),
        num_parameters=facts["num_parameters"],
        metrics=None if facts["metrics"] is None else frozenset(facts["metrics"]),
        vectors=tuple((original, filtered) for original, filtered in facts["vectors"]),
        coverage=tuple(facts.get("coverage", ())),
    )


def prepare_all(
    candidates: Mapping[str, Candidate],
    roster: Roster,
    settings: Settings,
    directory: RunDirectory,
    place: RunDirectory,
    console: Console,
) -> Dict[str, Preparation]:
    """Build each of these candidates of the roster once, in a process of its own. What they print goes to `checks/` of
    `place`, and word vectors to `vectors/`; they are found in `directory` afterwards.

    Raises:
        ConfigError: naming each candidate that is wrong, and what is wrong with it.
    """
    num_tasks = f"{len(candidates)} candidates" if len(candidates) > 1 else "1 candidate"
    are_built = not all(is_program(candidate.config) for candidate in candidates.values())
    building = " and building each model once" if are_built else ""
    console.print(f"Checking {num_tasks}: reading the data{building} ...", highlight=False)
    given = (settings.group_by, settings.division)
    tasks = {
        name: (candidate.config, *given, roster.data[name].fingerprint, place.vectors)
        for name, candidate in candidates.items()
    }
    with counting(console, len(candidates)) as checked:
        results = run_apart(
            _prepare_task,
            tasks,
            logs={name: place.check_log(name) for name in candidates},
            settings=WorkerSettings(num_threads=settings.threads_per_worker, packages=settings.include_package),
            at_once=_at_once(settings),
            on_done=checked,
        )
    wrong = {name: result for name, result in results.items() if isinstance(result, BaseException)}
    if wrong:
        refusals = [_refusal(candidates[name], error, place) for name, error in wrong.items()]
        raise ConfigError(all_in_one(refusals, what="candidates are wrong")) from next(iter(wrong.values()))
    check_same_pool({name: result.pool for name, result in results.items()})
    return {name: _found_in(directory, result) for name, result in results.items()}


def _refusal(candidate: Candidate, error: BaseException, place: RunDirectory) -> str:
    """What is wrong with a candidate that cannot be built, with its name."""
    log = place.check_log(candidate.name)
    says_all = isinstance(error, FiestaError) and not isinstance(error, (ModelError, ReaderError))
    where = "" if says_all or not place.store.exists() or not log.exists() else f" The log is {log}."
    path, _ = split_place(candidate.source)
    keys = keys_of(candidate.config)
    said = missing_file(candidate.config, describe(error), path) or f"{plainly(error, keys=keys)}{where}"
    return f"candidate '{candidate.name}' ({candidate.source}): {said}"


def _found_in(directory: RunDirectory, preparation: Preparation) -> Preparation:
    """The preparation with its word vectors where they are found afterwards."""
    vectors = directory.vectors.resolve()
    found = tuple((original, str(vectors / Path(filtered).name)) for original, filtered in preparation.vectors)
    return replace(preparation, vectors=found)


def _at_once(settings: Settings) -> int:
    """No more than this machine has cores for, wherever the trainings will run."""
    room = num_workers("auto", settings.threads_per_worker)
    return room if settings.workers == "auto" else min(room, settings.workers)


def _prepare_task(config: Config, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
    if is_program(config):
        return Preparation(program_pool(config, group_by, data=data, division=division))
    try:
        return prepare_candidate(config, group_by=group_by, division=division, data=data, vectors_directory=vectors)
    except (ConfigurationError, TypeError) as error:
        about_keys = about_unknown_keys(error, keys_of(config))  # which needs the traceback of this process
        if about_keys:
            raise ConfigError(about_keys) from error
        raise


def vectors_are_there(preparation: Preparation) -> bool:
    """False where the run directory was moved or cleaned: the vectors are then filtered again."""
    return all(Path(filtered).is_file() for _, filtered in preparation.vectors)


def prepare_candidate(
    config: Config,
    *,
    group_by: Optional[str],
    vectors_directory: Path,
    data: str = "",
    division: Division = AT_OFFICIAL_RATIOS,
) -> Preparation:
    """Read the pool, filter the word vectors, build the model and its trainer, and run one batch, or one of each task,
    through it. `data` and `division` are those of `read_pool`.

    Raises:
        Exception: `FiestaError`, AllenNLP's `ConfigurationError` or whatever the candidate's own code raises.
    """
    pool = read_pool(config, group_by, data=data, division=division)
    vectors, coverage = {}, {}
    for holder, key in vector_references(config):
        uri = holder[key]
        filtered = filtered_vectors(uri, pool.words, vectors_directory)
        rows = rows_of(filtered)
        _check_width(holder, uri, width_of(rows))
        vectors[uri] = str(filtered.resolve())
        counts = pool.counts.get(holder.get("vocab_namespace", "tokens"), {})
        coverage[uri] = coverage_of(rows, counts)
    num_parameters, metrics = _build_once(config, pool, vectors, division)
    check_trainer(config["trainer"], metrics)
    shares = tuple(coverage[uri] for uri in sorted(vectors))
    return Preparation(pool, num_parameters, metrics, tuple(sorted(vectors.items())), shares)


def _check_width(holder: Config, uri: str, width: int) -> None:
    """Refuse an embedding of another width than its vectors, of which AllenNLP would pass over every row."""
    dim = holder.get("embedding_dim", width)
    if dim != width:
        raise ConfigError(
            f"'embedding_dim' is {dim} but the rows of {uri} have {width} numbers. Write {width}, or give another file."
        )


def _build_once(
    config: Config, pool: Pool, vectors: Mapping[str, str], division: Division
) -> Tuple[int, FrozenSet[str]]:
    any_request = Request("", 0, split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)
    made = evaluation_config(config, any_request, group_by=pool.group_by, vectors=vectors, division=division)
    made["trainer"]["cuda_device"] = -1
    params = Params(made)
    prepare_environment(params)
    with tempfile.TemporaryDirectory() as scratch:
        loop = built(params, Path(scratch))
        loop.model.eval()
        with torch.no_grad(), naming_the_module(loop.model):
            for batch in first_batches(loop.trainer.data_loader):
                check_loss(loop.model(**batch))
        metrics = {name for name, value in loop.model.get_metrics(reset=True).items() if number_of(value) is not None}
    return sum(p.numel() for p in loop.model.parameters()), frozenset(metrics)


@contextmanager
def naming_the_module(model: torch.nn.Module) -> Iterator[None]:
    """Let an error that a part of the model raises name this part, as in `_encoder.linear`.

    Raises:
        ModelError: of whatever the model raises, but for a lack of the machine and errors of this package.
    """
    at_work: List[str] = []

    def enter(name: str) -> Callable[..., None]:
        return lambda *_: at_work.append(name)

    def leave(*_: Any) -> None:
        at_work.pop()

    hooks = [part.register_forward_pre_hook(enter(name)) for name, part in model.named_modules()]
    hooks += [part.register_forward_hook(leave) for part in model.modules()]
    try:
        yield
    except (FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        where = f"'{at_work[-1]}' of the model" if at_work and at_work[-1] else "the model"
        raise ModelError(f"the first batch does not go through {where}: {plainly(error)}") from error
    finally:
        for hook in hooks:
            hook.remove()


def check_loss(output: Mapping[str, Any]) -> None:
    """Refuse a loss that no training can begin with.

    Raises:
        ConfigError: where it is not a finite number.
    """
    loss = output.get("loss")
    if loss is not None and not math.isfinite(loss):
        raise ConfigError(
            f"the loss of its first batch is {float(loss):g} before any training, so no run could learn. Look for an "
            "infinite or undefined number in the initial weights, the word vectors, the features or the loss."
        )


def check_trainer(trainer: Config, metrics: FrozenSet[str]) -> None:
    """Refuse what AllenNLP lets pass until the first epoch is over, or for ever.

    Raises:
        ConfigError: on a key that the gradient descent trainer does not have, or a validation metric that the model
            does not report.
    """
    if trainer.get("type", "gradient_descent") == "gradient_descent":
        known = {
            "type",
            "run_sanity_checks",
            *inspect.signature(GradientDescentTrainer.from_partial_objects).parameters,
        }
        unknown = sorted(set(trainer) - known)
        if unknown:
            raise ConfigError(not_keys(unknown, "'trainer'", sorted(known)))
    metrics = metrics | {"loss"}
    wanted = trainer.get("validation_metric", "-loss")
    for name in [wanted] if isinstance(wanted, str) else wanted:
        if name[:1] in "+-" and name[1:] not in metrics:
            raise ConfigError(
                f"'trainer.validation_metric' is '{name}' but the model does not report that. It reports: "
                f"{', '.join(sorted(metrics))}."
            )
