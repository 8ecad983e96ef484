"""The first stage of a search, compared with the fresh runs of its finalists."""

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.names import legend
from fiesta_allennlp.searches.screener import failed_configs
from fiesta_allennlp.searches.search_settings import stored_search
from fiesta_allennlp.searches.searchers.covariances import pareto_front
from fiesta_allennlp.seeding import second_seed
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.store import reading
from fiesta_allennlp.selection.summary import CandidateSummary, count_text, duration_text, number_text

if TYPE_CHECKING:
    from fiesta_allennlp.searches.search import SearchPlan, SearchSummary


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
        num_run = len(self.scores) + self.num_failures
        failed = f"; {self.num_failures} failed" if self.num_failures else ""
        ran = (
            f"The screening ran {num_run} of {count_text(self.num_points, 'config')} once, chosen by {self.searcher} "
            f"and scored on the validation set{failed}. This took {duration_text(self.seconds)} across all workers."
        )
        return (ran, *finalists_in_words(self.finalists))

    @property
    def front(self) -> Tuple[int, ...]:
        """Places in `scores` of configs that no other config beats in score and in seconds, if both are objectives."""
        if self.second_objective is None:
            return ()
        scores, seconds = np.array(self.scores) * self.metric.sign, np.array(self.run_seconds)
        return tuple(np.flatnonzero(pareto_front(np.column_stack([scores, -seconds]))).tolist())


def finalists_of(
    screened: Mapping[str, float], selected: Sequence[CandidateSummary], metric: Metric
) -> Tuple[Finalist, ...]:
    """Return the finalists in both stages. `screened` has the scores of the first stage by name, and `selected` has the
    finalists in that order."""
    means = {c.name: metric.sign * c.mean for c in selected if c.mean is not None}
    by_mean = sorted(means, key=lambda name: -means[name])
    return tuple(
        Finalist(
            name=candidate.name,
            place_before=place,
            score_before=screened[candidate.name],
            place_after=by_mean.index(candidate.name) + 1 if candidate.name in means else None,
            mean_after=candidate.mean,
            num_runs=candidate.num_evaluations,
        )
        for place, candidate in enumerate((c for c in selected if c.name in screened), start=1)
    )


def screening_report(
    directory: RunDirectory, seed: Optional[str], selected: Sequence[CandidateSummary]
) -> Optional[ScreeningReport]:
    """Report on the first stage of a search whose second stage has this master seed. None if the selection in the
    directory is not that second stage."""
    with reading(directory.screening) as store:
        meta, candidates = store.meta(), store.candidates()
        if meta.seed is None or str(second_seed(int(meta.seed))) != seed:
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
        finalists=finalists_of({e.request.candidate: e.score for e in history.evaluations}, selected, metric),
        scores=tuple(evaluation.score for evaluation in history.evaluations),
        run_seconds=tuple(evaluation.seconds for evaluation in history.evaluations),
        second_objective=settings.second_objective,
    )


def finalists_in_words(finalists: Sequence[Finalist]) -> Tuple[str, ...]:
    """Describe how the fresh runs changed the order of the screening; empty before any has finished."""
    placed = [finalist for finalist in finalists if finalist.place_after is not None]
    if not placed:
        return ()
    moved = sum(finalist.place_after != finalist.place_before for finalist in placed)
    winner = min(placed, key=lambda finalist: finalist.place_after or 0)
    return (
        f"{moved} of the {len(placed)} finalists changed place. {winner.name}, now first, was number "
        f"{winner.place_before} in the screening. Its score there was {number_text(winner.score_before)}, and its mean "
        f"over {count_text(winner.num_runs, 'fresh run')} is {number_text(winner.mean_after)}.",
    )


def search_in_words(found: "SearchSummary") -> Tuple[str, ...]:
    """Describe how the screening ended and how the fresh runs changed its order."""
    screened, selected = found.screening, found.selection
    scores = {entry["name"]: entry["score"] for entry in screened["candidates"] if entry["score"] is not None}
    best = screened["candidates"][0]["name"] if screened["best"] else None
    num_failed = len(screened["candidates"]) - len(scores)
    failed = f", {num_failed} failed" if num_failed else ""
    leads = "" if best is None else f" Best validation score: {number_text(scores[best])}, {best}."
    took = f"{duration_text(screened['seconds'])} across all workers"
    first = f"Screened {count_text(screened['num_evaluations'], 'config')} in {took}{failed}.{leads}"
    shown = [best] if selected is None else [candidate.name for candidate in selected["candidates"]]
    values = legend({e["name"]: e.get("values", "") for e in screened["candidates"] if e["name"] in shown})
    if selected is None:
        return (_ENDINGS.get(screened["stopped_by"], f"Stopped by {screened['stopped_by']}."), first, *values)
    finalists = finalists_of(scores, selected["candidates"], Metric.of(screened["metric"]))
    return (first, *finalists_in_words(finalists), *values)


_ENDINGS = {
    "failures": "No comparison: too many runs of the screening failed. The reasons are in the lines above.",
    "interrupted": "Interrupted in the screening; nothing that finished is lost.",
    "max_hours": "The screening reached the limit set by --max-hours before it was finished.",
}


def search_plan_in_words(plan: "SearchPlan") -> Tuple[str, ...]:
    pool, metric = plan.prepared.pool, plan.prepared.checked.settings.scored_by
    run = (f"A run of the first config: {plan.command}",) if plan.command else ()
    return (
        f"The screening would run {plan.num_configs} of {plan.num_points} configs once, "
        f"{plan.prepared.executor.describe()}, and score them by {metric.text} on the validation set.",
        f"Some of the configs: {'; '.join(plan.examples)}.",
        *run,
        f"The best {plan.num_finalists} would then be the candidates of a selection with fresh runs.",
        f"Data of the screening: {count_text(pool.size, 'instance')}"
        f"{f' in {pool.num_groups} groups' if pool.group_by else ', no groups'}.",
    )
