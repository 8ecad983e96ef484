"""What `fiesta-search` says of both stages of a search, and its result for Python."""

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from fiesta_allennlp.names import legend
from fiesta_allennlp.reports.results import SelectionResult
from fiesta_allennlp.reports.screening import finalists_in_words, finalists_of
from fiesta_allennlp.searches.search import SearchPlan, SearchSummary
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.summary import count_text, duration_text, number_text


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The result of a search.

    `screening` is the content of `screening/selection.json`. Its `candidates` are the screened configs in their order
    as finalists, each with `name`, `values`, `score` and `seconds`. `selection` is the result of the second stage. It
    is None if the search stopped in the first stage. `sentences` compare the order of the screening with the fresh
    runs.
    """

    screening: Mapping[str, Any]
    selection: Optional[SelectionResult]
    sentences: Tuple[str, ...] = ()

    def __repr__(self) -> str:
        told = [] if self.selection is None else [repr(self.selection)]
        return "\n".join([*told, *self.sentences])


def search_in_words(found: SearchSummary) -> Tuple[str, ...]:
    """Describe how the screening ended and how the fresh runs changed its order, in one or two sentences each."""
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


def search_plan_in_words(plan: SearchPlan) -> Tuple[str, ...]:
    """Describe what a search would do."""
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
