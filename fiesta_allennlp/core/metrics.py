"""The name and the direction of a metric, and the scores that can be compared."""

import math
import re
from dataclasses import dataclass
from statistics import median
from typing import Any, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.core.files import shorten

METRIC = "macro_f1"
"""The default of `--metric`."""

ERROR_PATTERN = re.compile(
    r"(?<!\S)(?:train|valid|validation|val|eval|test|dev|avg|mean|m)?(neg(?:ative)? log likelihood|nlls?|distance|kl|"
    r"nmse|rmsd|ce|aic|bic|(?:min)?dcf|incorrect|misclassified|"
    r"loss(?:es)?|logloss|bce|perplexity|ppl|bp[bcd]|"
    r"bits per \w+|errors?|err|mae|mape|smape|wape|mase|mse|msle|rmse|rmsle|nrmse|rmspe|medae|wer|cer|ter|hter|eer|der|"
    "ece|brier|cross ?entropy|xent|deviance|crps|misclassification|regret|latency|(?:run)?time|seconds|duration|fid|"
    r"fvd|lpips|mpjpe|fpr|fnr|hausdorff|divergence)(?!\S)"
)
"""Matches words in the names of metrics for which lower is better."""

WORD_BOUNDARY = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""The ends of the words in a name, also in camel case."""


@dataclass(frozen=True)
class Metric:
    """A metric as AllenNLP's `validation_metric` writes it: `-NAME` is minimised, `NAME` and `+NAME` are maximised.

    Scores keep their natural sign wherever they are kept and shown. Only `History.scores` negates them, for strategies
    and beliefs.
    """

    name: str
    minimise: bool = False

    @classmethod
    def parse(cls, text: str) -> "Metric":
        return cls(text[1:] if text[:1] in ("-", "+") else text, minimise=text.startswith("-"))

    @property
    def option_text(self) -> str:
        """The metric as `--metric` and `selection.json` write it."""
        sign = "-" if self.minimise else "+" if error_word(self.name) else ""
        return f"{sign}{self.name}"

    @property
    def display_name(self) -> str:
        """The metric as tables and sentences write it."""
        return f"{self.name} (lower is better)" if self.minimise else self.name

    @property
    def sign(self) -> int:
        """The factor that makes higher scores better."""
        return -1 if self.minimise else 1


def error_word(name: str) -> Optional[str]:
    """Return the part of a metric's name that names an error or a loss, as in `val_loss` and `mean_absolute_error`.
    None if there is none, for a name with a sign, and for a negated error such as scikit-learn's `neg_log_loss`."""
    words = " ".join(word.lower().rstrip("0123456789") for word in WORD_BOUNDARY.split(name))
    is_negated = re.search(r"\bneg\b(?! log likelihood)", words) is not None
    match = None if name[:1] in ("-", "+") or is_negated else ERROR_PATTERN.search(words)
    return match and match[1]


def check_metric_sign(name: str) -> None:
    """Refuse the name of an error or a loss without a sign, because its highest mean would win. `+NAME` maximises such
    a metric anyway."""
    error = error_word(name)
    if error:
        raise ConfigError(
            f"--metric {name}: a metric with '{error}' in its name is usually minimized, but without a sign the "
            f"highest mean wins. Use --metric=-{name} to minimize it, or --metric=+{name} to maximize it."
        )


def checked_score(score: float, name: str) -> float:
    """Return a comparable score. Raise a `FiestaError` that begins with `name` if it is not finite, or above
    `MAX_SCORE`."""
    if not isinstance(score, int) and not math.isfinite(score):
        raise FiestaError(f"{name} = {score}, which is not a finite number.")
    if abs(score) > MAX_SCORE:  # an integer may be too large for a float
        raise FiestaError(f"{name} = {shorten(score)}, which is larger than {MAX_SCORE:g}: the run has diverged.")
    return float(score)


MAX_SCORE = 1e100
"""Squares of scores up to this size do not overflow."""

MIN_UNIT_RATIO, MAX_UNIT_RATIO = 30.0, 300.0
"""The medians of percents and of fractions of one metric are about 100 times apart."""


def have_two_units(scores: Sequence[float]) -> bool:
    """Return whether some scores look like fractions, and all others like percents. Scores from -1 to 0, as of
    runs that collapsed, are in either unit."""
    fractions, percents = [score for score in scores if 0 < score <= 1], [score for score in scores if score > 1]
    if not fractions or not percents or max(percents) > 100 or min(scores) < -1:
        return False
    return MIN_UNIT_RATIO <= median(percents) / median(fractions) <= MAX_UNIT_RATIO


def find_longer_names(metric: str, values: Mapping[str, Any]) -> Tuple[str, ...]:
    """Return the values, as `NAME = VALUE`, whose names end with that of the metric. The metric is the one of exactly
    this name, but in `accuracy` beside `test_accuracy`, the first may be of the training set."""
    return tuple(f"{name} = {value}" for name, value in values.items() if name.endswith(f"_{metric}"))


COUNT_PREFIX, UNKNOWN_PREFIX = "count:", "unknown:"
"""The prefixes of metrics that count right and wrong answers, and those that are no gold label."""

UNNAMED = Metric("score")
"""The metric of scores whose table or preset does not name it."""
