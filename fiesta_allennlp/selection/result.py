"""The result of a selection: one record, which is the content of `selection.json`."""

from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from inspect import getmembers
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterable, Literal, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

import numpy as np

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.files import check_format, read_json
from fiesta_allennlp.core.records import CredibleMargin, Decision, History
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import list_to_tuple
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.summary import (
    MIN_DECIMALS,
    compare_on_shared_splits,
    count_text,
    describe_scored_data,
    find_collapsed_runs,
    probability_text,
    write_json,
)
from fiesta_allennlp.version import __version__

FORMAT = 1
"""The number of the format of `selection.json`, which every change of a key raises."""

MAX_DECIMALS = 12

State = Literal["taking part", "failed", "removed"]
"""Whether a candidate takes part, failed too often, or was removed by the user."""

FailedBecause = Literal["no metric", "min_score", "max_failures"]
"""The reason for which a candidate failed: its first run did not report the metric, its scores missed `--min-score`, or
it had as many failures as `--max-failures` allows."""

REMOVED_TEXT = "you removed it with --allow-removed; its runs are kept but do not count"

DECIDED_REASONS = ("confidence", "budget", "documents")
"""The reasons for which a selection stops with a winner."""

MIN_MARGIN_SHARE = 1e-6
"""The smallest margin to suggest, as a share of the range of all scores."""


@dataclass(frozen=True)
class FailedRun:
    """A failure of a run. `kind` is that of a `Failure`."""

    run: str
    kind: str
    error: str

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.error}"


class stored_property(property):
    """A property that follows from the fields of a record, and that its file has too, for readers of the file."""


def stored_values(record: Any) -> Dict[str, Any]:
    """Return the fields of a record and its `stored_property` properties."""
    names = [f.name for f in fields(record)]
    names += [name for name, _ in getmembers(type(record), lambda value: isinstance(value, stored_property))]
    return {name: getattr(record, name) for name in names}


CandidateResultType = TypeVar("CandidateResultType", bound="CandidateResult")
ResultType = TypeVar("ResultType", bound="Result")


@dataclass(frozen=True)
class CandidateResult:
    """A candidate in numbers: an entry of `candidates` in `selection.json`.

    A number that does not exist, such as the sd of one score, is None. `sd` has ddof 1. `prob_best` and
    `prob_within_margin` come from the posterior. `state` is `taking part`, `failed` (too often), or `removed` by you.
    `failed_runs` has an entry for each failure, and `num_counted_failures` is the number of those that count for
    `--max-failures`. `seconds` is the sum over the candidate's finished runs.
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

    @classmethod
    def from_history(
        cls: Type[CandidateResultType], history: History, decision: Decision, name: str
    ) -> CandidateResultType:
        """Return the numbers of one candidate, or of one that is about to join."""
        scores = history.scores(name)
        failures = [failure for failure in history.failures if failure.request.candidate == name]
        is_removed = name in history.removed
        return cls(
            name=name,
            num_evaluations=len(scores),
            mean=float(np.mean(scores)) if len(scores) else None,
            sd=float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
            prob_best=decision.prob_best.get(name),
            prob_within_margin=decision.prob_within_margin.get(name),
            state="taking part" if name not in history.withdrawn else "removed" if is_removed else "failed",
            failed_runs=tuple(FailedRun(f.request.name, f.kind, f.error) for f in failures),
            num_counted_failures=history.num_counted_failures(name),
            seconds=sum(evaluation.seconds for evaluation in history.evaluations_of(name)),
        )

    @classmethod
    def from_entry(cls: Type[CandidateResultType], entry: Mapping[str, Any]) -> CandidateResultType:
        """Make the record of an entry of `candidates`."""
        failed_runs = tuple(FailedRun(**run) for run in entry["failed_runs"])
        return cls(**{**{f.name: entry[f.name] for f in fields(cls)}, "failed_runs": failed_runs})

    @property
    def withdrawn(self) -> bool:
        """True if it does not take part."""
        return self.state != "taking part"

    @property
    def removed(self) -> bool:
        return self.state == "removed"

    @stored_property
    def failures(self) -> int:
        """The number of failures."""
        return len(self.failed_runs)

    @property
    def failure_reasons(self) -> Tuple[str, ...]:
        """A text for each failure."""
        return tuple(f"{failed_run.run} {failed_run.reason}" for failed_run in self.failed_runs)

    @stored_property
    def num_missed(self) -> int:
        """The number of runs whose score missed `--min-score`."""
        return sum(failed_run.kind == "score" for failed_run in self.failed_runs)

    @property
    def mean_seconds(self) -> Optional[float]:
        """The mean seconds of a finished run."""
        return self.seconds / self.num_evaluations if self.num_evaluations else None

    @stored_property
    def failed_because(self) -> Optional[FailedBecause]:
        """The reason for which it failed; None if it takes part or was removed."""
        if self.state != "failed":
            return None
        if not self.num_evaluations and any(failed_run.kind == "metric" for failed_run in self.failed_runs):
            return "no metric"
        return "min_score" if self.num_missed else "max_failures"

    @property
    def withdrawn_because(self) -> Optional[str]:
        """The reason for which it does not take part, as text."""
        if self.failed_because is None:
            return REMOVED_TEXT if self.removed else None
        return {
            "no metric": "its first run did not report the metric",
            "min_score": f"{self.num_missed} of {self.num_missed + self.num_evaluations} runs missed --min-score",
            "max_failures": f"{count_text(self.num_counted_failures, 'failure')}, as many as --max-failures allows",
        }[self.failed_because]

    @property
    def missed_runs(self) -> str:
        """The names of the runs that missed `--min-score`."""
        return ", ".join(failed_run.run for failed_run in self.failed_runs if failed_run.kind == "score")

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
    def standing(self) -> str:
        """P(best) as text, or `failed` or `removed`."""
        return self.state if self.withdrawn else probability_text(self.prob_best)


@dataclass(frozen=True)
class Standings:
    """The candidates, and who leads them.

    Attributes:
        leading: the candidate that leads, decided or not. None if nothing is known yet.
        stopped_by: why the selection ended, as in `Decision`.
        metric: the name of the metric.
        margin: the margin within which a candidate is as good as the best.
    """

    leading: Optional[str]
    stopped_by: Optional[str]
    metric: str
    candidates: Tuple[CandidateResult, ...]
    margin: float = 0.0

    @property
    def decided(self) -> bool:
        """True if the selection named a winner, by its probability or at the end of a budget."""
        return self.stopped_by in DECIDED_REASONS

    @stored_property
    def best(self) -> Optional[str]:
        """The winner. None until it is decided."""
        return self.leading if self.decided else None

    @property
    def leader(self) -> Any:
        """The candidate that leads."""
        return next((candidate for candidate in self.candidates if candidate.name == self.leading), None)

    @stored_property
    def confidence(self) -> Optional[float]:
        """The probability that `leading` is the best (within `margin`), or None if unknown."""
        return self.leader and self.leader.prob_within_margin

    @stored_property
    def num_evaluations(self) -> int:
        return sum(candidate.num_evaluations for candidate in self.candidates)

    @stored_property
    def num_failures(self) -> int:
        return sum(candidate.failures for candidate in self.candidates)

    @stored_property
    def seconds(self) -> float:
        """The sum of the run times of all workers."""
        return sum(candidate.seconds for candidate in self.candidates)


@dataclass(frozen=True)
class Result(Standings):
    """The content of `selection.json`, together with the directory of the selection.

    Attributes:
        metric: the name of the metric, with a minus if it is minimised.
        expected_loss: what choosing `leading` costs on average, in units of the metric.
        lacking: if `leading` reached the target confidence, but was not named because candidates had too few runs: the
            number of runs that each still needs.
        credible_margin: the smallest `margin` that would have decided an inconclusive selection, with the `best`
            candidate at that margin.
        plain_loop: once it is decided, an estimate of the runs of a loop that runs all candidates equally often.
        collapsed: runs far below (or above) their candidate's others, by candidate.
        ahead_on_shared_splits: `leading` compared on shared splits with the other candidate of the best mean.
        score: the scored set, `test` or `validation`.
        min_score: the score that runs must not miss.
        sets: the names of the data sets; empty if only the programs know the data, and None if that is unknown.
        seed: the master random seed.
    """

    expected_loss: Optional[float] = None
    lacking: Mapping[str, int] = field(default_factory=dict)
    credible_margin: Optional[Mapping[str, Any]] = None
    plain_loop: Optional[Mapping[str, Any]] = None
    collapsed: Sequence[Mapping[str, Any]] = ()
    ahead_on_shared_splits: Optional[Mapping[str, Any]] = None
    strategy: Mapping[str, Any] = field(default_factory=dict)
    belief: Mapping[str, Any] = field(default_factory=dict)
    splits: str = ""
    score: str = "test"
    min_score: Optional[float] = None
    sets: Optional[Tuple[str, ...]] = None
    seed: str = ""
    directory: Path = Path()

    candidate_class: ClassVar[Type[CandidateResult]] = CandidateResult

    @classmethod
    def from_decision(
        cls: Type[ResultType], history: History, decision: Decision, metric: Metric, **further_fields: Any
    ) -> ResultType:
        """Return the result of a decision. `further_fields` are added, or take the place of those computed here."""
        computed_fields = {
            "margin": decision.margin,
            "expected_loss": decision.expected_loss,
            "lacking": dict(Counter(decision.lacking)),
            "credible_margin": _credible_margin_entry(history, decision.credible_margin),
            "plain_loop": decision.plain_loop and asdict(decision.plain_loop),
            "collapsed": find_collapsed_runs(history, minimise=metric.minimise),
            "ahead_on_shared_splits": compare_on_shared_splits(history, decision.best, metric.sign),
        }
        candidates = tuple(cls.candidate_class.from_history(history, decision, name) for name in history.candidates)
        return cls(
            decision.best, decision.stopped_by, metric.option_text, candidates, **{**computed_fields, **further_fields}
        )

    @classmethod
    def read(cls: Type[ResultType], directory: Union[str, Path]) -> ResultType:
        """Read the result of a selection.

        Raises:
            StoreError: if the directory holds no readable result.
        """
        path = RunDirectory(Path(directory)).selection_json
        try:
            content = read_json(path)
            check_format(path, content.get("format"), FORMAT, version=content.get("version"))
            return cls._from_content(content, Path(directory))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{path} cannot be read as the result of a selection: {error}. Pass the directory of a finished "
                "selection, or resume it with recover=True."
            ) from error

    @classmethod
    def _from_content(cls: Type[ResultType], content: Mapping[str, Any], directory: Path) -> ResultType:
        values = {f.name: list_to_tuple(content[f.name]) for f in fields(cls) if f.name != "directory"}
        values["candidates"] = tuple(map(cls.candidate_class.from_entry, values["candidates"]))
        return cls(**values, directory=directory)

    def write(self) -> None:
        """Write `selection.json` into the directory, in one step."""
        write_json(self.content(), RunDirectory(self.directory).selection_json)

    def content(self) -> Dict[str, Any]:
        """Return the content of `selection.json`."""
        content = {"format": FORMAT, "version": __version__, "best": self.best, **stored_values(self)}
        del content["directory"], content["candidates"]
        return {**content, "candidates": [*map(stored_values, self.candidates)]}

    @property
    def is_decided(self) -> bool:
        """True if the selection reached its target confidence."""
        return self.stopped_by == "confidence"

    @property
    def active(self) -> Tuple[CandidateResult, ...]:
        """The candidates that take part."""
        return tuple(candidate for candidate in self.candidates if not candidate.withdrawn)

    @stored_property
    def seconds_of_equal_allocation(self) -> Optional[float]:
        """The cost of evaluating every candidate as often as the leading one: n_best sum_i s_i, where s_i is the mean
        seconds of a run of candidate i. Candidates without a run are excluded. None if nobody leads."""
        if self.leader is None or not self.leader.num_evaluations:
            return None
        return self.leader.num_evaluations * sum(candidate.mean_seconds or 0.0 for candidate in self.candidates)

    @property
    def scored_on(self) -> str:
        """A sentence about the scored data."""
        is_official = self.splits == OFFICIAL
        return "" if self.sets is None else describe_scored_data(self.sets, is_official=is_official, scored=self.score)

    @property
    def metric_text(self) -> str:
        """The metric's name, with a note if it is minimised."""
        return Metric.parse(self.metric).display_name


def _credible_margin_entry(history: History, margin: Optional[CredibleMargin]) -> Optional[Dict[str, Any]]:
    """Return the margin that would have decided; None if it is as large as the range of all scores, so that any
    candidate would do, or far below the differences between them."""
    scores = [evaluation.score for evaluation in history.evaluations]
    score_range = float(np.ptp(scores)) if scores else 0.0
    is_informative = margin is not None and MIN_MARGIN_SHARE * score_range <= margin.margin < score_range
    return asdict(margin) if margin is not None and is_informative else None


def num_decimals(candidates: Iterable[CandidateResult]) -> int:
    """Return the decimals of a table: at least 4, and so many that the smallest sd has two significant digits. Sds
    that come from rounding alone do not count."""
    sds = [c.sd for c in candidates if c.sd and c.mean is not None and c.sd > 1e-12 * abs(c.mean)]
    num_needed = 1 - int(f"{min(sds):.1e}".partition("e")[2]) if sds else 0
    return min(max(num_needed, MIN_DECIMALS), MAX_DECIMALS)
