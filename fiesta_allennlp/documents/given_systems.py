"""Makes, checks and opens the systems that are typed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Sequence

from joblib import cpu_count

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, plainly
from fiesta_allennlp.core.names import check_names, split_name
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.documents.document_file import DocumentFile
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.documents.systems.base import System, Workplace
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.selection.jsonnet import read_jsonnet

ARCHIVE_ENDING = ".tar.gz"
WEB = ("http://", "https://")
FORMS = "NAME=model.tar.gz, NAME=predictions.jsonl, NAME=http://host/path, or NAME=system.jsonnet"


def parse_systems(texts: Sequence[str]) -> Dict[str, Candidate]:
    """Return the systems by name, in the order given."""
    named_sources = [(_stem(source) if name is None else name, source) for name, source in map(split_name, texts)]
    check_names(named_sources, what="system", least=2, remedy=f"Pass each as {FORMS}.")
    return {name: Candidate(name, source, _config(name, source)) for name, source in named_sources}


def build_systems(candidates: Mapping[str, Candidate], documents: DocumentFile, task: Task) -> Dict[str, System]:
    """Build the systems and check them for these documents, without opening them."""
    systems: Dict[str, System] = {}
    identities: Dict[str, str] = {}
    for name, system in candidates.items():
        with _naming(name, system):
            systems[name] = build(System, system.config)
            systems[name].check(documents, task)
            identity = systems[name].fingerprint()
        twin = next((earlier for earlier in identities if identities[earlier] == identity), None)
        if twin is not None:
            raise ConfigError(
                f"the systems '{twin}' and '{name}' are the same. Remove one of them, or set 'version' to a different "
                "string for each."
            )
        identities[name] = identity
    return systems


@contextmanager
def open_systems(
    systems: Mapping[str, System], candidates: Mapping[str, Candidate], settings: DocumentSettings, logs: RunDirectory
) -> Iterator[None]:
    """Open all systems, with logs in `logs`, and close them at the end. If one does not open, raise a `ConfigError`
    with its name."""

    def open_system(name: str) -> None:
        with _naming(name, candidates[name]):
            systems[name].open(Workplace(logs.system_log(name), settings.time_limit, settings.include_package))

    with ThreadPoolExecutor(max_workers=cpu_count()) as pool:  # loading a model keeps a core busy for seconds
        try:
            list(pool.map(open_system, systems))
            yield
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for system in systems.values():
                system.close()


@contextmanager
def _naming(name: str, system: Candidate) -> Iterator[None]:
    try:
        yield
    except (FiestaError, OSError) as error:
        raise ConfigError(f"system '{name}' ({system.source}): {plainly(error)}") from error


def _stem(path: str) -> str:
    return Path(path).name.removesuffix(ARCHIVE_ENDING) if path.endswith(ARCHIVE_ENDING) else Path(path).stem


def _config(name: str, source: str) -> Dict[str, Any]:
    if source.startswith(WEB):
        return {"type": "http", "url": source}
    if source.endswith(".jsonl"):
        return {"type": "predictions", "path": source}
    if source.endswith(ARCHIVE_ENDING) or Path(source).is_dir():
        return {"type": "archive", "path": source}
    where = f"system '{name}': {source}"
    if not source.endswith((".jsonnet", ".json")):
        raise ConfigError(f"{where} has an unknown format. Pass {FORMS}.")
    if not Path(source).is_file():
        raise ConfigError(f"{where}: config file not found. Check the path.")
    config = read_jsonnet(Path(source), where=where)
    if not isinstance(config, dict) or "type" not in config:
        raise ConfigError(f"{where} must be an object whose 'type' is one of {', '.join(System.available())}.")
    return config
