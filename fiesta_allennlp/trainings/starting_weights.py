"""What the runs of a config start from: trained weights, and the data that these were trained on, as far as the config
beside them says so."""

import json
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import MAX_LINE_CHARACTERS, ConfigError, join_some
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.trainings.config import Config, absolute_paths, leaves_of, readers_of
from fiesta_allennlp.trainings.data_files import DataSnapshot, files_behind

WEIGHT_KEYS = ("archive_file", "weights_file_path", "model_name")
"""Keys of AllenNLP for trained weights: of `from_archive` and `_pretrained`, of the initializer `pretrained`, and of
pretrained transformers."""

FITTED_SETS = ("train", "validation")
"""The sets that weights depend on: those of the training and of the choice of its epoch."""

MAX_CONFIG_BYTES = 2**20


@dataclass(frozen=True)
class StartingWeights:
    """Weights that a run starts from. `data` are the data files that they were trained on, none if that is unknown, and
    `pool_data` are those of them that the selection draws its sets from."""

    source: str
    data: Sequence[str] = ()
    pool_data: Sequence[str] = ()

    @property
    def description(self) -> str:
        if self.pool_data:
            return f"{self.source}, trained on {join_some(self.pool_data)}, which this selection splits"
        return f"{self.source}, trained on {join_some(self.data)}" if self.data else self.source


def find_starting_weights(config: Config, snapshot: DataSnapshot) -> Tuple[StartingWeights, ...]:
    """Return the weights that a config names. `snapshot` identifies the data of the selection."""
    sources = {
        value: None
        for key, value in leaves_of(config.get("model"))
        if key.rpartition(".")[2] in WEIGHT_KEYS and isinstance(value, str)
    }
    pool_digests = {file.digest for file in snapshot.files}
    weights = []
    for source in sources:
        files = [file for path in _fitted_paths(_config_beside(Path(source))).values() for file in files_behind(path)]
        names = tuple(dict.fromkeys(map(str, files)))
        pool_data = tuple(name for name in names if file_digest(Path(name)) in pool_digests)
        weights.append(StartingWeights(source, names, pool_data))
    return tuple(weights)


def check_starting_weights(
    weights_by_candidate: Mapping[str, Sequence[StartingWeights]], *, on_official_splits: bool, is_allowed: bool
) -> None:
    """Refuse weights that were trained on data of which a random split may make its test set."""
    if on_official_splits or is_allowed:
        return
    for name, weights in weights_by_candidate.items():
        for start in weights:
            if start.pool_data:
                raise ConfigError(
                    f"candidate '{name}' starts from {start.description}, so its test sets would hold records that it "
                    "was trained on. Use --splits official, other weights, or --allow-pretrained-on-pool."
                )


def describe_starting_weights(weights_by_candidate: Mapping[str, Sequence[StartingWeights]]) -> str:
    """Say which candidates start from which weights, without a full stop."""
    names_by_weights: Dict[str, List[str]] = {}
    for name, weights in weights_by_candidate.items():
        for start in weights:
            names_by_weights.setdefault(start.description, []).append(name)
    texts = [
        f"{join_some(names)} start{'s' * (len(names) == 1)} from {text}" for text, names in names_by_weights.items()
    ]
    return join_some(texts, "; ", max_characters=MAX_LINE_CHARACTERS)


def _config_beside(source: Path) -> Config:
    """Return the config in an archive, in a directory, or in the directory of a file of weights; empty if there is
    none that can be read."""
    with suppress(OSError, ValueError, tarfile.TarError, RecursionError, EOFError):
        if source.is_file() and tarfile.is_tarfile(source):
            with tarfile.open(source) as archive:
                member = archive.extractfile("config.json") if "config.json" in archive.getnames() else None
                content = b"{}" if member is None else member.read(MAX_CONFIG_BYTES)
        else:
            directory = source if source.is_dir() else source.parent
            content = (directory / "config.json").read_bytes()[:MAX_CONFIG_BYTES]
        config = json.loads(content)
        return config if isinstance(config, dict) else {}
    return {}


def _fitted_paths(config: Config) -> Dict[str, Any]:
    """Return the data paths that a training depended on. A run on random splits depended on all of its files."""
    readers = [reader for reader in readers_of(config).values() if isinstance(reader, dict)]
    split_paths = [reader.get("paths") for reader in readers if reader.get("type") == "resplit"]
    if split_paths and isinstance(split_paths[0], dict):
        return absolute_paths(split_paths[0])
    return absolute_paths({set_name: config.get(f"{set_name}_data_path") for set_name in FITTED_SETS})
