"""A candidate in numbers: an entry of `candidates` in `selection.json`; by how much it leads another one; and which of
its runs lie so far below the others that they have probably failed."""

from collections import Counter
from dataclasses import dataclass
from itertools import compress
from typing import Any, Dict, List, Literal, Mapping, Optional, Tuple, Type, TypeVar

import numpy as np

from fiesta_allennlp.choosing import t_tests
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.choosing.t_tests import Interval, compute_mean_interval, sample_sd
from fiesta_allennlp.core.errors import MAX_ERROR_CHARACTERS
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import Evaluation, History

State = Literal["taking part", "failed", "removed"]
"""Whether a candidate takes part, failed too often, or was removed by the user."""


FailedBecause = Literal["unfit", "min_score", "max_failures"]
"""The reason for which a candidate failed: its runs alone lacked something of the machine, such as memory, its scores
missed `--min-score`, or it had as many failures as `--max-failures` allows."""


@dataclass(frozen=True)
class FailedRun:
    """A failure of a run. `kind` is that of a `Failure`; `machine` is empty if it is unknown."""

    run: str
    kind: str
    error: str
    machine: str = ""


CandidateResultType = TypeVar("CandidateResultType", bound="CandidateResult")


@dataclass(frozen=True)
class CandidateResult:
    """A candidate in numbers: an entry of `candidates` in `selection.json`.

    A number that does not exist, such as the sd of one score, is None. `sd` has ddof 1. `prob_best` and
    `prob_within_margin` come from the posterior. `state` is `taking part`, `failed` (too often), or `removed` by you.
    `failed_runs` has every failure, and `num_counted_failures` is the number of those that count for `--max-failures`.
    Besides the `num_pending`, no job or worker has taken `num_queued` runs yet.
    `num_brought` of the finished runs were made before the selection began. `seconds` is the sum over the candidate's
    finished runs. `study_score` is the score of a trial in its study, which does not count.

    Over several tasks, `mean` is the mean of the means on each, `sd` is the root mean square of the sds, and there is
    no `interval`.

    Two candidates share a letter of `tier` unless all scores tell them apart; it is empty without P(best).

    `interval` is the 95% credible interval of the mean from the candidate's own scores, mean +- t(.975; n - 1) sd /
    sqrt(n), the posterior under the prior 1 / sigma. It includes the variance of the splits, so two intervals may
    overlap although the paired comparison is clear.

    `scores`, `split_seeds` and `replicates` are by replicate and equally long. Runs with equal split seed share a data
    split.
    """

    name: str
    num_evaluations: int = 0
    mean: Optional[float] = None
    sd: Optional[float] = None
    prob_best: Optional[float] = None
    prob_within_margin: Optional[float] = None
    state: State = "taking part"
    failed_runs: Tuple[FailedRun, ...] = ()
    num_counted_failures: int = 0
    seconds: float = 0.0
    num_pending: int = 0
    num_queued: int = 0
    num_brought: int = 0
    interval: Optional[Interval] = None
    num_parameters: Optional[int] = None
    study_score: Optional[float] = None
    tier: str = ""
    scores: Tuple[float, ...] = ()
    split_seeds: Tuple[int, ...] = ()
    replicates: Tuple[int, ...] = ()

    @classmethod
    def from_history(
        cls: Type[CandidateResultType], history: History, decision: Decision, name: str, **further_fields: Any
    ) -> CandidateResultType:
        """Return the numbers of one candidate, or of one that is about to join."""
        scores = history.sign * history.scores(name)
        sds = [sample_sd(part.scores(name)) for part in history.by_task.values()]
        runs = sorted(history.evaluations_of(name), key=lambda run: run.request.replicate)
        failures = [failure for failure in history.failures if failure.request.candidate == name]
        is_removed = name in history.removed
        return cls(
            name=name,
            num_evaluations=len(scores),
            mean=history.mean(name),
            sd=None if None in sds else float(np.sqrt(np.mean(np.square(np.array(sds, dtype=float))))),
            prob_best=decision.prob_best.get(name),
            prob_within_margin=decision.prob_within_margin.get(name),
            state="taking part" if name not in history.withdrawn else "removed" if is_removed else "failed",
            failed_runs=tuple(
                FailedRun(f.request.name, f.kind, shorten(f.error, MAX_ERROR_CHARACTERS), str(f.origin.machine))
                for f in failures
            ),
            num_counted_failures=history.num_counted_failures(name),
            seconds=sum(run.seconds for run in runs),
            num_pending=history.num_pending(name),
            num_brought=sum(run.request.is_brought for run in runs),
            interval=None if history.tasks else compute_mean_interval(scores),
            scores=tuple(scores.tolist()),
            split_seeds=tuple(run.request.split_seed for run in runs),
            replicates=tuple(run.request.replicate for run in runs),
            **further_fields,
        )

    @property
    def withdrawn(self) -> bool:
        """True if it does not take part."""
        return self.state != "taking part"

    @property
    def removed(self) -> bool:
        return self.state == "removed"

    @property
    def median(self) -> Optional[float]:
        return float(np.median(self.scores)) if self.scores else None

    @property
    def min(self) -> Optional[float]:
        return min(self.scores, default=None)

    @property
    def max(self) -> Optional[float]:
        return max(self.scores, default=None)

    @property
    def failures(self) -> int:
        """The number of failures."""
        return len(self.failed_runs)

    @property
    def num_failures_by_kind(self) -> Mapping[str, int]:
        return Counter(failed_run.kind for failed_run in self.failed_runs)

    @property
    def num_missed(self) -> int:
        """The number of runs whose score missed `--min-score`."""
        return self.num_failures_by_kind.get("score", 0)

    @property
    def mean_seconds(self) -> Optional[float]:
        """The mean seconds of a finished run of this selection; None if they are unknown."""
        return self.seconds / self.num_own if self.seconds and self.num_own else None

    @property
    def num_own(self) -> int:
        """The number of finished runs that this selection made."""
        return self.num_evaluations - self.num_brought

    @property
    def failed_because(self) -> Optional[FailedBecause]:
        """The reason for which it failed; None if it takes part or was removed."""
        if self.state != "failed":
            return None
        if self.num_failures_by_kind.keys() - {"machine"} == {"unfit"}:
            return "unfit"
        return "min_score" if self.num_missed else "max_failures"


def missed_text(candidate: Any) -> str:
    """Format the runs of a candidate that missed `--min-score`, as in `1 of 20 (5%)`; empty if none did."""
    total = candidate.num_missed + candidate.num_evaluations
    return f"{candidate.num_missed} of {total} ({candidate.num_missed / total:.0%})" if candidate.num_missed else ""


def failures_text(candidate: Any) -> str:
    """Format the number of failures of a candidate, with the share of runs that missed `--min-score`."""
    missed = missed_text(candidate)
    if not candidate.num_missed:
        return str(candidate.failures)
    return missed if candidate.failures == candidate.num_missed else f"{candidate.failures}, {missed}"


def paired_differences(first: CandidateResult, second: CandidateResult, *, is_paired: bool) -> np.ndarray:
    """Return the differences on shared splits, none if there are fewer than three: failed runs leave the other one of
    their split alone."""
    sides = ((candidate.split_seeds, candidate.scores) for candidate in (first, second))
    differences = t_tests.differences_on_shared_splits(*sides)
    return differences if is_paired and len(differences) >= t_tests.MIN_NUM_SCORES else np.array([])


@dataclass(frozen=True)
class SeenLead:
    """By how much a selection saw the winner ahead of a rival, None if too few runs tell.

    `sds` are the sd of the differences on shared splits, or the sds of the winner and the rival.
    """

    rival: str
    lead: Optional[float] = None
    sds: Tuple[float, ...] = ()

    @classmethod
    def of(cls, winner: CandidateResult, rival: CandidateResult, *, sign: int, is_paired: bool) -> "SeenLead":
        differences = paired_differences(winner, rival, is_paired=is_paired)
        if len(differences):
            return cls(rival.name, sign * float(np.mean(differences)), (float(np.std(differences, ddof=1)),))
        if winner.sd is None or rival.sd is None:
            return cls(rival.name)
        return cls(rival.name, sign * float(np.mean(winner.scores) - np.mean(rival.scores)), (winner.sd, rival.sd))

    def power(self, num_runs: int, *, share: float = 1.0, num_rivals: int = 1) -> Optional[float]:
        """Return the probability that `num_runs` of each confirm a true difference of this share of the lead. With
        several rivals, it is that of the strictest step of Holm's method. None if the lead is unknown."""
        if self.lead is None:
            return None
        level = t_tests.CONFIRMATION_LEVEL / num_rivals
        return t_tests.fresh_runs_power(share * self.lead, self.sds, num_runs, level=level)

    def num_runs_for_claim(self, *, num_rivals: int = 1) -> Optional[int]:
        """Return `fresh_runs_needed` for a difference as large as the lead; None if the lead is unknown."""
        return None if self.lead is None else t_tests.fresh_runs_needed(self.lead, self.sds, num_rivals=num_rivals)


LIMIT_SDS = 6.0
"""Robust sds below the median from which on a run of many has collapsed."""

SMALL_SAMPLE_FACTOR = 16.0
"""How much farther a run of few must lie: the limit is `LIMIT_SDS` (1 + `SMALL_SAMPLE_FACTOR` / (n - 2)^2)."""

MIN_RELATIVE_SD = 0.005
"""The least robust sd, as a share of the median. Without it, one wrong answer of a test set collapses a candidate whose
other runs are all equal."""


MAX_SDS = 1e6
"""The largest distance in robust sds, where the others are equal and near 0. It bounds the ratio, which cannot
overflow."""


def flag_collapsed(scores: np.ndarray) -> np.ndarray:
    """Return which runs of one candidate lie far below its others. Shape: that of `scores`, `(num_runs,)`; bool.

    Higher scores are better. With m the median and n the number of runs, run
    k has collapsed if::

        m - x_k > 6 (1 + 16 / (n - 2)^2) max(1.4826 median|x - m|, 0.005 |m|)

    A mean and an sd would follow the outlier, and hide it among few runs: no run of n can lie more than
    (n - 1) / sqrt(n) sds below their mean. The median and the MAD follow the others. The limit is 102 robust sds for 3
    runs, 17 for 5, 7 for 12 and 6 for 50, because the MAD of few runs is small by chance. In less than 1% of normal
    samples of 3 to 50 runs, a run collapses. Skewed scores have more. Equal scores and fewer than 3 runs have none.

    `find_collapsed_runs` applies it to a selection.
    """
    num_runs = len(scores)
    if num_runs < 3:
        return np.zeros(num_runs, dtype=bool)
    return np.asarray(robust_sds_below(scores) > LIMIT_SDS * (1 + SMALL_SAMPLE_FACTOR / (num_runs - 2) ** 2))


def robust_sds_below(scores: np.ndarray) -> np.ndarray:
    """Return how many robust sds each run lies below the median, at most `MAX_SDS`. Shape: that of `scores`, at least
    one."""
    median = np.median(scores)
    deviations = median - np.asarray(scores, dtype=float)
    distances = np.abs(deviations)
    floors = MIN_RELATIVE_SD * abs(float(median)), float(distances.max()) / MAX_SDS
    sd = max(1.4826 * float(np.median(distances)), *floors)
    return np.asarray(deviations / sd) if sd else np.zeros(len(deviations))


@dataclass(frozen=True)
class CollapsedRuns:
    """The runs of a candidate that lie far below (for a minimized metric, above) its others: their `scores` by name, as
    the metric reports them, and the largest distance from the median in robust sds. `num_runs` counts all its runs."""

    candidate: str
    num_runs: int
    scores: Mapping[str, float]
    sds: float


def find_collapsed_runs(history: History) -> Tuple[CollapsedRuns, ...]:
    """Return the collapsed runs of every candidate that has one, by replicate.

    On a split on which more than half of the runs of at least two candidates lie far below, the split is hard and no
    run has collapsed. Answers that are right or wrong, with scores of 1 and 0, do not collapse.
    """
    if {run.score for run in history.evaluations} == {0.0, 1.0}:
        return ()
    collapsed: Dict[str, List[Evaluation]] = {}
    for name in history.candidates:
        runs = sorted(history.evaluations_of(name), key=lambda run: run.request.replicate)
        collapsed[name] = list(compress(runs, flag_collapsed(history.scores(name))))
    num_collapsed = Counter(run.request.split_seed for runs in collapsed.values() for run in runs)
    num_runs = Counter(run.request.split_seed for run in history.evaluations)
    hard_splits = {split for split, number in num_collapsed.items() if number > 1 and 2 * number > num_runs[split]}
    found: List[CollapsedRuns] = []
    for name, runs in collapsed.items():
        scores = {run.request.name: run.score for run in runs if run.request.split_seed not in hard_splits}
        if scores:
            sds = float(robust_sds_below(history.scores(name)).max())
            found.append(CollapsedRuns(name, num_runs=history.num_finished(name), scores=scores, sds=sds))
    return tuple(found)
