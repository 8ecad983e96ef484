"""The first stage of a search, compared with the fresh runs of its finalists."""

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.names import numbered_legend
from fiesta_allennlp.core.seeding import second_stage_seed
from fiesta_allennlp.reports.formats import render_paragraphs
from fiesta_allennlp.searches.screener import failed_configs
from fiesta_allennlp.searches.search_settings import stored_search
from fiesta_allennlp.searches.searchers.covariances import pareto_front
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.showing import Printable, TerminalLines, show
from fiesta_allennlp.selection.store import open_for_reading

if TYPE_CHECKING:
    from fiesta_allennlp.searches.search import StageResults


@dataclass(frozen=True)
class Finalist:
    """A config by place and validation score in the screening, and by place and mean of its fresh runs."""

    name: str
    place_before: int
    score_before: float
    place_after: Optional[int] = None
    mean_after: Optional[float] = None
    num_runs: int = 0

    @property
    def optimism(self) -> Optional[float]:
        """The score of the screening minus the mean of the fresh runs."""
        return None if self.mean_after is None else self.score_before - self.mean_after


@dataclass(frozen=True)
class ScreeningReport:
    """The first stage of a search. `scores` and `run_seconds` have one entry for each finished config, in order of
    finishing. `second_objective` is minimised too."""

    num_points: int
    num_failures: int
    searcher: str
    metric: Metric
    seconds: float
    finalists: Tuple[Finalist, ...]
    scores: Tuple[float, ...] = ()
    run_seconds: Tuple[float, ...] = ()
    second_objective: Optional[str] = None

    @property
    def best_so_far(self) -> Tuple[float, ...]:
        return tuple(accumulate(self.scores, min if self.metric.minimise else max))

    @property
    def sentences(self) -> Tuple[str, ...]:
        return tuple(render_paragraphs("search.j2", report=self, finalists=self.finalists, values=()))

    @property
    def pareto_front_rows(self) -> Tuple[int, ...]:
        """Places in `scores` of configs that no other config beats in score and in seconds, if both are objectives."""
        if self.second_objective is None:
            return ()
        scores, seconds = np.array(self.scores) * self.metric.sign, np.array(self.run_seconds)
        return tuple(np.flatnonzero(pareto_front(np.column_stack([scores, -seconds]))).tolist())


def compare_finalists(
    screening_scores: Mapping[str, float], fresh_results: Sequence[CandidateResult], metric: Metric
) -> Tuple[Finalist, ...]:
    """Return the finalists in both stages. `screening_scores` are by name, and `fresh_results` in the order
    of the screening."""
    means = {c.name: metric.sign * c.mean for c in fresh_results if c.mean is not None}
    names_by_mean = sorted(means, key=lambda name: -means[name])
    return tuple(
        Finalist(
            name=candidate.name,
            place_before=place_before,
            score_before=screening_scores[candidate.name],
            place_after=names_by_mean.index(candidate.name) + 1 if candidate.name in means else None,
            mean_after=candidate.mean,
            num_runs=candidate.num_evaluations,
        )
        for place_before, candidate in enumerate((c for c in fresh_results if c.name in screening_scores), start=1)
    )


def read_screening(
    directory: RunDirectory, selection_seed: Optional[str], fresh_results: Sequence[CandidateResult]
) -> Optional[ScreeningReport]:
    """Report on the first stage of a search whose second stage has this master seed. None if the selection in the
    directory is not that second stage."""
    with open_for_reading(directory.screening) as store:
        meta, candidates = store.meta(), store.candidates()
        if meta.seed is None or str(second_stage_seed(int(meta.seed))) != selection_seed:
            return None
        settings = stored_search(meta)
        history = store.history(max_failures=settings.max_failures)
    metric = settings.scored_by
    return ScreeningReport(
        num_points=len(candidates),
        num_failures=len(failed_configs(history)),
        searcher=settings.searcher_params()["type"],
        metric=metric,
        seconds=sum(evaluation.seconds for evaluation in history.evaluations),
        finalists=compare_finalists({e.request.candidate: e.score for e in history.evaluations}, fresh_results, metric),
        scores=tuple(evaluation.score for evaluation in history.evaluations),
        run_seconds=tuple(evaluation.seconds for evaluation in history.evaluations),
        second_objective=settings.second_objective,
    )


@dataclass(frozen=True, repr=False)
class SearchResult(Printable):
    """The result of a search.

    `screening` is the content of `screening/selection.json`. Its `candidates` are the screened configs in their order
    as finalists, each with `name`, `values`, `score` and `seconds`. `selection` is the result of the second stage. It
    is None if the search stopped in the first stage. `sentences` compare the order of the screening with the fresh
    runs.
    """

    screening: Mapping[str, Any]
    selection: Optional[Result]
    sentences: Tuple[str, ...] = ()


@show.register
def _(result: SearchResult) -> TerminalLines:
    return [*(() if result.selection is None else show(result.selection)), *result.sentences]


def search_in_words(summary: "StageResults") -> Tuple[str, ...]:
    """Describe how the screening ended and how the fresh runs changed its order."""
    screening, selection = summary.screening, summary.selection
    candidates: Sequence[CandidateResult] = () if selection is None else selection.candidates
    scores = {config.name: config.score for config in screening.candidates if config.score is not None}
    shown_names = {screening.leading} if selection is None else {candidate.name for candidate in candidates}
    shown_values = {config.name: config.values for config in screening.candidates if config.name in shown_names}
    template_values = {
        "report": None,
        "screened": screening,
        "is_over": selection is None,
        "num_failed": len(screening.candidates) - len(scores),
        "finalists": compare_finalists(scores, candidates, Metric.parse(screening.metric)),
        "values": numbered_legend(shown_values),
    }
    return tuple(render_paragraphs("search.j2", **template_values))
