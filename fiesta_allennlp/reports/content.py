"""What a report says, as records: every page, table and figure is made from these and computes nothing itself.

A number that does not exist, such as the sd of one score, is None. Scores are in the units of the metric.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Mapping, Optional, Tuple

from rich.markup import escape

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.listeners.progress import number_table
from fiesta_allennlp.reports.formats import Interval, as_text, render
from fiesta_allennlp.reports.screening import ScreeningReport
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.summary import CandidateSummary, number_text


@dataclass(frozen=True)
class Words:
    """What a report calls its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"

    def candidates_of(self, number: int) -> str:
        """The noun that goes with so many candidates."""
        return self.candidate if number == 1 else self.candidates

    def evaluations_of(self, number: int) -> str:
        """The noun that goes with so many evaluations."""
        return self.evaluation if number == 1 else self.evaluations


TRAININGS = Words()
DOCUMENTS = Words("system", "systems", "document", "documents", "answered documents")
BATCHES = Words("system", "systems", "batch", "batches", "answered batches")


@dataclass(frozen=True)
class Asked:
    """What a system was asked, in a selection by documents.

    `measure` is the metric of all its answers together, in which a document counts by its size; `interval` the 95 %
    credible interval of what it would be on all documents like these, by the selection's belief, None where that is
    not about measures or the system was withdrawn. `num_queries` were made and cost `cost`, kept answers left out; None
    where the file of answers is not there.
    """

    num_documents: int = 0
    measure: Optional[float] = None
    interval: Optional[Interval] = None
    num_queries: Optional[int] = None
    cost: Optional[float] = None


@dataclass(frozen=True)
class CandidateReport(CandidateSummary):
    """One candidate and its scores.

    `scores`, `split_seeds`, `replicates` and `development_scores` are by replicate and equally long; the last is empty
    where trainings told none, and has None where one did not. Evaluations with equal split seed share a data split.
    `interval` is the 95 % credible interval of the mean score from the candidate's own scores alone, mean +- t(.975;
    n - 1) sd / sqrt(n): the posterior under the prior 1 / sigma. It has the splits' variance in it, so two of them may
    overlap where the paired comparison is sure. `asked` is there in a selection by documents, where the scores are
    those of single documents, or of batches.
    """

    scores: Tuple[float, ...] = ()
    split_seeds: Tuple[int, ...] = ()
    replicates: Tuple[int, ...] = ()
    development_scores: Tuple[Optional[float], ...] = ()
    median: Optional[float] = None
    min: Optional[float] = None
    max: Optional[float] = None
    interval: Optional[Interval] = None
    num_parameters: Optional[int] = None
    asked: Optional[Asked] = None


@dataclass(frozen=True)
class PathPoint:
    """The belief when so many evaluations had finished. `prob_best` has the active candidates."""

    num_evaluations: int
    prob_best: Mapping[str, float]


@dataclass(frozen=True)
class TestResult:
    """One test of two candidates' scores, descriptive only.

    `asks` is its question, `assumes` what it takes for granted. `p_holm` is corrected by Holm's method over the
    comparisons of the report. Where there are too few scores the numbers are None and `too_few` says what is lacking.
    """

    name: str
    asks: str
    assumes: str
    statistic: Optional[float] = None
    p_value: Optional[float] = None
    p_holm: Optional[float] = None
    too_few: str = ""


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` against those of `second`; every difference is first minus second.

    `paired_differences` are on splits that both have, in the order of `first`'s replicates, each of the mean scores on
    that split; `num_pairs` is their number, `pair_seeds` their splits. `mean_difference` and `interval` (95 %,
    Student's t) are of these where there are two or more pairs (`paired`), else of the two samples (Welch's t).

    `cliffs_delta` is P(first > second) - P(first < second) over all pairs of scores, from -1 to 1; `vargha_delaney` is
    P(first > second) + P(equal) / 2, from 0 to 1; `cohens_d_paired` the mean over the sd of the paired differences.
    `aso_epsilon` is the share of the squared Wasserstein distance that speaks against `first` being stochastically
    larger, `aso_epsilon_min` its upper 95 % bound (Almost Stochastic Order): below 1/2, `first` is almost
    stochastically larger. With `minimise`, lower scores are better and both are about `first` being smaller.
    """

    first: str
    second: str
    minimise: bool = False
    paired: bool = False
    paired_differences: Tuple[float, ...] = ()
    pair_seeds: Tuple[int, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[Interval] = None
    tests: Tuple[TestResult, ...] = ()
    cliffs_delta: Optional[float] = None
    vargha_delaney: Optional[float] = None
    cohens_d_paired: Optional[float] = None
    aso_epsilon: Optional[float] = None
    aso_epsilon_min: Optional[float] = None

    @property
    def num_pairs(self) -> int:
        return len(self.paired_differences)

    @property
    def num_ahead(self) -> int:
        """On how many of the shared splits `first` is better."""
        return sum((difference < 0) if self.minimise else (difference > 0) for difference in self.paired_differences)


@dataclass(frozen=True)
class SingleScore:
    """Why not one score: the probability that such a comparison names another candidate than `best`, exactly, over
    all ways of drawing from the recorded scores of the candidates that were not withdrawn. A tie is shared.

    `wrong_single`: one run of each candidate, whatever its split. `wrong_same_split`: one run of each on one split,
    drawn from the `num_common_splits` that all of them have; None without one. `wrong_best_of_3`: of three runs of each
    candidate (drawn with replacement) the one with the best development score, by its test score; None where a
    candidate has no development scores.
    """

    best: str
    wrong_single: float
    wrong_same_split: Optional[float] = None
    num_common_splits: int = 0
    wrong_best_of_3: Optional[float] = None


@dataclass(frozen=True)
class Development:
    """Spearman's rank correlation of development and test scores.

    `metric` names the development score. `overall` is over the evaluations of all candidates, `by_candidate` within
    each that has three or more and where neither side is constant.
    """

    metric: str
    overall: Optional[float]
    num_evaluations: int
    by_candidate: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where scores come from, as far as a report passes it on.

    `asked_confidence` is the probability at which the selection stops; None where it spends a budget, and of a table.
    `running` tells that the selection is at work at this moment, `adaptive` that the numbers of scores depend on
    scores, of one candidate at least. `checklist` is what is needed to repeat it all, as pairs of key and value.
    `notes` are caveats to be shown. `words` is what things are called. `splits` is the option of a selection, empty of
    others, and `scored` the set that the scores are of. `strategy` is the registered name of what chose the runs, empty
    of a table. `screening` is the first stage of a search, whose second stage the selection is.
    """

    asked_confidence: Optional[float] = None
    running: bool = False
    adaptive: bool = False
    checklist: Tuple[Tuple[str, str], ...] = ()
    notes: Tuple[str, ...] = ()
    words: Words = TRAININGS
    splits: str = ""
    scored: str = "test"
    strategy: str = ""
    screening: Optional[ScreeningReport] = None

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def by_documents(self) -> bool:
        return self.words != TRAININGS


@dataclass(frozen=True)
class Report(Origin):
    """Everything a report says of a selection, of a table of scores, or of two candidates.

    `decision` is two sentences or so, each an element. `best` leads or has won; None where nothing can be said yet.
    Scores have their natural sign; with `minimise`, lower ones are better.
    `confidence` is the probability that it is best, within `margin`. `stopped_by` is as in `selection.json`, None for a
    table of scores and while nothing has stopped the selection. `belief` is its registered name. `equal_evaluations`
    and `equal_seconds` are what evaluating every candidate as often as `best` would have cost. `path` is P(best) over
    the evaluations, `order` the candidate of every finished evaluation in order of finishing (empty for a table).
    `comparisons` are of `best` against every other, or of the two that were asked for.

    Of a selection by documents there are no comparisons, `single_score`, `development` nor equal allocation.
    """

    title: str
    source: str
    decision: Tuple[str, ...]
    metric: str
    best: Optional[str]
    candidates: Tuple[CandidateReport, ...]
    confidence: Optional[float] = None
    margin: float = 0.0
    stopped_by: Optional[str] = None
    belief: str = ""
    seconds: float = 0.0
    equal_evaluations: Optional[int] = None
    equal_seconds: Optional[float] = None
    path: Tuple[PathPoint, ...] = ()
    order: Tuple[str, ...] = ()
    comparisons: Tuple[Comparison, ...] = ()
    single_score: Optional[SingleScore] = None
    development: Optional[Development] = None
    minimise: bool = False

    @property
    def metric_text(self) -> str:
        """The metric, and that it is minimised where it is."""
        return Metric(self.metric, self.minimise).text

    @property
    def num_evaluations(self) -> int:
        return sum(candidate.num_evaluations for candidate in self.candidates)

    @property
    def num_failures(self) -> int:
        return sum(candidate.failures for candidate in self.candidates)

    @cached_property
    def ranked(self) -> Tuple[CandidateReport, ...]:
        """By falling P(best), then the better mean; `best` first and withdrawn candidates last; equal ones as given."""

        def place(candidate: CandidateReport) -> Tuple[bool, bool, float, float]:
            prob_best = -1.0 if candidate.prob_best is None else candidate.prob_best
            sign = Metric(self.metric, self.minimise).sign
            mean = float("-inf") if candidate.mean is None else sign * candidate.mean
            return candidate.name != self.best, candidate.withdrawn, -prob_best, -mean

        return tuple(sorted(self.candidates, key=place))

    def candidate(self, name: str) -> CandidateReport:
        """Return what is reported of one candidate.

        Raises:
            ConfigError: where there is none of this name.
        """
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise ConfigError(f"the report has no candidate '{name}' but: {', '.join(c.name for c in self.candidates)}.")

    def __repr__(self) -> str:
        """A small table and the decision, as plain text."""
        table = number_table("candidate", ("scores", "mean", "sd", "P(best)"))
        for candidate in self.ranked:
            table.add_row(*_row(candidate))
        return as_text(table, self.decision)

    def _repr_html_(self) -> str:
        """The decision and a small table, for notebooks."""
        return render("fragment.html.j2", report=self)


def _row(candidate: CandidateReport) -> Tuple[str, ...]:
    number, mean, sd = candidate.num_evaluations, candidate.mean, candidate.sd
    if candidate.asked is not None:
        number, mean, sd = candidate.asked.num_documents, candidate.asked.measure, None
    return escape(candidate.name), str(number), number_text(mean), number_text(sd), candidate.standing
