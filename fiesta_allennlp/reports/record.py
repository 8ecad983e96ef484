"""The content of a report in one record: every page, table and figure is made from it and computes nothing itself. A
number that does not exist is None."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Tuple

import numpy as np

from fiesta_allennlp.candidates.points import Point, trials_of
from fiesta_allennlp.choosing import Strategy, t_tests
from fiesta_allennlp.choosing.beliefs import Belief
from fiesta_allennlp.choosing.strategy import analyse, with_everybody
from fiesta_allennlp.confirming.confirmation import Confirmation
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.records import Candidate, History
from fiesta_allennlp.core.texts import count_text, interval_text, number_text
from fiesta_allennlp.reports import words
from fiesta_allennlp.reports.confirmation_report import confirmation_in_words
from fiesta_allennlp.selecting.provenance import BROUGHT_CAUTION
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.candidate_table import Printable, TerminalLines, candidate_table, show
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import Meta

if TYPE_CHECKING:
    from fiesta_allennlp.tables.run_table import RunTable

MAX_PATH_POINTS = 120
"""The most points of P(best) that a figure can show; each costs as much as a step of the selection."""

SHARED_SPLITS_NOTE = (
    "Several scores of a candidate share a split, so the intervals of the means are too narrow. P(best) and the paired "
    "differences take the splits into account."
)


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` compared with those of `second`; every difference is first minus second. It describes the
    scores. What decides is the posterior.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates, and `num_pairs` is their number. With two or more pairs (`paired`), `mean_difference` and `interval`
    (95%, Student's t) are of the paired differences. Otherwise they are of the two samples (Welch's t).

    With `minimise`, lower scores are better.
    """

    first: str
    second: str
    minimise: bool = False
    paired_differences: Tuple[float, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[t_tests.Interval] = None

    @property
    def num_pairs(self) -> int:
        return len(self.paired_differences)

    @property
    def paired(self) -> bool:
        return self.num_pairs > 1

    @property
    def num_ahead(self) -> int:
        """The number of shared splits on which `first` is better."""
        return sum((difference < 0) if self.minimise else (difference > 0) for difference in self.paired_differences)

    def in_words(self, decimals: int) -> str:
        if self.mean_difference is None:
            return f"{self.first} and {self.second} cannot be compared because one has no scores."
        interval = f" (95% interval {interval_text(self.interval, decimals)})" if self.interval else ""
        runs = count_text(self.num_pairs, "shared split") if self.paired else "unpaired runs"
        difference = number_text(self.mean_difference, decimals, sign="+")
        return f"{self.first} minus {self.second} is {difference}{interval}, over {runs}."


def compare_scores(first: CandidateResult, second: CandidateResult, *, minimise: bool = False) -> Comparison:
    """Compare two candidates."""
    differences = t_tests.differences_on_shared_splits(
        (first.split_seeds, first.scores), (second.split_seeds, second.scores)
    )
    mean_difference: Optional[float] = None
    interval: Optional[t_tests.Interval] = None
    if len(differences) > 1:
        mean_difference, interval = float(np.mean(differences)), t_tests.compute_mean_interval(differences)
    elif first.scores and second.scores:
        mean_difference = float(np.mean(first.scores) - np.mean(second.scores))
        if min(len(first.scores), len(second.scores)) >= t_tests.MIN_NUM_SCORES:
            test = t_tests.TTest.welch(np.array(first.scores), np.array(second.scores))
            interval = test.interval(t_tests.INTERVAL_LEVEL)
    return Comparison(first.name, second.name, minimise, tuple(differences.tolist()), mean_difference, interval)


@dataclass(frozen=True)
class PathPoint:
    """P(best) after this number of finished evaluations. `prob_best` has the active candidates."""

    num_evaluations: int
    prob_best: Mapping[str, float]


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(Printable):
    """A report on a selection, on a table of scores, or on two of their candidates: the result, and the runs behind it.
    Whatever follows from these is computed once, when a page asks for it.

    Scores have their natural sign; with `result.minimise`, lower scores are better.

    Attributes:
        source: the directory of the selection, or the name of the table.
        result: the content of `selection.json` at this moment. Its `strategy` is empty for a table.
        history: all runs.
        strategy: what decides. Of a table, the strategy of `fiesta next`.
        table_notes: what the reader of a table noted.
        meta: the facts about a selection in its store, `stored_candidates` its candidates there, and `settings` its
            settings.
        read_back: what was understood of a table, and `table_files` its files.
        whole: the report on all candidates of the source, for a report on two of them.
        confirmations: the confirmations of the selection, in order, or the one that it is itself.
    """

    source: str
    result: Result
    history: History
    strategy: Strategy
    table_notes: Tuple[str, ...] = ()
    meta: Optional[Meta] = None
    stored_candidates: Tuple[Candidate, ...] = ()
    settings: Any = None
    read_back: "Optional[RunTable]" = None
    table_files: Tuple[str, ...] = ()
    whole: "Optional[Report]" = None
    confirmations: Tuple[Confirmation, ...] = ()

    @property
    def is_selection(self) -> bool:
        """True if runs were chosen one after the other. The scores of a table have no order."""
        return bool(self.result.strategy)

    @property
    def is_pair(self) -> bool:
        return self.whole is not None

    @property
    def is_confirmation(self) -> bool:
        """True if this selection is the confirmation of another one."""
        return self.meta is not None and self.meta.kind == "confirmation"

    @property
    def belief(self) -> Belief:
        return self.strategy.belief

    @property
    def title(self) -> str:
        result = self.result
        if self.is_pair:
            return join_some([candidate.name for candidate in result.candidates], " against ")
        subject = "Selection" if self.is_selection else "Scores"
        return f"{subject} among {len(result.candidates)} {result.words.candidates} by {result.metric_text}"

    @cached_property
    def decision(self) -> Tuple[str, ...]:
        """The decision, and what it rests on, sentence by sentence."""
        if self.is_selection and not self.is_pair:
            sentences = words.selection_in_words(self.result)
        else:
            pair = self.comparisons[0].in_words(self.result.decimals) if self.is_pair else ""
            sentences = words.decision_in_words(self.result, pair=pair)
        extra = words.single_runs_in_words(self.result), words.min_score_in_words(self.result)
        return tuple(filter(None, (*sentences, *extra, *self.confirmation_sentences, *self.table_notes)))

    @property
    def confirmation_sentences(self) -> Tuple[str, ...]:
        """The verdicts of the confirmations."""
        return tuple(text for confirmation in self.confirmations for text in confirmation_in_words(confirmation))

    @cached_property
    def notes(self) -> Tuple[str, ...]:
        shares_splits = any(len(set(c.split_seeds)) < len(c.split_seeds) for c in self.result.compared)
        lines = () if self.read_back is None else self.read_back.lines
        notes = (*words.changes_in_words(self.meta, self.result.words), *lines)
        if self.result.num_brought:
            notes = (*notes, f"Runs marked as brought were made before the selection began. {BROUGHT_CAUTION}")
        return (*notes, SHARED_SPLITS_NOTE) if shares_splits else notes

    @cached_property
    def legend(self) -> Tuple[str, ...]:
        """The values of candidates that are trials of a study."""
        trials = trials_of({candidate.name: candidate for candidate in self.stored_candidates})
        return tuple(f"{name}: {Point(trials[name].values).text}" for name in self.history.candidates if name in trials)

    @cached_property
    def path(self) -> Tuple[PathPoint, ...]:
        """P(best) over the runs."""
        return compute_belief_path(with_everybody(self.history, self.belief), self.belief)

    @cached_property
    def comparisons(self) -> Tuple[Comparison, ...]:
        """The leading candidate compared with every other that has a score, or the two that you asked for."""
        result = self.result
        first = result.candidates[0] if self.is_pair else result.leader
        others = [
            c for c in result.compared if first is not None and c.name != first.name and (self.is_pair or c.scores)
        ]
        return tuple(compare_scores(first, other, minimise=result.minimise) for other in others)

    def candidate(self, name: str) -> CandidateResult:
        """Return one candidate.

        Raises:
            ConfigError: if no candidate has this name.
        """
        candidates = {candidate.name: candidate for candidate in self.result.candidates}
        if name not in candidates:
            raise ConfigError(f"the report has no candidate '{name}'; its candidates: {join_some(candidates)}.")
        return candidates[name]


@show.register
def _(report: Report) -> TerminalLines:
    return [candidate_table(report.result, title=report.result.metric_text), *report.decision]


def compute_belief_path(history: History, belief: Belief) -> Tuple[PathPoint, ...]:
    """Compute P(best) after each evaluation, at most `MAX_PATH_POINTS` times, as in figure 2 of the FIESTA paper. A
    point has the candidates that are active at the end and had begun by then."""
    num_runs = len(history.evaluations)
    run_counts = np.unique(np.linspace(num_runs, 1, num=min(num_runs, MAX_PATH_POINTS), dtype=int)) if num_runs else []
    points: List[PathPoint] = []
    prefix = history.first_evaluations(0)
    for num_evaluations in map(int, run_counts):
        prefix = prefix.with_finished(history.evaluations[len(prefix.evaluations) : num_evaluations])
        names = tuple(name for name in prefix.active if prefix.num_finished(name))
        active_history = prefix if names == prefix.active else replace(prefix, candidates=names, withdrawn=frozenset())
        points.append(PathPoint(num_evaluations, analyse(active_history, belief).prob_best))
    return tuple(point for point in points if point.prob_best)
