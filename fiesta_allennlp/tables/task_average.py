"""The tasks of a table, over which candidates are averaged: what they need, their scales, and where a run goes."""

import csv
from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy as np

from fiesta_allennlp.choosing.beliefs.moderated_t import ModeratedT
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.batch import NUM_STARTS
from fiesta_allennlp.choosing.probability.task_leads import choose_task
from fiesta_allennlp.choosing.strategy import Strategy, have_units
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.texts import number_text
from fiesta_allennlp.tables.columns import Roles
from fiesta_allennlp.tables.corrections import TableError
from fiesta_allennlp.tables.run_table import RunRow, group_rows
from fiesta_allennlp.tables.table_files import cell_number

MAX_SD_RATIO = 4.0
"""The largest ratio of the run-to-run sds of two tasks at which their scores are averaged as they are."""

UNSCALED, SD_FILE = "none", "sd="
"""The values of `--scale`: the scores as they are, or divided by the sds in a file."""


def scale_rows(rows: Sequence[RunRow], settings: Any) -> List[RunRow]:
    """Return the rows with scores divided by the sd of their task, if `--scale sd=FILE` says so.

    Raises:
        ConfigError: if the file is missing or wrong, or lacks a task.
    """
    scale = settings.scale
    if scale in (None, UNSCALED):
        return list(rows)
    if not scale.startswith(SD_FILE):
        raise ConfigError(f"--scale must be {UNSCALED} or {SD_FILE}FILE but got '{scale}'.")
    path = Path(scale[len(SD_FILE) :])
    sds = _read_sds(path)
    missing = dict.fromkeys(row.task for row in rows if row.task not in sds)
    if missing:
        raise ConfigError(f"--scale {scale}: {path} has no sd of the task {join_some(list(missing))}.")
    return [
        row._replace(outcome=row.outcome / sds[row.task]) if isinstance(row.outcome, float) else row for row in rows
    ]


def _read_sds(path: Path) -> Dict[str, float]:
    """Read a CSV file with the columns task and sd."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise ConfigError(f"--scale: cannot read {path}: {error.strerror}.") from error
    sds = {str(row.get("task")): cell_number(row.get("sd") or "") or 0.0 for row in rows}
    if not sds or min(sds.values()) <= 0:
        raise ConfigError(f"--scale: {path} must have the columns task and sd, with an sd above 0 in each row.")
    return sds


def refuse_missing_tasks(rows: Sequence[RunRow], roles: Roles, awaited: Any) -> None:
    """Refuse a candidate without a run on a task of another one, unless it is one of `--candidates`: `fiesta next`
    proposes its runs."""
    awaits = isinstance(awaited, tuple)
    tasks = list(dict.fromkeys(row.task for row in rows))
    by_candidate = {name: {row.task for row in own} for name, own in group_rows(rows, "candidate").items()}
    complete = [name for name, own in by_candidate.items() if len(own) == len(tasks) or (awaits and name in awaited)]
    lacking = tuple(name for name in by_candidate if name not in complete)
    if lacking:
        missing = next(task for task in tasks if task not in by_candidate[lacking[0]])
        raise TableError(
            f"{rows[0].record.file}: candidate '{lacking[0]}' has no run on the task '{missing}'. Candidates are "
            "compared by their average over all tasks. Make these runs, or leave out tasks or candidates.",
            roles.keep("task", [task for task in tasks if all(task in own for own in by_candidate.values())]),
            roles.keep("candidate", complete),
            {"candidates": lacking} if awaits else {},
        )


def check_tasks(settings: Any, strategy: Strategy, history: History) -> None:
    """Check that a strategy can compare candidates by their average over the tasks of a history.

    Raises:
        ConfigError: if its belief or its stopping rule is not about leads, or it has a budget.
        DataError: without `--scale`, if the run-to-run sds of two tasks differ by more than `MAX_SD_RATIO` times. Fewer
            runs than a selection begins with do not tell them.
    """
    if not history.tasks:
        return
    has_rules = isinstance(strategy, FixedConfidence) and strategy.rules(1, 1) is not None
    if not has_rules or type(strategy.belief) is not ModeratedT:
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


def choose_tasks(history: History, decision: Decision, names: Sequence[str], *, num_starts: int) -> List[str]:
    """Return the task of each of these runs: the one with the fewest units of a candidate until it has `num_starts` on
    each, and then the one on which a unit makes the variance of its lead fall most; see `task_leads.choose_task`."""
    tasks, places, posterior = list(history.by_task), [history.active.index(name) for name in names], decision.posterior
    units = np.array([[p.num_started_units(name) for p in history.by_task.values()] for name in history.active], float)
    chosen: List[str] = []
    for place in places:
        task = int(units[place].argmin())
        if posterior is not None and units[place].min() >= num_starts:
            leads = posterior.leads
            other = posterior.leader if place != posterior.leader else history.active.index(str(decision.rival))
            rival = other if place == posterior.leader else place
            task = int(choose_task(leads.task_variances[None, :, 0, rival], units[[place]], units[[other]])[0])
        units[place, task] += 1
        chosen.append(tasks[task])
    return chosen
