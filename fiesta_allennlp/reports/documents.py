"""What a selection by documents came to: what `selection.json` has beside other selections, a table, and words."""

from typing import Any, List, Mapping, Tuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.reports.words import leaning, running_in_words
from fiesta_allennlp.selection.summary import count_text, probability_text


def documents_table(summary: Mapping[str, Any]) -> Table:
    """The systems of a `selection.json`."""
    about = summary["documents"]
    table = Table(
        title=f"{summary['metric']}, {count_text(about['num_documents'], 'document')} at hand",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    table.add_column("system", overflow="fold")
    for column in ("documents", "failed", summary["metric"], "P(best)", "queries", "cost", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    for candidate in summary["candidates"]:
        measure = candidate["measure"]
        table.add_row(
            escape(candidate["name"]),
            str(candidate["num_documents"]),
            str(candidate["failures"] or ""),
            "-" if measure is None else f"{measure:.4f}",
            "withdrawn" if candidate["withdrawn"] else probability_text(candidate["prob_best"]),
            str(candidate["num_queries"]),
            f"{candidate['cost']:g}",
            f"{candidate['seconds']:.0f}",
        )
    return table


def documents_in_words(summary: Mapping[str, Any]) -> str:
    """The decision, what it cost, and what a test of a fixed size would have needed."""
    return "\n".join(documents_sentences(summary))


def documents_sentences(summary: Mapping[str, Any], *, running: bool = False) -> Tuple[str, ...]:
    """The same one by one, also of a selection that is at work."""
    number = sum(candidate["num_documents"] for candidate in summary["candidates"])
    asked = f"{count_text(number, 'answered document')} of {len(summary['candidates'])} systems"
    if summary["num_failures"]:
        asked += f" and {count_text(summary['num_failures'], 'failure')}"
    decision = running_in_words(summary, asked) if running else _decision(summary, asked)
    return tuple(part for part in (decision, _cost(summary), _baselines(summary)) if part)


def _decision(summary: Mapping[str, Any], asked: str) -> str:
    best, stopped_by = summary["best"], summary["stopped_by"]
    entries = {candidate["name"]: candidate for candidate in summary["candidates"]}
    if stopped_by == "documents":
        lead = entries[best]
        sure = (
            ""
            if lead["prob_best"] is None
            else (
                f" That it is the best for other documents too has probability {probability_text(lead['prob_best'])}."
            )
        )
        number, fewer = summary["documents"]["num_documents"], _asked_about_fewer(summary)
        what = f"All {number} documents have been asked about: {best} is the best on this file"
        if best in fewer:
            what = f"No documents are left for what the plan asks next: {best} leads"
        elif fewer:
            what = f"{best} is the best of the systems that were asked about all {number} documents"
            improbable = ", for it had become improbable that one of them is the best"
            sure += f" {' and '.join(fewer)} saw fewer{'' if 'budget' in summary['strategy'] else improbable}."
        return f"{what}, with {summary['metric']} {lead['measure']:.4f}{_equals(entries, best)}, after {asked}.{sure}"
    if stopped_by == "interrupted":
        return f"Interrupted after {asked}; no answer is lost. {leaning(summary)}".strip()
    if stopped_by == "failures":
        left = f"only {best} is left" if best else "no system is left that answered"
        return f"No comparison: after {asked} {left}, because the others failed too often. See their reasons."
    if stopped_by == "max_evaluations":
        return f"Undecided after {asked}, the most that was allowed. {leaning(summary)}".strip()
    margin = f" within {summary['margin']:g} of the best" if summary["margin"] else " the best"
    confidence = summary["confidence"]
    sure = "" if confidence is None else f" with probability {probability_text(confidence)}"
    return f"{best} is{margin}{sure}, by {summary['metric']}, after {asked}."


def _asked_about_fewer(summary: Mapping[str, Any]) -> List[str]:
    """The systems that were not asked about all documents, failed ones counted as asked."""
    about = summary["documents"]
    asked = {e["name"]: e["num_documents"] + e["failures"] * about["batch_size"] for e in summary["candidates"]}
    return [
        e["name"] for e in summary["candidates"] if not e["withdrawn"] and asked[e["name"]] < about["num_documents"]
    ]


def _equals(entries: Mapping[str, Mapping[str, Any]], best: str) -> str:
    """The systems that did as well as the best one on as many documents, in words."""
    wanted = [entries[best][key] for key in ("measure", "num_documents")]
    names = [
        name
        for name, entry in entries.items()
        if name != best and not entry["withdrawn"] and [entry["measure"], entry["num_documents"]] == wanted
    ]
    return f", level with {' and '.join(names)}" if names else ""


def _cost(summary: Mapping[str, Any]) -> str:
    number = summary["num_queries"]
    if number is None:
        return ""
    made = "1 query was" if number == 1 else f"{number} queries were"
    return f"{made} made, at a cost of {summary['cost']:g} in all."


def _baselines(summary: Mapping[str, Any]) -> str:
    found = summary["fixed_size"]
    if found is None or found["baseline_2"] is None:
        return ""
    num_systems = sum(not candidate["withdrawn"] for candidate in summary["candidates"])
    all_known = (
        ""
        if num_systems < 3
        else (f" had these two been known, and {found['baseline_all']} for all {num_systems} systems")
    )
    return (
        f"For the difference seen between {found['best']} and {found['second']}, a paired t-test of fixed size (5 % "
        f"error, 80 % power) would have needed {found['baseline_2']} documents{all_known}, each document put to every "
        "one of them."
    )


def show_plan(plan: Any, console: Console) -> None:
    """What a dry run found: systems, answers that are kept, documents, strategy, and the least and most evaluations."""
    prepared, choice = plan.prepared, plan.prepared.choice
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("system", overflow="fold")
    table.add_column("type")
    for column in ("cost of a query", "answers kept"):
        table.add_column(column, justify="right")
    for name, system in prepared.systems.items():
        kept = plan.kept.get(name, 0)
        table.add_row(escape(name), prepared.given[name].config["type"], f"{system.cost:g}", str(kept or ""))
    console.print(table)
    file = prepared.file
    console.print(
        f"{count_text(len(file.documents), 'document')} with {count_text(file.num_items, 'item')} in {file.path}.",
        soft_wrap=True,
    )
    options = {key: value for key, value in choice.strategy_params.items() if key not in ("type", "belief", "stop")}
    strategy = ", ".join(f"{key} {value}" for key, value in options.items())
    belief = choice.strategy_params["belief"]["type"]
    console.print(f"Strategy: {choice.strategy_params['type']} ({strategy or 'defaults'}), belief {belief}.")
    console.print(
        f"It takes at least {plan.least} and at most {plan.most} evaluations by {choice.task.metric}. "
        "Nothing was asked.",
        soft_wrap=True,
    )
