"""What a complete config can have wrong that AllenNLP lets pass, and that would give a wrong score silently."""

from itertools import combinations
from typing import Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.evaluators.config import Config, is_resplit, official_paths
from fiesta_allennlp.evaluators.data_files import files_behind, shared_files
from fiesta_allennlp.splitters import PARTS


def check_config(config: Config) -> None:
    """Refuse what can be known of a candidate without building it.

    # Raises

    `ConfigError` : with the keys, the values and the remedy.
    """
    check_parts(config)


def check_parts(config: Config) -> None:
    """Refuse data that are given as two parts: they would be in the pool twice, and a test instance's copy in training.

    # Raises

    `ConfigError` : with the two keys.
    """
    paths = official_paths(config)
    given = [part for part in PARTS if part in paths]
    files = {part: files_behind(paths[part]) for part in given}
    for pair in combinations(given, 2):
        one, other = pair
        shared = shared_files(files[one], files[other])
        if shared is not None or paths[one] == paths[other]:
            named = (paths[one], paths[other]) if shared is None else shared
            raise ConfigError(_twice(config, pair, *map(str, named)))


def _twice(config: Config, pair: Tuple[str, str], one: str, other: str) -> str:
    in_reader = is_resplit(config["dataset_reader"])
    keys = [f"dataset_reader.paths.{part}" if in_reader else f"{part}_data_path" for part in pair]
    what = f"are the same data, {one}" if one == other else f"have equal contents, {one} and {other}"
    which = f"'{keys[1]}'" if "train" in pair else "one of them"
    return (
        f"'{keys[0]}' and '{keys[1]}' {what}. The pool would hold them twice, and a random split would train on what "
        f"it tests. Leave {which} out: that part is then drawn from the pool, as large as the other of validation and "
        "test; or give another file."
    )
