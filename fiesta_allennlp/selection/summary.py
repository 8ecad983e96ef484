"""The result of a selection: `selection.json` and `evaluations.csv`."""

import csv
import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.files import replacing, to_csv
from fiesta_allennlp.core.records import CredibleMargin, Decision, History
from fiesta_allennlp.probability.collapsed import collapsed_runs, sds_below
from fiesta_allennlp.selection.metrics import Metric

REMOVED = "you removed it with --allow-removed; its runs are kept but do not count"


SMALLEST_SHARE = 1e-6
"""The smallest margin to suggest, as a share of the range of all scores."""


@dataclass(frozen=True)
class CandidateSummary:
    """A candidate in numbers: an entry of `candidates` in `selection.json`, field for field.

    A number that does not exist, such as the sd of one score, is None. `sd` has ddof 1. `prob_best` and
    `prob_within_margin` come from the posterior. `failures` is the number of failures, and `failure_reasons` has one
    entry for each. `num_missed` of them are runs whose score missed `--min-score`. `removed` means that you removed
    it. `seconds` is the sum over the candidate's runs, `mean_seconds` their mean.
    """

    name: str
    num_evaluations: int = 0
    mean: Optional[float] = None
    sd: Optional[float] = None
    prob_best: Optional[float] = None
    prob_within_margin: Optional[float] = None
    failures: int = 0
    failure_reasons: Tuple[str, ...] = ()
    withdrawn: bool = False
    withdrawn_because: Optional[str] = None
    removed: bool = False
    seconds: float = 0.0
    mean_seconds: Optional[float] = None
    num_missed: int = 0

    @property
    def missed_text(self) -> str:
        """The runs that missed `--min-score`, as in `1 of 20 (5%)`; empty if none did."""
        total = self.num_missed + self.num_evaluations
        return f"{self.num_missed} of {total} ({self.num_missed / total:.0%})" if self.num_missed else ""

    @property
    def failures_text(self) -> str:
        """The number of failures, with the share of runs that missed `--min-score`; empty for 0."""
        if self.failures == self.num_missed:
            return self.missed_text
        return f"{self.failures}, {self.missed_text}" if self.num_missed else str(self.failures)

    @property
    def out(self) -> str:
        """The reason why a candidate is out: `failed` too often, or `removed` by you. Empty for an active candidate."""
        if not self.withdrawn:
            return ""
        is_removed = self.removed or "--allow-removed" in (self.withdrawn_because or "")  # before there was a flag
        return "removed" if is_removed else "failed"

    @property
    def standing(self) -> str:
        """P(best) as text, or `failed` or `removed`."""
        return self.out or probability_text(self.prob_best)


def seconds_of_equal_allocation(candidates: Sequence[CandidateSummary], best: Optional[str]) -> Optional[float]:
    """Return the cost of evaluating every candidate as often as the leading one: n_best sum_i s_i, where s_i is the
    mean seconds of a run of candidate i. Candidates without a run are excluded. Return None if nobody leads."""
    num_evaluations = {candidate.name: candidate.num_evaluations for candidate in candidates}
    if best is None or not num_evaluations[best]:
        return None
    return float(num_evaluations[best] * sum(candidate.mean_seconds or 0.0 for candidate in candidates))


def duration_text(seconds: float) -> str:
    """Format a duration in the two largest units of hours, minutes and seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{seconds:.1f} s"


OnSplits = Tuple[Sequence[int], Sequence[float]]
"""Split seeds and scores of a candidate, equally long."""


def differences_on_shared_splits(first: OnSplits, second: OnSplits) -> np.ndarray:
    """Return the differences of mean scores on the splits that both candidates have, in the first one's order."""
    mine, theirs = _means_by_split(first), _means_by_split(second)
    return np.array([mine[seed] - theirs[seed] for seed in mine if seed in theirs])


def _means_by_split(scored: OnSplits) -> Dict[int, float]:
    by_split: Dict[int, List[float]] = {}
    for seed, score in zip(*scored, strict=True):
        by_split.setdefault(seed, []).append(score)
    return {seed: float(np.mean(scores)) for seed, scores in by_split.items()}


SEEDS = ("split_seed", "random_seed", "numpy_seed", "pytorch_seed")
CSV_COLUMNS = ("candidate", "replicate", "status", "score", "metric", "seconds", *SEEDS, "started_at", "error")


def summarise(history: History, decision: Decision, settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the content of `selection.json`, with a record for each candidate. `settings` are copied into it."""
    candidates = [summarise_candidate(history, decision, name) for name in history.candidates]
    return {
        "best": decision.best,
        "confidence": decision.confidence,
        "margin": decision.margin,
        "lacking": dict(Counter(decision.lacking)),
        "credible_margin": _margin(history, decision.credible_margin),
        "expected_loss": decision.expected_loss,
        "stopped_by": decision.stopped_by,
        "is_decided": decision.stopped_by == "confidence",
        "plain_loop": None if decision.plain_loop is None else asdict(decision.plain_loop),
        "num_evaluations": len(history.evaluations),
        "num_failures": len(history.failures),
        **settings,
        "ahead_on_shared_splits": ahead_on_shared_splits(history, decision.best, Metric.of(settings["metric"]).sign),
        "collapsed": collapsed_in(history, minimise=Metric.of(settings["metric"]).minimise),
        "seconds": sum(candidate.seconds for candidate in candidates),
        "seconds_of_equal_allocation": seconds_of_equal_allocation(candidates, decision.best),
        "candidates": candidates,
    }


def _margin(history: History, found: Optional[CredibleMargin]) -> Optional[Dict[str, Any]]:
    """Return the margin that would have decided; None if it is as large as the range of all scores, so that any
    candidate would do, or far below the differences between them."""
    scores = [evaluation.score for evaluation in history.evaluations]
    extent = float(np.ptp(scores)) if scores else 0.0
    is_meant = found is not None and SMALLEST_SHARE * extent <= found.margin < extent
    return asdict(found) if found is not None and is_meant else None


def summarise_candidate(history: History, decision: Decision, name: str) -> CandidateSummary:
    seconds = [e.seconds for e in history.evaluations_of(name)]
    scores = history.scores(name)
    failed = [f for f in history.failures if f.request.candidate == name]
    reasons = [f"{f.request.name} {f.kind}: {f.error}" for f in failed]
    return CandidateSummary(
        name=name,
        num_evaluations=len(scores),
        mean=float(np.mean(scores)) if len(scores) else None,
        sd=float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        prob_best=decision.prob_best.get(name),
        prob_within_margin=decision.prob_within_margin.get(name),
        failures=len(reasons),
        failure_reasons=tuple(reasons),
        withdrawn=name in history.withdrawn,
        withdrawn_because=_why_withdrawn(history, name),
        removed=name in history.removed,
        seconds=sum(seconds),
        mean_seconds=sum(seconds) / len(seconds) if seconds else None,
        num_missed=sum(f.kind == "score" for f in failed),
    )


def collapsed_in(history: History, *, minimise: bool) -> List[Dict[str, Any]]:
    """Return the runs that lie far below (for a minimized metric, above) their candidate's others, by candidate.

    `sds` is the largest distance from the median in robust sds; `collapsed_runs` has the rule. `text` says what it
    means for P(best), and what to do.
    """
    directed = history.turned if minimise else history
    side = "above" if minimise else "below"
    entries: List[Dict[str, Any]] = []
    for name, runs in collapsed_runs(directed).items():
        scores = {run.request.name: -run.score if minimise else run.score for run in runs}
        number, sds = history.num_finished(name), float(sds_below(directed.scores(name)).max())
        lie = "lies" if len(runs) == 1 else "lie up to"
        listed = ", ".join(f"{run}: {score:.4g}" for run, score in scores.items())
        text = (
            f"{len(runs)} of {number} runs of {name} {lie} {sds:.0f} robust sds {side} the others ({listed}). P(best) "
            "of a mean cannot see collapsed runs that are rarer. Use --min-score to count them as failed, or report "
            "the share."
        )
        entries.append({"candidate": name, "num_runs": number, "scores": scores, "sds": sds, "text": text})
    return entries


def collapsed_notes(history: History, *, minimise: bool) -> List[str]:
    return [found["text"] for found in collapsed_in(history, minimise=minimise)]


def ahead_on_shared_splits(history: History, best: Optional[str], sign: int = 1) -> Optional[Dict[str, Any]]:
    """Compare `best` on shared splits with its rival, the other active candidate of the best mean.

    The result has the rival, whether its mean over all its runs is better, the number of shared splits, and the mean
    difference on these. It is None if they share fewer than two splits, or if `best` is not ahead there.
    """
    means = {name: sign * history.scores(name).mean() for name in history.active if len(history.scores(name))}
    if best not in means or len(means) < 2:
        return None
    rival = max((name for name in means if name != best), key=means.__getitem__)
    scored = [(history.split_seeds(name), history.scores(name)) for name in (best, rival)]
    differences = differences_on_shared_splits(*scored)
    difference = sign * float(differences.mean()) if len(differences) > 1 else 0.0
    if difference <= 0:
        return None
    better = bool(means[rival] > means[best])
    return {"of": rival, "has_better_mean": better, "num_splits": len(differences), "difference": difference}


def _why_withdrawn(history: History, name: str) -> Optional[str]:
    if name not in history.withdrawn:
        return None
    if name in history.removed:
        return REMOVED
    if name in history.without_metric:
        return "its first run did not report the metric"
    missed = sum(f.kind == "score" for f in history.failures if f.request.candidate == name)
    if missed:
        return f"{missed} of {missed + history.num_finished(name)} runs missed --min-score"
    return f"{count_text(history.num_counted_failures(name), 'failure')}, as many as --max-failures allows"


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write a file in one step, so that a reader never sees half a file. Records become plain data."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, allow_nan=False, default=asdict) + "\n", encoding="utf-8")


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write `evaluations.csv` from the rows of a store, one line for every outcome, in order of finishing."""
    metrics: List[Dict[str, Any]] = [json.loads(row.get("metrics") or "{}") for row in rows]
    names = sorted({name for reported in metrics for name in reported})
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*CSV_COLUMNS, *(to_csv(f"metric:{name}") for name in names)])
        for row, reported in zip(rows, metrics, strict=True):
            writer.writerow([to_csv(value) for value in (*map(row.get, CSV_COLUMNS), *map(reported.get, names))])


SMALL, LARGE, HUGE = 1e-4, 1e7, 1e12
"""A number below the first or above the second is shown with significant digits instead of decimals."""

LEAST_DECIMALS, MOST_DECIMALS = 4, 12


def decimals_of(candidates: Iterable[CandidateSummary]) -> int:
    """Return the decimals of a table: at least 4, and so many that the smallest sd has two significant digits. Sds
    that come from rounding alone do not count."""
    sds = [c.sd for c in candidates if c.sd and c.mean is not None and c.sd > 1e-12 * abs(c.mean)]
    needed = 1 - int(f"{min(sds):.1e}".partition("e")[2]) if sds else 0
    return min(max(needed, LEAST_DECIMALS), MOST_DECIMALS)


def number_text(value: Optional[float], digits: int = LEAST_DECIMALS, *, sign: str = "") -> str:
    """Format a number with as many decimals, or `-` if there is none. With `sign` `+`, a positive one has its sign. A
    small or huge number has significant digits instead, and a large one up to 12."""
    if value is None:
        return "-"
    if abs(value) >= LARGE:
        return f"{value:{sign}.{12 if abs(value) < HUGE else 4}g}"
    if not 0 < abs(value) < SMALL:
        return f"{value:{sign}.{digits}f}"
    significant = max(digits + math.floor(math.log10(abs(value))) + 1, min(digits, LEAST_DECIMALS))
    return f"{value:{sign}.{significant}g}"


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
