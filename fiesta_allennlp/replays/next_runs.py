"""Names the next runs of a selection whose runs you make yourself, from their table of scores alone."""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Decision, Evaluation, Failure, History, Remaining, Request
from fiesta_allennlp.replays.rows import FAILED, Row, Rows, is_minimised, read_rows, rows_of, text_in
from fiesta_allennlp.replays.settings import NextSettings, done_note
from fiesta_allennlp.replays.sources import METRIC
from fiesta_allennlp.seeding import strategy_rng
from fiesta_allennlp.selection.least_score import LeastScore
from fiesta_allennlp.selection.settings import OFFICIAL, SHARED
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.selection.summary import collapsed_notes


@dataclass(frozen=True)
class NextRun:
    """A run to make. `split` is empty on official splits. No row of the table has the same names."""

    candidate: str
    split: str
    seed: str


@dataclass(frozen=True)
class NextRuns:
    """The answer to a table of scores.

    Attributes:
        decision: the strategy's conclusion; `stopped_by` is None while runs are needed.
        runs: the runs to make now; empty once the selection has stopped, or while it waits for pending ones.
        history: the finished, pending and failed runs of the table.
        remaining: an estimate of the number of further runs, where there is one.
        confidence: the target confidence; None with a budget.
        splits: how runs come by their splits.
        workers: how many runs were asked for.
        notes: sentences about what the splits and seeds of the table mean, and about runs far from the others.
        minimise: whether lower scores are better.
    """

    decision: Decision
    runs: Tuple[NextRun, ...]
    history: History
    remaining: Optional[Remaining]
    confidence: Optional[float]
    splits: str
    workers: int = 1
    notes: Tuple[str, ...] = ()
    minimise: bool = False


def next_runs(settings: NextSettings, rows: Optional[Sequence[Mapping[str, Any]]] = None) -> NextRuns:
    """Ask the strategy, the model of the scores and the stopping rule of a selection about a table of scores.

    Args:
        rows: the rows of the table, instead of the file that `settings.scores` names. Each is a mapping from the names
            of columns; a score of None is a run that has not finished.

    Raises:
        ConfigError: where a setting is invalid, or there are fewer than two candidates.
        DataError: where the table is wrong, with the line and the value.
    """
    path = Path(settings.scores or "rows")
    if rows is None:
        table = read_rows(path, settings.columns, is_official=settings.on_official_splits)
    else:
        split = (settings.columns or {}).get("split", "split")
        has_any = not rows or any(text_in(cells, split) for cells in rows)
        given = ((f"row {number}", cells) for number, cells in enumerate(rows, start=1))
        table = rows_of(given, settings.columns, has_splits=has_any and not settings.on_official_splits)
    settings = replace(settings, splits=settings.splits or (SHARED if table.has_splits else OFFICIAL))
    return _answer(settings, table, path)


def _answer(settings: NextSettings, table: Rows, path: Path) -> NextRuns:
    rows = table.rows
    names = tuple(dict.fromkeys([*(row.candidate for row in rows), *settings.candidates]))
    if len(names) < 2:
        raise ConfigError(
            f"{path}: a selection needs at least 2 candidates but got {len(names)}: {', '.join(names) or 'none'}. Use "
            "--candidates to add candidates that have no row yet."
        )
    minimise = settings.minimise or is_minimised([row for row in rows if row.metric])
    strategy = build_strategy(settings, list(names), minimise=minimise)
    history = (
        LeastScore(settings.min_score, minimise)
        .applied(history_of(rows, names))
        .withdrawing(max_failures=settings.max_failures)
    )
    strategy.without_further_runs(settings.done, history)
    decision = replace(strategy.recommend(history), expected_loss=strategy.expected_loss(history))
    margin = strategy.fix_margin(history)
    notes = [*table.notes, *done_note(settings.done)]
    if margin is not None:
        notes.append(
            f"The margin is {margin.replace('=', ' = ')}, from the first runs. Pass --margin {margin} to keep it when "
            "candidates join."
        )
    proposed = strategy.propose(history, settings.workers, strategy_rng(settings.seed, len(rows)))
    return NextRuns(
        decision=decision,
        runs=tuple(_named(proposed, table, splits=settings.splits or SHARED)),
        history=history,
        remaining=strategy.remaining(history, strategy_rng(settings.seed, len(history.evaluations))),
        confidence=settings.deciding()["confidence"],
        splits=settings.splits or SHARED,
        workers=settings.workers,
        notes=(*notes, *collapsed_notes(history, minimise=minimise)),
        minimise=minimise,
    )


def history_of(rows: Sequence[Row], candidates: Sequence[str]) -> History:
    """Return the history that the rows of a table tell, in their order."""
    numbers: Dict[str, int] = {}
    made: Dict[str, int] = defaultdict(int)
    evaluations: List[Evaluation] = []
    pending: List[Request] = []
    failures: List[Failure] = []
    for row in rows:
        split = numbers.setdefault(row.split, len(numbers))
        request = Request(row.candidate, made[row.candidate], split, random_seed=0, numpy_seed=0, pytorch_seed=0)
        made[row.candidate] += 1
        if not row.score:
            pending.append(request)
        elif row.score == FAILED:
            failures.append(Failure(request, "error", row.where))
        else:
            evaluations.append(Evaluation(request, row.number, METRIC))
    return History(tuple(candidates), tuple(evaluations), tuple(pending), tuple(failures))


def _named(proposed: Sequence[str], table: Rows, *, splits: str) -> Iterator[NextRun]:
    """Assign each proposed run a split and a seed that its candidate has not had. Splits start at 0, but seeds at 1, so
    that nobody mistakes one for the other."""
    order = list(dict.fromkeys(row.split for row in table.rows))
    had: Mapping[str, Set[str]] = defaultdict(set)
    seeds: Mapping[str, Set[str]] = defaultdict(set)
    for row in table.rows:
        had[row.candidate].add(row.split)
        seeds[row.candidate].add(row.seed)
    for name in proposed:
        split = ""
        if splits != OFFICIAL:
            left = [known for known in order if known not in had[name]] if splits == SHARED else []
            split = left[0] if left else _fresh(order)
            if not left:
                order.append(split)
            had[name].add(split)
        seed = split if table.splits_are_seeds else _fresh(seeds[name], least=0 if splits == OFFICIAL else 1)
        seeds[name].add(seed)
        yield NextRun(name, split, seed)


def _fresh(taken: "Sequence[str] | Set[str]", *, least: int = 0) -> str:
    return next(str(number) for number in range(least, least + len(taken) + 1) if str(number) not in taken)
