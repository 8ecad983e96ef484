"""The part of `selection.json` that only a selection by documents has."""

from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from fiesta_allennlp.documents.answers import Charge
from fiesta_allennlp.probability.power import fixed_size
from fiesta_allennlp.records import History
from fiesta_allennlp.selection.summary import CandidateSummary

ABOUT_TRAININGS = ("seconds_of_equal_allocation", "ahead_on_shared_splits")


@dataclass(frozen=True)
class SystemSummary(CandidateSummary):
    """A system in numbers. `measure` is over all that it was asked about, None before its first answer. Kept answers
    are in neither `num_queries` nor `cost`, which are None where they are not known."""

    measure: Optional[float] = None
    num_documents: int = 0
    num_queries: Optional[int] = None
    cost: Optional[float] = None


def add_documents(
    summary: Mapping[str, Any],
    history: History,
    *,
    measure: Callable[[History, str], float],
    charges: Optional[Mapping[str, Charge]],
    documents_of: Callable[[str, int], Tuple[int, ...]],
) -> Dict[str, Any]:
    """Return the summary of a selection with the facts about documents, and without those about training runs.

    Args:
        measure: of a candidate over all that it was asked about.
        charges: number of queries and their cost by candidate, those of kept answers left out; None where they are not
            known.
        documents_of: the documents of a candidate's replicate.
    """
    candidates = []
    for candidate in summary["candidates"]:
        name = candidate.name
        replicates = [e.request.replicate for e in history.evaluations_of(name)]
        num_queries, cost = (None, None) if charges is None else charges.get(name, (0, 0.0))
        candidates.append(
            SystemSummary(
                **vars(candidate),
                measure=measure(history, name) if replicates else None,
                num_documents=sum(len(documents_of(name, replicate)) for replicate in replicates),
                num_queries=num_queries,
                cost=cost,
            )
        )
    kept = {key: value for key, value in summary.items() if key not in (*ABOUT_TRAININGS, "candidates")}
    known = charges is not None
    return {
        **kept,
        "num_queries": sum(candidate.num_queries or 0 for candidate in candidates) if known else None,
        "cost": sum(candidate.cost or 0.0 for candidate in candidates) if known else None,
        "fixed_size": _fixed_size(history, documents_of),
        "candidates": candidates,
    }


def _fixed_size(history: History, documents_of: Callable[[str, int], Tuple[int, ...]]) -> Any:
    """Return the sizes of tests for the difference that was seen; None where too little is known. In documents."""
    scores: Dict[str, Dict[int, float]] = {name: {} for name in history.active}
    batches: Dict[Tuple[int, ...], int] = {}
    for evaluation in history.evaluations:
        name, replicate = evaluation.request.key
        if name in scores:
            batch = documents_of(name, replicate)
            scores[name][batches.setdefault(batch, len(batches))] = evaluation.score
    found = fixed_size(scores) if len(scores) > 1 else None
    if found is None:
        return None
    size = max(map(len, batches))
    facts = asdict(found)
    for key in ("baseline_2", "baseline_all"):
        facts[key] = None if facts[key] is None else facts[key] * size
    facts["effect"] = None if abs(facts["effect"]) == float("inf") else facts["effect"]
    return facts
