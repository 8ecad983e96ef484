"""The tables of a report as rows of texts: the same in Markdown, LaTeX and HTML; and those of the terminal."""

from typing import Any, List, Mapping, Tuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import add_candidate, candidate_table, number_table
from fiesta_allennlp.reports.content import CandidateReport, Comparison, Report, TestResult
from fiesta_allennlp.reports.formats import MISSING, interval_text, p_value_text, share_text
from fiesta_allennlp.selection.summary import count_text, number_text, probability_text

Rows = List[List[str]]


def candidate_header(report: Report) -> List[str]:
    within = [f"P(within {report.margin:g})"] if report.margin else []
    if report.by_documents:
        asked = ["system", "documents", report.metric, "95 % interval", "P(best)", *within]
        return [*asked, "queries", "cost", "failures", "mean s"]
    names = ["candidate", "n", "mean", "sd", "95 % interval of the mean", "median", "min", "max", "P(best)", *within]
    return [*names, "failures", "mean s", "parameters"]


def candidate_rows(report: Report) -> Rows:
    """A row for every candidate, in the order given."""
    return [_candidate_row(candidate, report) for candidate in report.candidates]


def _candidate_row(candidate: CandidateReport, report: Report) -> List[str]:
    within = [probability_text(candidate.prob_within_margin)] if report.margin else []
    believed = ["withdrawn" if candidate.withdrawn else probability_text(candidate.prob_best), *within]
    failures, seconds = str(candidate.failures), candidate.mean_seconds or None
    asked = candidate.asked
    if asked is not None:
        return [
            candidate.name,
            str(asked.num_documents),
            number_text(asked.measure),
            interval_text(asked.interval),
            *believed,
            MISSING if asked.num_queries is None else str(asked.num_queries),
            MISSING if asked.cost is None else f"{asked.cost:g}",
            failures,
            number_text(seconds, 3),
        ]
    return [
        candidate.name,
        str(candidate.num_evaluations),
        number_text(candidate.mean),
        number_text(candidate.sd),
        interval_text(candidate.interval),
        number_text(candidate.median),
        number_text(candidate.min),
        number_text(candidate.max),
        *believed,
        failures,
        number_text(seconds, 1),
        MISSING if candidate.num_parameters is None else f"{candidate.num_parameters:,}",
    ]


DIFFERENCE_HEADER = [
    "against",
    "shared splits",
    "mean difference",
    "95 % interval",
    "Cliff's delta",
    "Vargha-Delaney A",
    "Cohen's d, paired",
    "ASO epsilon min",
]


def difference_rows(report: Report) -> Rows:
    """A row for every comparison: differences and effect sizes."""
    return [
        [
            against(comparison, report),
            str(comparison.num_pairs),
            MISSING if comparison.mean_difference is None else f"{comparison.mean_difference:+.4f}",
            interval_text(comparison.interval),
            number_text(comparison.cliffs_delta, 3),
            number_text(comparison.vargha_delaney, 3),
            number_text(comparison.cohens_d_paired, 2),
            number_text(comparison.aso_epsilon_min, 3),
        ]
        for comparison in report.comparisons
    ]


def against(comparison: Comparison, report: Report) -> str:
    """Who is compared: the other one, where all comparisons are of the best candidate."""
    is_with_best = comparison.first == report.best
    return comparison.second if is_with_best else f"{comparison.first} against {comparison.second}"


def p_value_header(report: Report) -> List[str]:
    return ["against", *(test.name for test in report.comparisons[0].tests)] if report.comparisons else ["against"]


def p_value_rows(report: Report) -> Rows:
    """A row for every comparison: the p-value of each test, and after a slash Holm's."""
    return [[against(c, report), *(p_values_text(test) for test in c.tests)] for c in report.comparisons]


def comparison_rows(report: Report) -> Rows:
    """A row for every comparison with all that is told of it."""
    rows = zip(difference_rows(report), p_value_rows(report), strict=True)
    return [[*differences, *p_values[1:]] for differences, p_values in rows]


def p_values_text(test: TestResult) -> str:
    if test.p_value is None:
        return test.too_few.partition(":")[0]
    return f"{p_value_text(test.p_value)} / {p_value_text(test.p_holm)}"


def single_score_lines(report: Report) -> List[Tuple[str, str]]:
    """What was compared, and how often it named another candidate than the best one."""
    single = report.single_score
    if single is None:
        return []
    splits = f"{count_text(single.num_common_splits, 'split')} that all have"
    lines = [
        ("one run of each, every one on a split of its own", share_text(single.wrong_single)),
        (f"one run of each on one split, from the {splits}", share_text(single.wrong_same_split)),
        ("of 3 runs of each the one with the best development score", share_text(single.wrong_best_of_3)),
    ]
    return [line for line in lines if line[1] != MISSING]


def development_rows(report: Report) -> Rows:
    """Rank correlations of development and test scores: over all evaluations, and within candidates."""
    found = report.development
    if found is None:
        return []
    everything = [f"all {found.num_evaluations} evaluations", number_text(found.overall, 3)]
    return [everything, *([name, number_text(value, 3)] for name, value in found.by_candidate.items())]


def summary_table(summary: Mapping[str, Any]) -> Table:
    """The candidates of a selection."""
    table = candidate_table(f"test {summary['metric']}", running=False)
    for candidate in summary["candidates"]:
        add_candidate(table, candidate)
    return table


def documents_table(summary: Mapping[str, Any]) -> Table:
    """The systems of a selection by documents."""
    metric, number = summary["metric"], summary["documents"]["num_documents"]
    columns = ("documents", "failed", metric, "P(best)", "queries", "cost", "seconds")
    table = number_table("system", columns, title=f"{metric}, {count_text(number, 'document')} at hand")
    for system in summary["candidates"]:
        table.add_row(
            escape(system.name),
            str(system.num_documents),
            str(system.failures or ""),
            number_text(system.measure),
            "withdrawn" if system.withdrawn else probability_text(system.prob_best),
            str(system.num_queries),
            f"{system.cost:g}",
            f"{system.seconds:.0f}",
        )
    return table


def replay_table(summary: Mapping[str, Any]) -> Table:
    """The candidates of a replay: true mean score and how often each was recommended."""
    table = number_table("candidate", ("true mean", "recommended"))
    for candidate in summary["candidates"]:
        share = f"{candidate['recommended']:.1%}" if candidate["recommended"] else ""
        table.add_row(escape(candidate["name"]), number_text(candidate["true_mean"]), share)
    return table


def plan_table(plan: Any, console: Console) -> None:
    """What a dry run found: candidates, pool, split sizes, strategy, and the least and most trainings."""
    table = number_table("candidate", ("parameters",))
    table.add_column("metrics it reports", overflow="fold")
    for name, preparation in plan.preparations.items():
        table.add_row(escape(name), f"{preparation.num_parameters:,}", ", ".join(sorted(preparation.metrics)))
    pool = plan.pool
    official = ", ".join(f"{part} {size}" for part, size in pool.official.items())
    groups = f"{pool.num_groups} groups of equal {pool.group_by} kept whole" if pool.group_by else "no groups"
    about = "about " if pool.group_by else ""
    sizes = ", ".join(f"{part} {about}{size}" for part, size in pool.targets.items())
    strategy = dict(plan.strategy)
    if "stop" in strategy:
        strategy["stop"] = strategy["stop"]["type"]
    _print_plan(
        console,
        table,
        f"Pool: {pool.size} instances (official parts: {official}).",
        f"Every split: {sizes}; {groups}.",
        _strategy_text(strategy),
        f"It takes at least {plan.least} and at most {plan.most} trainings. Nothing was trained.",
    )


def show_plan(plan: Any, console: Console) -> None:
    """What a dry run found: systems, answers that are kept, documents, strategy, and the least and most evaluations."""
    prepared, choice = plan.prepared, plan.prepared.choice
    table = number_table("system", ())
    table.add_column("type")
    for column in ("cost of a query", "answers kept"):
        table.add_column(column, justify="right")
    for name, system in prepared.systems.items():
        kept = plan.kept.get(name, 0)
        table.add_row(escape(name), prepared.given[name].config["type"], f"{system.cost:g}", str(kept or ""))
    file = prepared.file
    _print_plan(
        console,
        table,
        f"{count_text(len(file.documents), 'document')} with {count_text(file.num_items, 'item')} in {file.path}.",
        _strategy_text({key: value for key, value in choice.strategy_params.items() if key != "stop"}),
        f"It takes at least {plan.least} and at most {plan.most} evaluations by {choice.task.metric}. "
        "Nothing was asked.",
    )


def _print_plan(console: Console, table: Table, *lines: str) -> None:
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True)


def _strategy_text(params: Mapping[str, Any]) -> str:
    options = ", ".join(f"{key} {value}" for key, value in params.items() if key not in ("type", "belief"))
    return f"Strategy: {params['type']} ({options or 'defaults'}), belief {params['belief']['type']}."
