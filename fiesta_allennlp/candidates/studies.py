"""The best trials of an Optuna study (Akiba et al., 2019), which become candidates."""

import json
import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fiesta_allennlp.core.errors import ConfigError, describe_as_sentence, join_some
from fiesta_allennlp.core.records import Candidate

TRIAL_KEY = "trial"
"""The key of a trial in the facts of its candidate."""

SQLITE_PREFIX, SQLITE_MAGIC = "sqlite:///", b"SQLite format 3\0"


@dataclass(frozen=True)
class Trial:
    """A completed trial: its number, the `values` of its parameters, its `score`, and whether the study minimizes it.

    The trial was chosen by its score, so the score is shown and never counts."""

    number: int
    values: Mapping[str, Any]
    score: float
    minimise: bool

    @property
    def name(self) -> str:
        return f"trial-{self.number}"


def trials_of(candidates: Mapping[str, Candidate]) -> Dict[str, Trial]:
    """Return the trials that candidates come from, by the names of the candidates."""
    return {name: Trial(**c.facts[TRIAL_KEY]) for name, c in candidates.items() if TRIAL_KEY in c.facts}


def study_scores(candidates: Mapping[str, Candidate]) -> Dict[str, float]:
    """Return the scores in the study, by the names of the candidates."""
    return {name: trial.score for name, trial in trials_of(candidates).items()}


def read_trials(study: str, top: int) -> List[Trial]:
    """Return the `top` best completed trials of a study with different values, the best first.

    Args:
        study: Optuna's storage, which is an SQLite file, a journal file or a URL; with `#NAME` behind if it has several
            studies.

    Raises:
        ConfigError: if Optuna is not installed, the study cannot be read, has several objectives, or too few trials.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("--study requires Optuna. Install it: pip install 'fiesta-allennlp[optuna]'") from error
    opened = _open_study(optuna, study)
    if len(opened.directions) > 1:
        raise ConfigError(f"--study {study} has {len(opened.directions)} objectives. Pass a study with a single one.")
    minimise = opened.direction == optuna.study.StudyDirection.MINIMIZE
    trials: List[Any] = opened.get_trials(deepcopy=False)
    completed = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    best_by_values: Dict[str, Trial] = {}
    for trial in sorted(completed, key=lambda trial: (trial.value if minimise else -trial.value, trial.number)):
        values = json.dumps(trial.params, sort_keys=True, default=repr)
        best_by_values.setdefault(values, Trial(trial.number, trial.params, trial.value, minimise))
    if len(best_by_values) < top:
        raise ConfigError(
            f"--study {study}: {len(completed)} of its {len(trials)} trials are complete, {len(best_by_values)} of "
            f"them with different values, but --top is {top}. Use a smaller --top, or complete more trials."
        )
    return list(best_by_values.values())[:top]


def _open_study(optuna: ModuleType, study: str) -> Any:
    location, name = (study, None) if os.path.isfile(study) else _split_name(study)
    try:
        storage = _open_storage(optuna, location)
        names = optuna.get_all_study_names(storage)
        if name in names or (name is None and len(names) == 1):
            return optuna.load_study(study_name=name or names[0], storage=storage)
    except Exception as error:  # whatever Optuna, its databases and their drivers raise
        reason = f"{error.strerror}." if isinstance(error, OSError) else describe_as_sentence(error)
        raise ConfigError(f"--study {study} cannot be read as an Optuna study: {reason}") from error
    raise ConfigError(
        f"--study {study}: name one of its studies, {location}#NAME. Studies: {join_some(names) or 'none'}."
    )


def _split_name(study: str) -> Tuple[str, Optional[str]]:
    location, mark, name = study.rpartition("#")
    return (location, name) if mark else (study, None)


def _open_storage(optuna: ModuleType, location: str) -> Any:
    """Open a storage for reading. Raise an `OSError` for a file that does not exist, which Optuna would create."""
    path = location.removeprefix(SQLITE_PREFIX)
    if "://" in path:
        return optuna.storages.RDBStorage(path, skip_table_creation=True)
    with open(path, "rb") as file:
        is_sqlite = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    if is_sqlite:
        return optuna.storages.RDBStorage(f"{SQLITE_PREFIX}{path}", skip_table_creation=True)
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
