"""Opens the scores that a command names: a preset, a table in a file, or the directory of a selection."""

import json
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Tuple

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, DataError, command, did_you_mean
from fiesta_allennlp.files import distinct, shortened
from fiesta_allennlp.replays.rows import read_rows, rows_of, text_of
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.replays.sources import PRESETS, ScoreSource
from fiesta_allennlp.replays.table import ScoreTable, table_from
from fiesta_allennlp.selection.options import flag

SCORE_ENDINGS = (".json", ".csv")


def is_selection(path: Path) -> bool:
    """Return whether a path is a directory and not a table of scores. Refuse any other path."""
    if path.is_dir():
        return True
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return False
    what = "is neither a directory nor a .json or .csv file" if path.exists() else "does not exist"
    raise ConfigError(f"{path} {what}. Pass the directory of a selection, or a table of scores.")


def refuse_table_options(settings: Any, names: Iterable[str], directory: Path) -> None:
    """Refuse options for tables of scores if the scores come from a selection."""
    for name in names:
        if getattr(settings, name):
            raise ConfigError(
                f"{flag(name)} is for tables of scores, but {directory} is a selection, which has recorded its own. "
                f"Remove {flag(name)}."
            )


def open_scores(settings: ReplaySettings) -> ScoreSource:
    """Return the preset of this name, the table in this file, or that of the selection in this directory."""
    scores = settings.scores
    if scores in PRESETS:
        _refuse_blocks(scores, settings)
        return PRESETS[scores]
    path = _table_in(Path(scores)) if Path(scores).is_dir() else Path(scores)
    if path.suffix in SCORE_ENDINGS:
        return read_scores(path, settings)
    hint = did_you_mean(scores, PRESETS)
    raise ConfigError(f"'{scores}' is neither a .json or .csv file nor a preset.{hint} Presets: {', '.join(PRESETS)}.")


def read_scores(path: Path, settings: Any, *, least_candidates: int = 2) -> ScoreTable:
    """Read the table in a `.json` or `.csv` file, as the settings of a command say. Unfinished and `failed` runs are
    skipped."""
    if path.suffix == ".json":
        return read_json(path, settings.evaluations_per_split or 1, least_candidates)
    _refuse_blocks(str(path), settings)
    return table_from(read_rows(path, settings.columns), path, least_candidates)


def _refuse_blocks(scores: str, settings: Any) -> None:
    if settings.evaluations_per_split is not None:
        raise ConfigError(
            f"--evaluations-per-split is for JSON tables: {scores} already defines which scores share a split. Remove "
            "the option."
        )


def _table_in(directory: Path) -> Path:
    path = RunDirectory(directory).report / "scores.csv"
    if path.is_file():
        return path
    remedy = f"Create it with {command('report')} {directory} and try again, or pass a table of scores."
    raise ConfigError(f"{directory} does not contain {path.relative_to(directory)}. {remedy}")


def read_json(path: Path, evaluations_per_split: int, least_candidates: int = 2) -> ScoreTable:
    """Read `{candidate: [scores]}`: each `evaluations_per_split` consecutive scores of a candidate share a split."""
    try:
        content = json.loads(text_of(path), object_pairs_hook=distinct)
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f'{path}: expected {{"candidate": [scores], ...}} but got {shortened(content)}.')
    return table_of(content, evaluations_per_split, path, least_candidates)


def table_of(
    content: Mapping[str, Any], evaluations_per_split: int, path: Path, least_candidates: int = 2
) -> ScoreTable:
    """Make a table of candidates and their scores, as `read_json` does. Messages call it `path`."""
    return table_from(
        rows_of(_cells(content, evaluations_per_split, path), path, has_splits=True), path, least_candidates
    )


def _cells(
    content: Mapping[str, Any], evaluations_per_split: int, path: Path
) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    for candidate, scores in content.items():
        if not isinstance(scores, list) or not scores:
            raise DataError(f"{path}: candidate '{candidate}' needs a list of scores but got {shortened(scores)}.")
        if len(scores) % evaluations_per_split:
            raise DataError(
                f"{path}: candidate '{candidate}' has {len(scores)} scores, which is not a multiple of "
                f"--evaluations-per-split {evaluations_per_split}. Complete the last split or change the option."
            )
        for number, score in enumerate(scores):
            seed = f"score {number + 1} of {len(scores)}"
            cells = {"candidate": candidate, "split": number // evaluations_per_split, "seed": seed, "score": score}
            yield f"candidate '{candidate}', {seed}", cells
