"""Reads the source of a report: the selection in a directory, a table of scores, or two candidates."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError, command
from fiesta_allennlp.records import Decision, History, Request
from fiesta_allennlp.registry import build
from fiesta_allennlp.replays.files import SCORE_ENDINGS, read_scores
from fiesta_allennlp.replays.settings import done_note
from fiesta_allennlp.replays.sources import METRIC
from fiesta_allennlp.replays.table import history_of
from fiesta_allennlp.reports.reading import Reading, only, read_directory
from fiesta_allennlp.reports.stored import OF_FILES
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.settings import registered
from fiesta_allennlp.strategies.base import believed


@dataclass(frozen=True)
class TableOptions:
    """How to read a table of scores and what to believe of it; a selection knows both itself."""

    evaluations_per_split: Optional[int] = None
    belief: Any = None
    minimise: bool = False
    columns: Optional[Mapping[str, str]] = None
    done: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.evaluations_per_split is not None and self.evaluations_per_split < 1:
            raise ConfigError(f"--evaluations-per-split must be at least 1 but got {self.evaluations_per_split}.")


def read_source(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Reading:
    """Read the selection in a directory, or the table in a file."""
    if path.is_dir():
        if options != TableOptions():
            name = next(f.name for f in fields(options) if getattr(options, f.name) != f.default)
            raise ConfigError(
                f"{flag(name)} is for tables of scores: the selection in {path} has its own. Leave the option out."
            )
        return read_directory(path)
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return read_table(path, options, least_candidates=least_candidates)
    what = "is neither a directory nor a file that ends with .json or .csv" if path.exists() else "does not exist"
    raise ConfigError(
        f"{path}: {what}. Pass the directory of a selection, the one after -s, or a table of scores as "
        f"{command('replay')} reads it."
    )


def read_table(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Reading:
    """Read a table of scores as `fiesta replay` does, and compute the belief on all scores."""
    table = read_scores(path, options.evaluations_per_split, options.columns, least_candidates=least_candidates)
    default = "unpaired" if table.on_official_splits else "split_paired"
    params = registered(options.belief or default, "--belief")
    try:
        belief = build(Belief, params)
    except ConfigError as error:
        raise ConfigError(f"--belief {params['type']}: {error}") from error
    read = Reading(
        name=str(path),
        metric=Metric(METRIC, minimise=options.minimise or table.minimise),
        history=history_of(table),
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        table=table,
        table_notes=(*table.notes, *done_note(options.done)),
    )
    for name in options.done:
        read.check_name(name)
    return replace(read, decision=believed(read.directed(read.history), read.belief).decision)


@dataclass(frozen=True)
class _Side:
    source: Reading
    name: str
    typed: str


def read_pair(
    typed: Tuple[str, str], source: Optional[Reading], options: TableOptions, *, paired: bool = False
) -> Reading:
    """Read two candidates alone, each given as the name of a candidate of `source`, `PATH:NAME`, or a `PATH` with one.

    Evaluations on equal splits are pairs: within one source, and in two selections on equal data. The splits of two
    tables are different ones, unless `paired` says that those of equal name are the same."""
    first, second = (_side(text, source, options) for text in typed)
    for side in (first, second):
        if side.source.by_documents:
            raise ConfigError(
                f"--compare: {side.source.name} is a selection of {command('documents')}, which --compare does not "
                "support. Leave --compare out: the report on all of them has their intervals and P(best)."
            )
    if Path(first.source.name).resolve() == Path(second.source.name).resolve():
        if paired:
            raise ConfigError(
                "--paired is for two tables of scores: within one source, the splits are already matched. Leave it out."
            )
        if first.name == second.name:
            raise ConfigError(
                f"--compare: '{typed[0]}' and '{typed[1]}' are the same candidate. Name two different ones."
            )
        return first.source.restricted([first.name, second.name])
    return _joined(first, second, paired=paired)


def _side(text: str, source: Optional[Reading], options: TableOptions) -> _Side:
    if source is not None and text in source.history.candidates:
        return _Side(source, text, text)
    path, colon, name = text.rpartition(":")
    if colon and Path(path).exists() and not Path(text).exists():
        opened = read_source(Path(path), options, least_candidates=1)
        opened.check_name(name)
        return _Side(opened, name, text)
    if source is not None and not Path(text).exists():
        source.check_name(text)
    opened = read_source(Path(text), options, least_candidates=1)
    names = opened.history.candidates
    if len(names) > 1:
        raise ConfigError(
            f"--compare {text}: it has {len(names)} candidates: {', '.join(names)}. Say which with {text}:NAME."
        )
    return _Side(opened, names[0], text)


def _joined(first: _Side, second: _Side, *, paired: bool) -> Reading:
    metric = _common_metric(first, second)
    if first.source.scored != second.source.scored and first.source.is_selection and second.source.is_selection:
        scored = [f"{side.typed} has scores on the {side.source.scored} set" for side in (first, second)]
        raise ConfigError(f"--compare: {' and '.join(scored)}. Compare scores on the same kind of set.")
    names = [first.name, second.name] if first.name != second.name else [first.typed, second.typed]
    if names[0] == names[1]:
        raise ConfigError(f"--compare: '{names[0]}' is given twice. Name two candidates.")
    splits = _splits_of_second(first.source, second.source, paired=paired)
    one, two = _renamed(first, names[0], {}), _renamed(second, names[1], splits)
    history = History(tuple(names), one.evaluations + two.evaluations, failures=one.failures + two.failures)
    joined = replace(first.source, metric=metric, history=history)
    return replace(
        joined,
        name=f"{first.source.name} and {second.source.name}",
        decision=believed(joined.directed(history), joined.belief).decision,
        asked_confidence=None,
        is_selection=False,
        adaptive=first.source.adaptive or second.source.adaptive,
        notes=_notes(first.source, second.source),
        splits=first.source.splits if first.source.splits == second.source.splits else "",
        test_share=first.source.test_share if first.source.test_share == second.source.test_share else None,
        scored="validation" if "validation" in (first.source.scored, second.source.scored) else "test",
        running=first.source.running or second.source.running,
        num_parameters={
            name: side.source.num_parameters[side.name]
            for name, side in zip(names, (first, second), strict=True)
            if side.name in side.source.num_parameters
        },
        stored=None,
        parts=tuple((side.typed, side.source) for side in (first, second)),
    )


def _common_metric(first: _Side, second: _Side) -> Metric:
    """Return the metric of both. A table has no name of it, and may leave the direction to the other."""
    one, two = first.source.metric, second.source.metric
    if one == two or (two.name == METRIC and two.minimise <= one.minimise):
        return one
    if one.name == METRIC and one.minimise <= two.minimise:
        return two
    raise ConfigError(
        f"--compare: {first.typed} has scores of {one.text}, but {second.typed} has scores of {two.text}. Name two "
        "candidates with the same metric."
    )


def _notes(first: Reading, second: Reading) -> Tuple[str, ...]:
    if first.data and first.data == second.data:
        if first.on_official_splits == second.on_official_splits:
            return ()
        return (
            "One was scored on the official split and the other on random ones, so a difference may come from the "
            "splits.",
        )
    if first.data and second.data and first.data.startswith(OF_FILES) == second.data.startswith(OF_FILES):
        return ("The two were scored on different data, so a difference is not due to the models alone.",)
    return ("Whether the two were scored on the same data is not known.",)


def _splits_of_second(first: Reading, second: Reading, *, paired: bool) -> Mapping[int, int]:
    """Map the split seeds of the second source to those of the first."""
    theirs = sorted({evaluation.request.split_seed for evaluation in second.history.evaluations})
    if paired:
        if first.is_selection or second.is_selection:
            raise ConfigError("--paired is for two tables of scores: selections know their splits. Leave it out.")
        return _by_name(first, second)
    on_official = first.on_official_splits or second.on_official_splits
    if first.data and first.data == second.data and not on_official:
        return {}
    unused = 1 + max((evaluation.request.split_seed for evaluation in first.history.evaluations), default=0)
    return {split: unused + number for number, split in enumerate(theirs)}


def _by_name(first: Reading, second: Reading) -> Dict[int, int]:
    mine, theirs = (() if read.table is None else read.table.split_names for read in (first, second))
    numbers = {name: number for number, name in enumerate(mine)}
    if numbers.keys().isdisjoint(theirs):
        raise ConfigError(
            f"--paired: {first.name} and {second.name} have no split in common: their first splits are '{mine[0]}' "
            f"and '{theirs[0]}'. Give the same split the same name in both, or leave --paired out."
        )
    return {split: numbers.setdefault(name, len(numbers)) for split, name in enumerate(theirs)}


def _renamed(side: _Side, name: str, splits: Mapping[int, int]) -> History:
    def renamed(request: Request) -> Request:
        return replace(request, candidate=name, split_seed=splits.get(request.split_seed, request.split_seed))

    own = only(side.source.history, [side.name])
    return History(
        (name,),
        tuple(replace(evaluation, request=renamed(evaluation.request)) for evaluation in own.evaluations),
        failures=tuple(replace(failure, request=renamed(failure.request)) for failure in own.failures),
    )
