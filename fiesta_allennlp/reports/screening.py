"""The first stage of a search, and what the fresh runs of its finalists made of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.names import legend
from fiesta_allennlp.records import History
from fiesta_allennlp.searches.screener import failed_configs
from fiesta_allennlp.searches.search_settings import stored_search
from fiesta_allennlp.searches.searchers.covariances import pareto_front
from fiesta_allennlp.seeding import second_seed
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.store import reading
from fiesta_allennlp.selection.summary import CandidateSummary, count_text, duration_text, number_text

if TYPE_CHECKING:
    from fiesta_allennlp.searches.search import SearchPlan, SearchSummary

NOTHING_FAILS_FOR_GOOD = 10**9
"""A config is never withdrawn from a screening: it has one run."""


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
    """The first stage of a search. `scores` and `run_seconds` are of the configs that finished, in that order, and
    `second_objective` is what else was to be minimised."""

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
        best: List[float] = []
        for score in self.scores:
            better = max if not self.metric.minimise else min
            best.append(better(best[-1], score) if best else score)
        return tuple(best)

    @property
    def sentences(self) -> Tuple[str, ...]:
        num_run = len(self.scores) + self.num_failures
        failed = f"; {self.num_failures} failed" if self.num_failures else ""
        told = (
            f"The screening ran {num_run} of {count_text(self.num_points, 'config')} once, chosen by {self.searcher} "
            f"and scored on the validation set{failed}. This took {duration_text(self.seconds)} across all workers."
        )
        return (told, *finalists_in_words(self.finalists))

    @property
    def front(self) -> Tuple[int, ...]:
        """Places in `scores` of configs that no other beats in score and seconds, if seconds were an objective."""
        if self.second_objective is None:
            return ()
        scores, seconds = np.array(self.scores) * self.metric.sign, np.array(self.run_seconds)
        return tuple(np.flatnonzero(pareto_front(np.column_stack([scores, -seconds]))).tolist())


def finalists_of(
    screened: Sequence[Mapping[str, Any]], selected: Sequence[CandidateSummary], metric: Metric
) -> Tuple[Finalist, ...]:
    """Return the finalists in both stages. `screened` are configs, the best first, and `selected` the candidates after
    them."""
    known = {candidate.name: candidate for candidate in selected}
    by_mean = sorted(
        (candidate for candidate in selected if candidate.mean is not None),
        key=lambda candidate: -metric.sign * (candidate.mean or 0.0),
    )
    places = {candidate.name: place for place, candidate in enumerate(by_mean, start=1)}
    before = [entry for entry in screened if entry["name"] in known and entry["score"] is not None]
    return tuple(
        Finalist(
            name=entry["name"],
            place_before=place,
            score_before=entry["score"],
            place_after=places.get(entry["name"]),
            mean_after=known[entry["name"]].mean,
            num_runs=known[entry["name"]].num_evaluations,
        )
        for place, entry in enumerate(before, start=1)
    )


def screening_report(
    directory: RunDirectory, seed: Optional[str], selected: Sequence[CandidateSummary]
) -> Optional[ScreeningReport]:
    """Report on the first stage of the search whose second stage, with this master seed, is in the directory. None
    where the selection there is another one."""
    with reading(directory.screening) as store:
        meta, candidates = store.meta(), store.candidates()
        history = store.history(max_failures=NOTHING_FAILS_FOR_GOOD)
    if meta.seed is None or str(second_seed(int(meta.seed))) != seed:
        return None
    settings = stored_search(meta)
    metric = settings.scored_by
    return ScreeningReport(
        num_points=len(candidates),
        num_failures=len(failed_configs(history)),
        searcher=settings.searcher_params()["type"],
        metric=metric,
        seconds=sum(evaluation.seconds for evaluation in history.evaluations),
        finalists=finalists_of(_in_order(history, selected), selected, metric),
        scores=tuple(evaluation.score for evaluation in history.evaluations),
        run_seconds=tuple(evaluation.seconds for evaluation in history.evaluations),
        second_objective=settings.second_objective,
    )


def _in_order(history: History, selected: Sequence[CandidateSummary]) -> List[Dict[str, Any]]:
    scores = {evaluation.request.candidate: evaluation.score for evaluation in history.evaluations}
    return [{"name": c.name, "score": scores[c.name]} for c in selected if c.name in scores]


def finalists_in_words(finalists: Sequence[Finalist]) -> Tuple[str, ...]:
    """Say what the fresh runs made of the order of the screening; nothing before they have finished."""
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
    best = screened["candidates"][0] if screened["best"] else None
    num_failed = sum(entry["score"] is None for entry in screened["candidates"])
    failed = f", {num_failed} failed" if num_failed else ""
    leads = "" if best is None else f" Best validation score: {number_text(best['score'])}, {best['name']}."
    took = f"{duration_text(screened['seconds'])} across all workers"
    first = f"Screened {count_text(screened['num_evaluations'], 'config')} in {took}{failed}.{leads}"
    if selected is None:
        return (_why(screened["stopped_by"]), first, *legend({best["name"]: best.get("values", "")} if best else {}))
    values = {entry["name"]: entry.get("values", "") for entry in screened["candidates"]}
    finalists = finalists_of(screened["candidates"], selected["candidates"], Metric.of(screened["metric"]))
    named = {candidate.name: values.get(candidate.name, "") for candidate in selected["candidates"]}
    return (first, *finalists_in_words(finalists), *legend(named))


def _why(stopped_by: str) -> str:
    return {
        "failures": "No comparison: too many runs of the screening failed. See their reasons in the lines above.",
        "interrupted": "Interrupted in the screening; nothing that finished is lost.",
        "max_hours": "The screening is not over: it took all that --max-hours allows.",
    }.get(stopped_by, f"The screening ended by {stopped_by}.")


def search_plan_in_words(plan: "SearchPlan") -> Tuple[str, ...]:
    pool, metric = plan.prepared.pool, plan.prepared.checked.settings.scored_by
    run = (f"A run of the first config: {plan.command}",) if plan.command else ()
    return (
        f"The screening would run {plan.num_configs} of {plan.num_points} configs once, "
        f"{plan.prepared.executor.describe()}, and score them by {metric.text} on the validation set.",
        f"Some of the configs: {'; '.join(plan.examples)}.",
        *run,
        f"The {plan.num_finalists} best would then be the candidates of a selection with fresh runs.",
        f"The data of the screening: {count_text(pool.size, 'instance')}"
        f"{f' in {pool.num_groups} groups' if pool.group_by else ', no groups'}.",
    )
