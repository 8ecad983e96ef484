"""A table of scores as the source of a report."""

from pathlib import Path
from typing import Any, Optional

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError, plainly
from fiesta_allennlp.records import Evaluation, History, Request
from fiesta_allennlp.replays.files import read_csv, read_json
from fiesta_allennlp.replays.sources import METRIC
from fiesta_allennlp.replays.table import ScoreTable
from fiesta_allennlp.reports.checklist import table_checklist
from fiesta_allennlp.reports.source import Source
from fiesta_allennlp.selection.settings import registered
from fiesta_allennlp.strategies.base import believed

SCORE_ENDINGS = (".json", ".csv")


def from_scores(
    path: Path, *, evaluations_per_split: Optional[int] = None, belief: Any = None, least_candidates: int = 2
) -> Source:
    """Everything that a report needs of a table of scores, as `fiesta-replay` reads them.

    # Parameters

    evaluations_per_split : so many consecutive scores of a JSON table share a split; 1 where it is None.
    belief : a registered name, or a config, of the belief to compute on all scores; `split_paired` where it is None.
    least_candidates : how many candidates the table has at least.

    # Raises

    `ConfigError` : where there is no such file or belief.
    `DataError` : where the content is wrong.
    """
    if path.suffix == ".csv" and evaluations_per_split is not None:
        raise ConfigError(
            f"--evaluations-per-split: {path} says itself which scores share a split. Leave the option out."
        )
    if path.suffix == ".csv":
        table = read_csv(path, least_candidates)
    else:
        table = read_json(path, evaluations_per_split or 1, least_candidates)
    params = registered(belief or "split_paired", "--belief")
    chosen = build_belief(params)
    history = _history(table)
    return Source(
        name=str(path),
        metric=METRIC,
        history=history,
        decision=believed(history, chosen).decision,
        belief=chosen,
        belief_name=params["type"],
        checklist=table_checklist(path, table),
        split_names=tuple(table.split_names),
    )


def build_belief(params: Any) -> Belief:
    """# Raises

    `ConfigError` : where its name or an entry is unknown.
    """
    try:
        return Belief.from_params(Params(dict(params)))
    except (ConfigurationError, TypeError) as error:
        raise ConfigError(f"--belief {params['type']}: {plainly(error)}") from error


def _history(table: ScoreTable) -> History:
    """All scores, the first ones of all candidates before the second ones. A split's number stands for its seed."""
    evaluations = [
        Evaluation(Request(name, replicate, int(split), 0, 0, 0), float(score), METRIC)
        for name, scores in table.scores.items()
        for replicate, (split, score) in enumerate(zip(table.splits[name], scores, strict=True))
    ]
    return History(tuple(table.scores), tuple(sorted(evaluations, key=lambda e: e.request.replicate)))
