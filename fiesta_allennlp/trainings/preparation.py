"""Everything that can be found wrong with a candidate before its first run."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

from allennlp.common.checks import ConfigurationError
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
    plainly,
)
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.listeners.progress import counting
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config, keys_of, vector_references
from fiesta_allennlp.trainings.data_files import missing_file
from fiesta_allennlp.trainings.first_batch import build_once, check_trainer
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
    num_parameters, metrics = build_once(config, pool, vectors, division)
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
