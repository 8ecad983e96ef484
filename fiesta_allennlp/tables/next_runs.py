"""Names the next runs of a selection whose runs you make yourself, from their table of scores alone."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.choosing.beliefs.student_t import ModeratedT
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.forecast import Forecast, forecast_selection
from fiesta_allennlp.choosing.probability.batch import NUM_STARTS
from fiesta_allennlp.choosing.sampling_rules import Gate, choose_tasks
from fiesta_allennlp.choosing.strategy import Decision, Strategy, build_strategy, have_units
from fiesta_allennlp.core.choice_settings import CONFIDENCE, OFFICIAL, SHARED
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.seeding import strategy_rng
from fiesta_allennlp.core.texts import number_text
from fiesta_allennlp.selecting.recovery import ScoreThreshold
from fiesta_allennlp.selecting.results.candidate_table import Printable
from fiesta_allennlp.selecting.results.result import Result, Verdict
from fiesta_allennlp.selecting.results.verdict import failed_notes, judge, with_preference
from fiesta_allennlp.tables.corrections import TableError
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.table_files import Content
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import UNSCALED, NextSettings, done_note

MAX_SD_RATIO = 4.0
"""The largest ratio of the run-to-run sds of two tasks at which their scores are averaged as they are."""

FRESH_SEEDS = (10**5, 10**6)
"""The range of the first seed to propose where those of the rows are unknown."""


@dataclass(frozen=True)
class NextRun:
    """A run to make. `split` is empty on official splits, and `task` unless candidates are compared by their average
    over several. No row of the table has the same names."""

    candidate: str
    split: str
    seed: str
    task: str = ""


@dataclass(frozen=True, repr=False)
class NextRuns(Printable):
    """The answer to a table of scores.

    Attributes:
        decision: the strategy's conclusion; `stopped_by` is None while runs are needed.
        result: the same with the numbers of every candidate and the facts. Its forecast includes the runs to make now.
        runs: the runs to make now; empty once the selection has stopped, or while it waits for pending ones.
        history: the finished, pending and failed runs of the table.
        confidence: the target confidence; None with a budget.
        workers: how many runs were asked for.
        notes: sentences about candidates that take no part, or get no further runs.
        table: the runs of the table, and what was understood of it.
        num_missing: the number of runs that each candidate lacks before P(best) is available.
    """

    decision: Decision
    result: Result
    runs: Tuple[NextRun, ...]
    history: History
    confidence: Optional[float]
    table: RunTable
    workers: int = 1
    notes: Tuple[str, ...] = ()
    num_missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def forecast(self) -> Optional[Forecast]:
        """The number of further runs, pending and named ones included, where there is one."""
        return self.result.forecast

    @property
    def verdict(self) -> Verdict:
        """The verdict of `result`."""
        return self.result.verdict

    @property
    def metric(self) -> Metric:
        """The metric of the scores, with its direction."""
        return self.table.metric


def next_runs(settings: NextSettings, content: Content = None) -> NextRuns:
    """Ask the strategy, the model of the scores and the stopping rule of a selection about a table of scores.

    Args:
        content: the table, instead of the files that `settings` name: rows as mappings from the names of columns, a
            data frame, or a mapping from candidates to lists of scores. A score of None is a run that has not finished.

    Raises:
        ConfigError: where a setting is invalid, or there are fewer than two candidates.
        DataError: where the table is wrong, with the line and the value.
    """
    table = read_run_table(Path(settings.scores or "rows"), settings, content)
    table = replace(table, runs={**dict.fromkeys((*table.runs, *settings.candidates), 0), **table.runs})
    settings = replace(settings, splits=settings.splits or (SHARED if table.has_splits else OFFICIAL))
    history = ScoreThreshold(settings.min_score, table.metric.minimise).apply_to(table.history())
    history = history.with_withdrawn(max_failures=settings.max_failures)
    strategy = _prepare_strategy(settings, table, history)
    decision = strategy.recommend(history)
    seconds_per_run = (settings.seconds or history.mean_seconds or 0.0) / settings.workers
    proposed_names = strategy.propose(history, settings.workers, strategy_rng(settings.seed, len(table.rows)))
    tasks = choose_tasks(history, decision, proposed_names, num_starts=strategy.num_starts)
    parts, least = history.by_task.values(), strategy.belief.min_evaluations
    num_missing = {name: sum(max(0, least - part.num_finished(name)) for part in parts) for name in history.active}
    forecast = forecast_selection(strategy, history, decision, strategy_rng(settings.seed, len(history.evaluations)))
    if forecast is not None:
        num_begun = len(proposed_names) + len(history.pending)
        forecast = replace(forecast.at_least(num_begun), seconds_per_run=seconds_per_run)
    result = Result.from_decision(
        history,
        judge(history, decision, strategy, allowed=settings.allow),
        table.metric,
        splits=settings.splits or "",
        target=strategy.confidence or CONFIDENCE,
        forecast=forecast,
    )
    result = with_preference(result, settings.prefer, table.costs(settings.prefer or ""))
    return NextRuns(
        decision=decision,
        result=result,
        runs=tuple(_assign_splits_and_seeds(proposed_names, tasks, table, settings)),
        history=history,
        confidence=strategy.confidence,
        table=table,
        workers=settings.workers,
        notes=(*done_note(settings.done), *failed_notes(history)),
        num_missing={name: number for name, number in num_missing.items() if number},
    )


def _prepare_strategy(settings: NextSettings, table: RunTable, history: History) -> Strategy:
    """Return the strategy that the settings name, checked for the candidates and the runs of the table."""
    names = table.candidates
    if len(names) < 2:
        raise ConfigError(
            f"{table.name}: a selection needs at least 2 candidates but got {len(names)}: "
            f"{join_some(names) or 'none'}. Use --candidates to add candidates that have no row yet."
        )
    strategy = build_strategy(settings, list(names), minimise=table.metric.minimise)
    if isinstance(strategy, FixedConfidence) and strategy.max_evaluations is None and table.is_complete:
        limit = strategy.limit_of(history)
        if history.total_started >= limit:  # as in a table of items: the default limit counts from these runs
            strategy.max_evaluations = history.total_started + limit
    check_tasks(settings, strategy, history)
    if settings.against is not None:
        strategy = Gate(strategy, names, against=settings.against, max_drop=settings.max_drop)
    elif settings.max_drop is not None:
        raise ConfigError("--max-drop needs --against, the baseline that it is a drop from.")
    strategy.without_further_runs(settings.done, history)
    return strategy


def check_tasks(settings: Any, strategy: Strategy, history: History) -> None:
    """Check that a strategy can compare candidates by their average over the tasks of a history.

    Raises:
        ConfigError: if its belief or its stopping rule is not about leads, or it has a budget.
        DataError: without `--scale`, if the run-to-run sds of two tasks differ by more than `MAX_SD_RATIO` times. Fewer
            runs than a selection begins with do not tell them.
    """
    if not history.tasks:
        return
    if not (isinstance(strategy, FixedConfidence) and strategy.rules(1, 1)) or type(strategy.belief) is not ModeratedT:
        raise ConfigError(
            f"{len(history.by_task)} tasks need the default posterior, sampling rule and stopping rule. Remove "
            "--strategy, --belief, --stop, --budget and --preset, or keep one task with --where."
        )
    if settings.scale is not None or len(history.active) < 2 or not have_units(history, history.active, NUM_STARTS):
        return
    sds = sorted((strategy.belief.posterior(part).noise_sd, task) for task, part in history.by_task.items())
    (low, least), (high, most) = next((pair for pair in sds if pair[0] > 0), sds[-1]), sds[-1]
    if high > MAX_SD_RATIO * low:
        error = TableError(
            f"the run-to-run sd of the task '{most}' is {number_text(high)}, and that of '{least}' "
            f"{number_text(low)}: the average would be that of '{most}'. Divide the scores by an sd of each "
            "task that you knew before these runs (--scale sd=FILE, with the columns task and sd), or average them as "
            "they are:",
            {"scale": UNSCALED},
        )
        raise error.with_commands(settings)


def _assign_splits_and_seeds(
    candidate_names: Sequence[str], tasks: Sequence[str], table: RunTable, settings: NextSettings
) -> Iterator[NextRun]:
    """Assign each proposed run a split that its candidate has not had on the task, and a seed that no run has had: the
    next number, or a fresh number where the seeds of the rows are unknown. Splits start at 0, but seeds at 1, so that
    nobody mistakes one for the other."""
    rows = table.rows if len(table.tasks) > 1 else [row._replace(task="") for row in table.rows]
    used = {row[:3] for row in rows}
    splits_of_tasks: Dict[str, Dict[str, None]] = defaultdict(dict)  # in the order of the rows
    for row in rows:
        splits_of_tasks[row.task][row.split] = None
    next_seed = max((int(row.seed) for row in rows if row.seed.isdecimal()), default=0) + 1
    if rows and not table.knows_seeds:
        next_seed = int(strategy_rng(settings.seed, len(rows)).integers(*FRESH_SEEDS))
    for name, task in zip(candidate_names, tasks, strict=True):
        split, splits = "", splits_of_tasks[task]
        if settings.splits != OFFICIAL:
            unused = [own for own in splits if (name, task, own) not in used] if settings.splits == SHARED else []
            split = unused[0] if unused else next(str(number) for number in count() if str(number) not in splits)
            splits[split] = None
            used.add((name, task, split))
        seed, next_seed = (split, next_seed) if table.are_splits_seeds else (str(next_seed), next_seed + 1)
        yield NextRun(name, split, seed, task)
