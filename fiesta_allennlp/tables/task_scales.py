"""The scales of tasks: an average over tasks of very different noise is that of the noisiest one."""

import csv
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from fiesta_allennlp.choosing.beliefs.belief import Posterior
from fiesta_allennlp.choosing.beliefs.moderated_t import TaskAverage
from fiesta_allennlp.choosing.probability.batch import NUM_STARTS
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.texts import number_text
from fiesta_allennlp.tables.columns import RunRow
from fiesta_allennlp.tables.corrections import TableError
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


def refuse_unequal_scales(settings: Any, posterior: Optional[Posterior], tasks: Sequence[str]) -> None:
    """Refuse tasks whose run-to-run sds differ by more than `MAX_SD_RATIO` times, without `--scale`. Fewer runs than a
    selection begins with do not tell them."""
    if settings.scale is not None or not isinstance(posterior, TaskAverage):
        return
    if min(each.model.num_units.min() for each in posterior.posteriors) < NUM_STARTS:
        return
    sds = {task: each.noise_sd for task, each in zip(tasks, posterior.posteriors, strict=True) if each.noise_sd > 0}
    least, most = min(sds, key=sds.__getitem__, default=""), max(sds, key=sds.__getitem__, default="")
    if sds and sds[most] > MAX_SD_RATIO * sds[least]:
        error = TableError(
            f"the run-to-run sd of the task '{most}' is {number_text(sds[most])}, and that of '{least}' "
            f"{number_text(sds[least])}: the average would be that of '{most}'. Divide the scores by an sd of each "
            "task that you knew before these runs (--scale sd=FILE, with the columns task and sd), or average them as "
            "they are:",
            {"scale": UNSCALED},
        )
        raise error.with_commands(settings)
