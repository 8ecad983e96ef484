"""What a selection came to: `selection.json`, `evaluations.csv` and the decision in words. Read only."""

import csv
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import AbstractSet, Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.reports.seconds import duration_text, seconds_of_equal_allocation
from fiesta_allennlp.reports.shared_splits import shared_splits

CSV_COLUMNS = (
    "candidate",
    "replicate",
    "status",
    "score",
    "metric",
    "seconds",
    "split_seed",
    "random_seed",
    "numpy_seed",
    "pytorch_seed",
    "started_at",
    "error",
)


def summarise(
    history: History, decision: Decision, settings: Mapping[str, Any], *, removed: AbstractSet[str] = frozenset()
) -> Dict[str, Any]:
    """The content of `selection.json`. `settings` is copied in: metric, strategy, belief, splits, entropy.
    `removed` are the candidates that the user took out.

    A number that does not exist, such as the sd of one score, is `None`.
    """
    candidates = [summarise_candidate(history, decision, name, removed=name in removed) for name in history.candidates]
    return {
        "best": decision.best,
        "confidence": decision.confidence,
        "margin": decision.margin,
        "credible_margin": None if decision.credible_margin is None else asdict(decision.credible_margin),
        "stopped_by": decision.stopped_by,
        "num_evaluations": len(history.evaluations),
        "num_failures": len(history.failures),
        **settings,
        "ahead_on_shared_splits": ahead_on_shared_splits(history, decision.best),
        "seconds": sum(candidate["seconds"] for candidate in candidates),
        "seconds_of_equal_allocation": seconds_of_equal_allocation(candidates, decision.best),
        "candidates": candidates,
    }


def summarise_candidate(history: History, decision: Decision, name: str, *, removed: bool = False) -> Dict[str, Any]:
    """One entry of `candidates` in `selection.json`. `sd` has ddof 1; `seconds` is the sum over its evaluations, and
    `mean_seconds` the mean."""
    seconds = [e.seconds for e in history.evaluations if e.request.candidate == name]
    scores = history.scores(name)
    failures = [failure for failure in history.failures if failure.request.candidate == name]
    return {
        "name": name,
        "num_evaluations": len(scores),
        "mean": float(np.mean(scores)) if len(scores) else None,
        "sd": float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        "prob_best": decision.prob_best.get(name),
        "prob_within_margin": decision.prob_within_margin.get(name),
        "failures": len(failures),
        "failure_reasons": [f"{f.request.name} {f.kind}: {f.error}" for f in failures],
        "withdrawn": name in history.withdrawn,
        "withdrawn_because": _why_withdrawn(history.num_counted_failures(name), removed)
        if name in history.withdrawn
        else None,
        "seconds": sum(seconds),
        "mean_seconds": sum(seconds) / len(seconds) if seconds else None,
    }


def ahead_on_shared_splits(history: History, best: Optional[str]) -> Optional[Dict[str, Any]]:
    """Where another active candidate has the highest mean of all, but `best` is ahead on the splits that both have
    seen: who that is, on how many splits, and by how much."""
    if best is None or not len(history.scores(best)):
        return None
    means = {name: history.scores(name).mean() for name in history.active if len(history.scores(name))}
    other = max(means, key=lambda name: (means[name], name == best))
    seeds, differences = shared_splits(*((history.split_seeds(name), history.scores(name)) for name in (best, other)))
    if other == best or not seeds or differences.mean() <= 0:
        return None
    return {"of": other, "num_splits": len(seeds), "difference": float(differences.mean())}


def _why_withdrawn(num_failures: int, removed: bool) -> str:
    if removed:
        return "it was not given any more (--allow-removed); its evaluations are kept and play no part"
    return f"{count_text(num_failures, 'failure')}, as many as --max-failures allows"


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write in one step, so that a reader never sees half a file."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """`evaluations.csv` from the rows of a store: one line for every outcome, in order of finishing."""
    metrics: List[Dict[str, Any]] = [json.loads(row.get("metrics") or "{}") for row in rows]
    names = sorted({name for reported in metrics for name in reported})
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*CSV_COLUMNS, *(f"metric:{name}" for name in names)])
        for row, reported in zip(rows, metrics, strict=True):
            writer.writerow([*map(row.get, CSV_COLUMNS), *map(reported.get, names)])
    os.replace(part, path)


def in_words(summary: Mapping[str, Any]) -> str:
    """The decision in one or two sentences."""
    best, stopped_by = summary["best"], summary["stopped_by"]
    trained = f"{count_text(summary['num_evaluations'], 'evaluation')} of {len(summary['candidates'])} candidates"
    if summary["num_failures"]:
        trained += f" and {count_text(summary['num_failures'], 'failure')}"
    if stopped_by == "interrupted":
        return f"Interrupted after {trained}; nothing that finished is lost. {leaning(summary)}".strip()
    if stopped_by == "failures":
        left = f"only {best} is left" if best else "no candidate is left"
        return f"No comparison: after {trained} {left}, because the others failed too often. See their reasons."
    if stopped_by == "max_evaluations":
        return f"Undecided after {trained}, the most that was allowed. {leaning(summary)}".strip()
    if stopped_by == "max_hours":
        return f"Undecided after {trained}, in the time that was allowed. {leaning(summary)}".strip()
    margin = f" within {summary['margin']:g} of the best" if summary["margin"] else " the best"
    confidence = summary["confidence"]
    sure = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if summary["margin"] and confidence is not None:
        prob_best = next(c["prob_best"] for c in summary["candidates"] if c["name"] == best)
        sure += f" (the very best with {probability_text(prob_best)})"
    return f"{best} is{margin}{sure}, by {summary['metric']}, after {trained}.{_ahead(summary)}"


def savings_in_words(summary: Mapping[str, Any]) -> str:
    """The time saved against equal allocation, in a sentence; empty where there is nothing to compare or to boast."""
    equal, spent = summary["seconds_of_equal_allocation"], summary["seconds"]
    if equal is None or not equal > spent:
        return ""
    return (
        f"Training took {duration_text(spent)}, all workers together. Training every candidate as often as "
        f"{summary['best']} would have taken {duration_text(equal)}, so {1 - spent / equal:.0%} was saved."
    )


def _ahead(summary: Mapping[str, Any]) -> str:
    """Why a winner has not the highest mean of the table; empty where it has, or where the paired scores do not say."""
    ahead = summary["ahead_on_shared_splits"]
    if ahead is None:
        return ""
    return (
        f" {ahead['of']} has a higher mean, but not over the same splits: on the {ahead['num_splits']} that both have "
        f"seen, {summary['best']} is ahead by {ahead['difference']:.2g}."
    )


def leaning(summary: Mapping[str, Any]) -> str:
    """Between which two it stands, with their probabilities, and the margin that would decide it; empty where nothing
    can be said yet."""
    known = [c for c in summary["candidates"] if c["prob_best"] is not None]
    first = sorted(known, key=lambda c: -c["prob_best"])[:2]
    if len(first) < 2:
        return ""
    names = " and ".join(f"{c['name']} (best with probability {probability_text(c['prob_best'])})" for c in first)
    found = summary["credible_margin"]
    if found is None:
        return f"It stands between {names}."
    return f"It stands between {names}. With a margin of {found['margin']:g} it would be decided, for {found['best']}."


def probability_text(value: Optional[float]) -> str:
    """Three decimals, but never a rounded 0 or 1."""
    if value is None:
        return "-"
    return "> 0.999" if 0.9995 <= value < 1 else "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
