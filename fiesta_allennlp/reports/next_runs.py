"""The answer of `fiesta-next`: a table, sentences and plain data."""

from typing import Any, Dict, Iterator

from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import number_table, remaining_text
from fiesta_allennlp.replays.next_runs import NextRuns
from fiesta_allennlp.selection.summary import number_text, probability_text, summarise_candidate


def next_content(found: NextRuns) -> Dict[str, Any]:
    """Return the answer as plain data; `stopped_by` is null while runs are needed."""
    decision, remaining = found.decision, found.remaining
    return {
        "leading": decision.best,
        "stopped_by": decision.stopped_by,
        "prob_best": dict(decision.prob_best),
        "num_runs": len(found.history.evaluations),
        "num_pending": len(found.history.pending),
        "splits": found.splits,
        "notes": list(found.notes),
        "remaining": None if remaining is None else {"low": remaining.low, "high": remaining.high},
        "next": [{"candidate": run.candidate, "split": run.split, "seed": run.seed} for run in found.runs],
    }


def next_table(found: NextRuns) -> Table:
    """Return the candidates with the scores that they have."""
    table = number_table("candidate", ("runs", "pending", "failed", "mean", "sd", "P(best)"))
    for name in found.history.candidates:
        told = summarise_candidate(found.history, found.decision, name)
        counts = (told.num_evaluations, found.history.num_pending(name), told.failures)
        table.add_row(escape(name), *map(str, counts), number_text(told.mean), number_text(told.sd), told.standing)
    return table


def next_in_words(found: NextRuns) -> Iterator[str]:
    """Yield the answer in words, a sentence or a run on each line."""
    decision, target = found.decision, found.confidence
    if decision.best is None:
        yield "P(best) is not available yet."
    else:
        aim = "" if target is None else f", target {target:g}"
        prob = decision.prob_best.get(decision.best)
        sure = "" if prob is None else f" (P(best) {probability_text(prob)}{aim})"
        verb = "is the best" if decision.stopped_by == "confidence" else "leads"
        yield f"{decision.best} {verb}{sure}{remaining_text(found.remaining)}."
    yield from found.notes
    if decision.stopped_by is not None:
        yield f"Stop: the selection ended by {decision.stopped_by}. No further run is needed."
    elif not found.runs:
        yield f"Wait: {len(found.history.pending)} runs have no score yet."
    else:
        yield "Run next:"
    for run in found.runs:
        yield f"  {run.candidate}" + (f", split {run.split}" if run.split else "") + f", seed {run.seed}"
