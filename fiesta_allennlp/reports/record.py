"""What a report says, as records: every page, table and figure is made from these and computes nothing itself.

A number that does not exist, such as the sd of one score, is None. Scores are in the units of the metric.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Mapping, Optional, Tuple

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
    """The words of a report for its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"

    def candidates_of(self, number: int) -> str:
        """Return the noun for this number of candidates."""
        return self.candidate if number == 1 else self.candidates

    def evaluations_of(self, number: int) -> str:
        """Return the noun for this number of evaluations."""
        return self.evaluation if number == 1 else self.evaluations


TRAININGS = Words()
DOCUMENTS = Words("system", "systems", "document", "documents", "answered documents")
BATCHES = Words("system", "systems", "batch", "batches", "answered batches")


@dataclass(frozen=True)
class Asked:
    """The queries to one system in a selection by documents.

    `measure` is the metric over all answers together, in which a document counts by its size. `interval` is the 95 %
    credible interval of this measure on all documents like these, by the selection's posterior. It is None if the
    posterior is not about measures, or if the system failed or was removed. `num_queries` is the number of queries made
    and `cost` their cost; both exclude kept answers. They are None if the file of answers is missing.
    """

    num_documents: int = 0
    measure: Optional[float] = None
    interval: Optional[Interval] = None
    num_queries: Optional[int] = None
    cost: Optional[float] = None


@dataclass(frozen=True)
class CandidateReport(CandidateSummary):
    """One candidate and its scores.

    `scores`, `split_seeds`, `replicates` and `development_scores` are by replicate and equally long.
    `development_scores` is empty if no run reported one, and has None for each run that reported none. Evaluations with
    equal split seed share a data split.

    `interval` is the 95 % credible interval of the mean score from the candidate's own scores alone, mean +- t(.975; n
    - 1) sd / sqrt(n). This is the posterior under the prior 1 / sigma. The interval includes the variance of the
    splits, so two intervals may overlap although the paired comparison is clear.

    `asked` is present in a selection by documents. There, the scores are those of single documents or of batches.
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
    """P(best) after this number of finished evaluations. `prob_best` has the active candidates."""

    num_evaluations: int
    prob_best: Mapping[str, float]


@dataclass(frozen=True)
class TestResult:
    """One test of two candidates' scores, descriptive only.

    `asks` is the question of the test, and `assumes` lists its assumptions. `p_holm` is corrected by Holm's method over
    the comparisons of the report. With too few scores, the numbers are None and `too_few` names what is missing.
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
    """The scores of `first` compared with those of `second`; every difference is first minus second.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates. `num_pairs` is the number of these splits, and `pair_seeds` are their seeds. With two or more pairs
    (`paired`), `mean_difference` and `interval` (95 %, Student's t) are of the paired differences. Otherwise they are
    of the two samples (Welch's t).

    `cliffs_delta` is P(first > second) - P(first < second) over all pairs of scores, from -1 to 1. `vargha_delaney` is
    P(first > second) + P(equal) / 2, from 0 to 1. `cohens_d_paired` is the mean over the sd of the paired differences.

    `aso_epsilon` is the share of the squared Wasserstein distance that speaks against `first` being stochastically
    larger. `aso_epsilon_min` is its upper 95 % bound (Almost Stochastic Order): below 1/2, `first` is almost
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
        """The number of shared splits on which `first` is better."""
        return sum((difference < 0) if self.minimise else (difference > 0) for difference in self.paired_differences)


@dataclass(frozen=True)
class SingleScore:
    """The probability that a comparison of single scores names another candidate than `best`.

    The probability is exact, over all ways to draw from the recorded scores. It excludes candidates that failed or that
    you removed. The candidates of a tie share it.

    Attributes:
        wrong_single: for one run of each candidate, whatever its split.
        num_common_splits: the number of splits that all candidates have.
        wrong_same_split: for one run of each candidate on one common split, drawn at random. None without a common
            split.
        wrong_best_of_3: for three runs of each candidate, drawn with replacement. The run with the best development
            score counts, by its test score. None if a candidate has no development scores.
    """

    best: str
    wrong_single: float
    wrong_same_split: Optional[float] = None
    num_common_splits: int = 0
    wrong_best_of_3: Optional[float] = None


@dataclass(frozen=True)
class Development:
    """Spearman's rank correlation of development and test scores.

    `metric` names the development score. `overall` covers the evaluations of all candidates. `by_candidate` has one
    entry for each candidate with three or more evaluations, unless its development or test scores are constant.
    """

    metric: str
    overall: Optional[float]
    num_evaluations: int
    by_candidate: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The source of the scores, as far as a report shows it.

    Attributes:
        asked_confidence: the target confidence at which the selection stops. None for a budget or a table.
        running: whether the selection is running at this moment.
        adaptive: whether the number of scores of at least one candidate depends on scores.
        checklist: what you need to repeat the selection, as pairs of key and value.
        changes: what was changed on the way of how runs are chosen and when they end, as a store has it.
        notes: caveats that the report shows.
        words: the nouns of the report.
        splits: the option of a selection, empty for other sources.
        scored: the set that the scores are of.
        strategy: the registered name of the sampling rule that chose the runs, empty for a table.
        screening: the first stage of a search whose second stage is this selection.
    """

    asked_confidence: Optional[float] = None
    running: bool = False
    adaptive: bool = False
    checklist: Tuple[Tuple[str, str], ...] = ()
    changes: Tuple[Mapping[str, Any], ...] = ()
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
    """The full content of a report on a selection, on a table of scores, or on two candidates.

    `decision` is about two sentences, each an element. `best` leads or has won; it is None if nothing is known yet.
    Scores have their natural sign; with `minimise`, lower scores are better. `confidence` is the probability that
    `best` is best, within `margin`. `stopped_by` is as in `selection.json`. It is None for a table of scores, and as
    long as nothing has stopped the selection. `belief` is the registered name of the model of the scores.

    `equal_evaluations` and `equal_seconds` are the cost of an equal allocation, which evaluates every candidate as
    often as `best`. `path` is P(best) over the evaluations. `order` names the candidate of every finished evaluation in
    order of finishing (empty for a table). `comparisons` are of `best` with every other candidate, or of the two that
    you asked for.

    A selection by documents has no comparisons, `single_score`, `development` or equal allocation.
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
        """The metric's name, which says if the metric is minimised."""
        return Metric(self.metric, self.minimise).text

    @property
    def num_evaluations(self) -> int:
        return sum(candidate.num_evaluations for candidate in self.candidates)

    @property
    def num_failures(self) -> int:
        return sum(candidate.failures for candidate in self.candidates)

    @cached_property
    def ranked(self) -> Tuple[CandidateReport, ...]:
        """The candidates by falling P(best), then by the better mean.

        `best` comes first. Candidates that failed or that you removed come last. Equal candidates keep the given order.
        """

        def place(candidate: CandidateReport) -> Tuple[bool, bool, float, float]:
            prob_best = -1.0 if candidate.prob_best is None else candidate.prob_best
            sign = Metric(self.metric, self.minimise).sign
            mean = float("-inf") if candidate.mean is None else sign * candidate.mean
            return candidate.name != self.best, candidate.withdrawn, -prob_best, -mean

        return tuple(sorted(self.candidates, key=place))

    def candidate(self, name: str) -> CandidateReport:
        """Return the report of one candidate.

        Raises:
            ConfigError: if there is no candidate of this name.
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
