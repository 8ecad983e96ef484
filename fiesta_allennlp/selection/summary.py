"""Facts about the runs of a selection, such as those that missed `--min-score`; numbers as texts; `evaluations.csv`."""

import csv
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.files import atomic_replacement, to_csv_cell
from fiesta_allennlp.core.records import Evaluation, Failure, History, Outcome
from fiesta_allennlp.core.registry import build_record
from fiesta_allennlp.probability.collapsed import collapsed_runs, robust_sds_below
from fiesta_allennlp.selection.metrics import Metric


def duration_text(seconds: float) -> str:
    """Format a duration in the two largest units of hours, minutes and seconds."""
    whole_seconds = round(seconds)
    hours, minutes = whole_seconds // 3600, whole_seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole_seconds % 60} s" if minutes else f"{seconds:.1f} s"


INTERVAL_LEVEL = 0.95
"""The probability of every interval in a result."""

MIN_NUM_SCORES = 3
"""With fewer scores or pairs, an interval or a rank correlation is meaningless."""

Interval = Tuple[float, float]
"""Lower and upper end."""


def compute_mean_interval(values: np.ndarray) -> Optional[Interval]:
    """Compute mean -+ t(.975; n - 1) s / sqrt(n) of values of shape `(n,)`, its 95% interval; None for fewer than 3."""
    if len(values) < MIN_NUM_SCORES:
        return None
    mean, standard_error = float(np.mean(values)), np.std(values, ddof=1) / np.sqrt(len(values))
    half_width = float(stdtrit(len(values) - 1, (1 + INTERVAL_LEVEL) / 2) * standard_error)
    return mean - half_width, mean + half_width


SplitScores = Tuple[Sequence[int], Sequence[float]]
"""Split seeds and scores of a candidate, equally long."""


def differences_on_shared_splits(first: SplitScores, second: SplitScores) -> np.ndarray:
    """Return the differences of mean scores on the splits that both candidates have, in the first one's order."""
    first_means, second_means = _means_by_split(first), _means_by_split(second)
    return np.array([first_means[seed] - second_means[seed] for seed in first_means if seed in second_means])


def _means_by_split(split_scores: SplitScores) -> Dict[int, float]:
    scores_by_split: Dict[int, List[float]] = {}
    for seed, score in zip(*split_scores, strict=True):
        scores_by_split.setdefault(seed, []).append(score)
    return {seed: float(np.mean(scores)) for seed, scores in scores_by_split.items()}


SEED_COLUMNS = ("split_seed", "random_seed", "numpy_seed", "pytorch_seed")
ORIGIN_COLUMNS = ("host", "gpu", "gpu_names", "job", "python", "versions")
CSV_COLUMNS = (
    *("candidate", "replicate", "status", "score", "metric", "seconds", *SEED_COLUMNS, "started_at"),
    *ORIGIN_COLUMNS,
    "error",
)


def find_collapsed_runs(history: History, *, minimise: bool) -> Tuple[Dict[str, Any], ...]:
    """Return the runs that lie far below (for a minimized metric, above) their candidate's others, by candidate.

    `sds` is the largest distance from the median in robust sds; `collapsed_runs` has the rule.
    """
    signed_history = history.negated if minimise else history
    entries: List[Dict[str, Any]] = []
    for name, runs in collapsed_runs(signed_history).items():
        scores = {run.request.name: -run.score if minimise else run.score for run in runs}
        sds = float(robust_sds_below(signed_history.scores(name)).max())
        entries.append({"candidate": name, "num_runs": history.num_finished(name), "scores": scores, "sds": sds})
    return tuple(entries)


def describe_collapsed_runs(entry: Mapping[str, Any], *, minimise: bool) -> str:
    """Describe an entry of `find_collapsed_runs`: its meaning for P(best), and what to do."""
    scores, side = entry["scores"], "above" if minimise else "below"
    verb = "lies" if len(scores) == 1 else "lie up to"
    scores_text = join_some([f"{run}: {score:.4g}" for run, score in scores.items()])
    return (
        f"{len(scores)} of {entry['num_runs']} runs of {entry['candidate']} {verb} {entry['sds']:.0f} robust sds "
        f"{side} the others ({scores_text}). P(best) of a mean cannot see collapsed runs that are rarer. Use "
        "--min-score to count them as failed, or report the share."
    )


def collapsed_notes(history: History, *, minimise: bool) -> Dict[str, str]:
    """Return the sentence about the collapsed runs of each candidate that has some."""
    collapsed = find_collapsed_runs(history, minimise=minimise)
    return {candidate["candidate"]: describe_collapsed_runs(candidate, minimise=minimise) for candidate in collapsed}


def failed_notes(history: History) -> List[str]:
    """Return a note for each candidate with scores that is dropped because of its failed runs."""
    return [
        f"{name} takes no part, although it has {count_text(len(history.evaluations_of(name)), 'score')}: "
        f"{history.num_counted_failures(name)} of its runs failed. If it was not at fault, add --max-failures N."
        for name in sorted(history.withdrawn)
        if history.evaluations_of(name)
    ]


def describe_scored_data(sets: Collection[str], *, is_official: bool, scored: str) -> str:
    """Describe what the runs of a selection are scored on. `sets` are empty if only the programs know."""
    if not sets:
        split_text = "Only seeds vary" if is_official else "Candidates split their data themselves, by the split seed"
        text = f"{split_text}; only the candidates know which data their scores are about."
    elif is_official:
        text = f"Runs are scored on the official {scored} set; only seeds vary."
    elif scored == "validation":
        text = "Runs are scored on the validation sets of random splits; no run sees the official test set."
    else:
        test_set_text = ", official test set included" if "test" in sets else ""
        text = f"Runs are scored on the test sets of random splits of all the data{test_set_text}."
    return f"{text} {VALIDATION_CAUTION}" if scored == "validation" else text


VALIDATION_CAUTION = (
    "A run may choose its epoch or settings on the validation set, so scores on unseen data tend to be worse."
)


@dataclass(frozen=True)
class Words:
    """The nouns of a result for its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"

    def evaluation_noun(self, count: int) -> str:
        return self.evaluation if count == 1 else self.evaluations


RUN_WORDS = Words()
DOCUMENT_WORDS = Words("system", "systems", "document", "documents", "answered documents")
BATCH_WORDS = Words("system", "systems", "batch", "batches", "answered batches")


def compare_on_shared_splits(history: History, best: Optional[str], sign: int = 1) -> Optional[Dict[str, Any]]:
    """Compare `best` on shared splits with its rival, the other active candidate of the best mean.

    The result has the rival, whether its mean over all its runs is better, the number of shared splits, and the mean
    difference on these. It is None if they share fewer than two splits, or if `best` is not ahead there.
    """
    means = {name: sign * history.scores(name).mean() for name in history.active if len(history.scores(name))}
    if best not in means or len(means) < 2:
        return None
    rival = max((name for name in means if name != best), key=means.__getitem__)
    split_scores = [(history.split_seeds(name), history.scores(name)) for name in (best, rival)]
    differences = differences_on_shared_splits(*split_scores)
    difference = sign * float(differences.mean()) if len(differences) > 1 else 0.0
    if difference <= 0:
        return None
    better = bool(means[rival] > means[best])
    return {"of": rival, "has_better_mean": better, "num_splits": len(differences), "difference": difference}


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write a file in one step, so that a reader never sees half a file. Records become plain data."""
    with atomic_replacement(path) as file:
        file.write_text(json.dumps(content, indent=2, allow_nan=False, default=asdict) + "\n", encoding="utf-8")


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write `evaluations.csv` from the rows of a store, one line for every outcome, in order of finishing."""
    metrics: List[Dict[str, Any]] = [json.loads(row.get("metrics") or "{}") for row in rows]
    names = sorted({name for run_metrics in metrics for name in run_metrics})
    with atomic_replacement(path) as file, file.open("w", encoding="utf-8", newline="") as csv_file:
        writer = csv.writer(csv_file, lineterminator="\n")
        writer.writerow([*CSV_COLUMNS, *(to_csv_cell(f"metric:{name}") for name in names)])
        for row, run_metrics in zip(rows, metrics, strict=True):
            origin = json.loads(row.get("origin") or "{}")
            versions = ", ".join(f"{package} {version}" for package, version in origin.get("versions", {}).items())
            values = {**row, **origin, "versions": versions}
            writer.writerow(
                [to_csv_cell(value) for value in (*map(values.get, CSV_COLUMNS), *map(run_metrics.get, names))]
            )


SMALL, LARGE, HUGE = 1e-4, 1e7, 1e12
"""A number below the first or above the second is shown with significant digits instead of decimals."""

MIN_DECIMALS = 4


def number_text(value: Optional[float], digits: int = MIN_DECIMALS, *, sign: str = "") -> str:
    """Format a number with as many decimals, or `-` if there is none. With `sign` `+`, a positive one has its sign. A
    small or huge number has significant digits instead, and a large one up to 12."""
    if value is None:
        return "-"
    if abs(value) >= LARGE:
        return f"{value:{sign}.{12 if abs(value) < HUGE else 4}g}"
    if not 0 < abs(value) < SMALL:
        return f"{value:{sign}.{digits}f}"
    num_digits = max(digits + math.floor(math.log10(abs(value))) + 1, min(digits, MIN_DECIMALS))
    return f"{value:{sign}.{num_digits}g}"


def interval_text(interval: Optional[Interval], digits: int = MIN_DECIMALS) -> str:
    return "-" if interval is None else " to ".join(number_text(end, digits) for end in interval)


def loss_text(best: Optional[str], expected_loss: Optional[float]) -> str:
    """Return what choosing the leader now costs, as in `choosing cnn now costs 0.0004 on average`; empty if unknown."""
    return "" if expected_loss is None else f"choosing {best} now costs {expected_loss:.2g} on average"


def probability_text(value: Optional[float]) -> str:
    """Format a probability with three decimals, but never as a rounded 0 or 1."""
    if value is None:
        return "-"
    return "> 0.999" if 0.9995 <= value < 1 else "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def count_text(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


@dataclass(frozen=True)
class ScoreThreshold:
    """The option `--min-score`, and whether lower scores are better. Without a score, every run works.

    A run with a worse score is a failure of the kind `score`. It is recorded with its score, and judged whenever a
    history is made of the record. A resumed selection can therefore set, change or drop the option.
    """

    score: Optional[float] = None
    minimise: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], score: Optional[float] = None) -> "ScoreThreshold":
        """Return that of the settings in a store, or this one instead."""
        minimise = Metric.parse(settings.get("metric") or "").minimise
        return build_record(cls, {"score": settings.get("min_score") if score is None else score, "minimise": minimise})

    def is_missed_by(self, score: float) -> bool:
        return self.score is not None and (score > self.score if self.minimise else score < self.score)

    def reason(self, metric: str, score: float) -> str:
        return f"{metric} {score:g} is {'above' if self.minimise else 'below'} --min-score {self.score:g}"

    def to_outcome(self, run: Evaluation) -> Outcome:
        """Return the run, or the failure that it is."""
        if not self.is_missed_by(run.score):
            return run
        failure = Failure(run.request, "score", self.reason(run.metric, run.score), run.seconds, run.started_at)
        return replace(failure, origin=run.origin)

    def apply_to(self, history: History) -> History:
        """Return the history with the runs that missed the score as failures."""
        outcomes = [self.to_outcome(run) for run in history.evaluations]
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        if not failures:
            return history
        evaluations = tuple(outcome for outcome in outcomes if isinstance(outcome, Evaluation))
        return replace(history, evaluations=evaluations, failures=(*history.failures, *failures))


NO_THRESHOLD = ScoreThreshold()
