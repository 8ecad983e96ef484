"""What the terminal shows, as rich tables."""

from typing import Any, Mapping, Optional

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.reports.summary import probability_text


def candidate_table(title: str, *, running: bool) -> Table:
    """An empty table of candidates, narrow enough for 80 columns; with `running`, for a selection under way."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("candidate", overflow="fold")
    for column in ("evaluations", "running", "failed", "mean", "sd", "P(best)", "seconds"):
        if running or column != "running":
            table.add_column(column, justify="right", no_wrap=True)
    return table


def add_candidate(table: Table, candidate: Mapping[str, Any], *, running: Optional[int] = None) -> None:
    """Add one entry of `candidates` in `selection.json` to a table."""
    probability = "withdrawn" if candidate["withdrawn"] else probability_text(candidate["prob_best"])
    table.add_row(
        escape(candidate["name"]),
        str(candidate["num_evaluations"]),
        *([] if running is None else [str(running or "")]),
        str(candidate["failures"] or ""),
        _number(candidate["mean"]),
        _number(candidate["sd"]),
        probability,
        f"{candidate['seconds']:.0f}",
    )


def _number(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.4f}"


def summary_table(summary: Mapping[str, Any]) -> Table:
    """The candidates of a `selection.json`."""
    table = candidate_table(f"test {summary['metric']}", running=False)
    for candidate in summary["candidates"]:
        add_candidate(table, candidate)
    return table


def plan_table(plan: Any, console: Console) -> None:
    """What a dry run found: candidates, pool, split sizes, strategy, and the least and most trainings."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("candidate", overflow="fold")
    table.add_column("parameters", justify="right")
    table.add_column("metrics it reports", overflow="fold")
    for name, preparation in plan.preparations.items():
        table.add_row(escape(name), f"{preparation.num_parameters:,}", ", ".join(sorted(preparation.metrics)))
    console.print(table)
    pool = plan.pool
    official = ", ".join(f"{part} {size}" for part, size in pool.official.items())
    console.print(f"Pool: {pool.size} instances (official parts: {official}).", soft_wrap=True)
    groups = f"{pool.num_groups} groups of equal {pool.group_by} kept whole" if pool.group_by else "no groups"
    about = "about " if pool.group_by else ""
    sizes = ", ".join(f"{part} {about}{size}" for part, size in pool.targets.items())
    console.print(f"Every split: {sizes}; {groups}.", soft_wrap=True)
    options = {key: value for key, value in plan.strategy.items() if key not in ("type", "belief")}
    if "stop" in options:
        options["stop"] = options["stop"]["type"]
    strategy = ", ".join(f"{key} {value}" for key, value in options.items())
    console.print(
        f"Strategy: {plan.strategy['type']} ({strategy or 'defaults'}), belief {plan.strategy['belief']['type']}."
    )
    console.print(
        f"It takes at least {plan.least} and at most {plan.most} trainings. Nothing was trained.", soft_wrap=True
    )
