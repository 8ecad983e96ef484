"""Which metric the candidates are compared by, and whether they all report it."""

from dataclasses import replace
from typing import Mapping, Optional

from rich.console import Console

from fiesta_allennlp.errors import ConfigError, all_in_one, did_you_mean
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.selection.metrics import Metric, check_sign
from fiesta_allennlp.trainings.config_checks import check_direction
from fiesta_allennlp.trainings.preparations import Preparation
from fiesta_allennlp.trainings.settings import DEFAULT_METRIC, Settings

LOSS = "loss"
"""The metric that AllenNLP's trainer reports for every model."""


def with_metric(
    settings: Settings,
    candidates: Mapping[str, Candidate],
    preparations: Mapping[str, Preparation],
    console: Console,
) -> Settings:
    """The settings with a metric that every candidate reports. Where none was given it is the default, or else the only
    one that all of them report; the console says so.

    Raises:
        ConfigError: with every candidate that does not report it, or where it has no direction.
    """
    if settings.metric is None:
        settings = replace(settings, metric=_metric_of(candidates, preparations, console))
    refusals = [_refusal(name, preparation, settings.scored_by) for name, preparation in preparations.items()]
    told = [refusal for refusal in refusals if refusal]
    if told:
        raise ConfigError(all_in_one(told, what="candidates are wrong"))
    return settings


def _metric_of(candidates: Mapping[str, Candidate], preparations: Mapping[str, Preparation], console: Console) -> str:
    reported = [preparation.metrics for preparation in preparations.values() if preparation.metrics is not None]
    if len(reported) < len(preparations):
        raise ConfigError(
            "--metric is missing. What a program reports is not known before its first run, so name the metric: "
            "--metric NAME, or --metric=-NAME where less is better."
        )
    shared = frozenset.intersection(*reported)
    if DEFAULT_METRIC in shared or len(shared) != 1:
        return DEFAULT_METRIC
    (found,) = shared
    check_sign(found)
    for candidate in candidates.values():
        check_direction(dict(candidate.config), Metric(found))
    console.print(f"Comparing by {found}, the only metric that all candidates report.", markup=False, highlight=False)
    return found


def _refusal(name: str, preparation: Preparation, metric: Metric) -> Optional[str]:
    """The refusal of a model that does not report the metric, with what it reports; None where it does, or that is
    not known. The trainer reports the loss of every model."""
    if preparation.metrics is None:
        return None
    reported = sorted(preparation.metrics | {LOSS})
    if metric.name in reported:
        return None
    return (
        f"candidate '{name}': its model does not report the metric '{metric.name}'. It reports: "
        f"{', '.join(reported)}.{did_you_mean(metric.name, reported)} Choose one of these with --metric NAME, or with "
        "--metric=-NAME where less is better."
    )
