"""What the terminal shows, as rich tables."""

from typing import Any, Mapping, Optional

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.reports.summary import probability_text


def candidate_table(title: str, metric: str) -> Table:
    """An empty table of candidates, for a running selection or a finished one."""
    table = Table(title=title, title_justify="left")
    table.add_column("candidate", overflow="fold")
    for column in ("evaluations", "running", "failures", f"mean {metric}", "sd", "P(best)", "seconds"):
        table.add_column(column, justify="right")
    return table


def add_candidate(table: Table, candidate: Mapping[str, Any], *, running: str = "") -> None:
    """Add one entry of `candidates` in `selection.json` to a table."""
    name = escape(candidate["name"]) + (" (withdrawn)" if candidate["withdrawn"] else "")
    table.add_row(
        name,
        str(candidate["num_evaluations"]),
        running,
        str(candidate["failures"] or ""),
        _number(candidate["mean"]),
        _number(candidate["sd"]),
        probability_text(candidate["prob_best"]),
        f"{candidate['seconds']:.0f}",
    )


def _number(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.4f}"


def summary_table(summary: Mapping[str, Any]) -> Table:
    """The candidates of a `selection.json`."""
    table = candidate_table("", summary["metric"])
    for candidate in summary["candidates"]:
        add_candidate(table, candidate)
    return table


def plan_table(plan: Any, console: Console) -> None:
    """What a dry run found: candidates, pool, split sizes, strategy, and the least and most trainings."""
    table = Table()
    table.add_column("candidate", overflow="fold")
    table.add_column("parameters", justify="right")
    table.add_column("metrics it reports", overflow="fold")
    for name, preparation in plan.preparations.items():
        table.add_row(escape(name), f"{preparation.num_parameters:,}", ", ".join(sorted(preparation.metrics)))
    console.print(table)
    pool = plan.pool
    official = ", ".join(f"{part} {size}" for part, size in pool.official.items())
    console.print(f"Pool: {pool.size} instances (official parts: {official}).")
    groups = f"{pool.num_groups} groups of equal {pool.group_by} kept whole" if pool.group_by else "no groups"
    about = "about " if pool.group_by else ""
    sizes = ", ".join(f"{part} {about}{size}" for part, size in pool.targets.items())
    console.print(f"Every split: {sizes}; {groups}.")
    strategy = ", ".join(f"{key} {value}" for key, value in plan.strategy.items() if key not in ("type", "belief"))
    console.print(
        f"Strategy: {plan.strategy['type']} ({strategy or 'defaults'}), belief {plan.strategy['belief']['type']}."
    )
    console.print(f"It takes at least {plan.least} and at most {plan.most} trainings. Nothing was trained.")
