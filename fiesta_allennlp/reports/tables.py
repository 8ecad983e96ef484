"""The tables of a report as texts, the same in Markdown, LaTeX and HTML; and those of the terminal."""

from dataclasses import dataclass
from typing import Any, Callable, Iterable, List, Mapping, Sequence, Tuple, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import add_candidate, candidate_table, number_table
from fiesta_allennlp.reports.content import Asked, CandidateReport, Comparison, Report, TestResult
from fiesta_allennlp.reports.formats import MISSING, interval_text, p_value_text, share_text
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.summary import count_text, number_text, probability_text


@dataclass(frozen=True)
class Cells:
    """A table of texts. The first column has names."""

    header: List[str]
    rows: List[List[str]]


Item = TypeVar("Item")
Columns = Sequence[Tuple[str, Callable[[Item], str]]]
"""Heads, each with what gives the texts beneath it."""


def _cells(columns: "Columns[Item]", items: Iterable[Item]) -> Cells:
    return Cells([head for head, _ in columns], [[text(item) for _, text in columns] for item in items])


SCORES: "Columns[CandidateReport]" = (
    ("n", lambda c: str(c.num_evaluations)),
    ("mean", lambda c: number_text(c.mean)),
    ("sd", lambda c: number_text(c.sd)),
    ("95 % interval of the mean", lambda c: interval_text(c.interval)),
    ("median", lambda c: number_text(c.median)),
    ("min", lambda c: number_text(c.min)),
    ("max", lambda c: number_text(c.max)),
)

WORK: "Columns[CandidateReport]" = (
    ("failures", lambda c: str(c.failures)),
    ("mean s", lambda c: number_text(c.mean_seconds or None, 1)),
    ("parameters", lambda c: MISSING if c.num_parameters is None else f"{c.num_parameters:,}"),
)

QUERIES: "Columns[CandidateReport]" = (
    ("queries", lambda c: MISSING if _asked(c).num_queries is None else str(_asked(c).num_queries)),
    ("cost", lambda c: MISSING if _asked(c).cost is None else f"{_asked(c).cost:g}"),
    ("failures", lambda c: str(c.failures)),
    ("mean s", lambda c: number_text(c.mean_seconds or None, 3)),
)

DIFFERENCES: "Columns[Comparison]" = (
    ("shared splits", lambda c: str(c.num_pairs)),
    ("mean difference", lambda c: number_text(c.mean_difference, sign="+")),
    ("95 % interval", lambda c: interval_text(c.interval)),
    ("Cliff's delta", lambda c: number_text(c.cliffs_delta, 3)),
    ("Vargha-Delaney A", lambda c: number_text(c.vargha_delaney, 3)),
    ("Cohen's d, paired", lambda c: number_text(c.cohens_d_paired, 2)),
    ("ASO epsilon min", lambda c: number_text(c.aso_epsilon_min, 3)),
)


def _asked(candidate: CandidateReport) -> Asked:
    return candidate.asked or Asked()


def candidates(report: Report, *, belief_first: bool = False) -> Cells:
    """A row for every candidate, in the order given. The probabilities stand right of the names where they are to be
    first: a telephone shows little more."""
    name: "Columns[CandidateReport]" = ((report.words.candidate, lambda c: c.name),)
    belief: "Columns[CandidateReport]" = (("P(best)", lambda c: c.standing),)
    if report.margin:
        belief = (*belief, (f"P(within {report.margin:g})", lambda c: probability_text(c.prob_within_margin)))
    before, after = SCORES, WORK
    if report.by_documents:
        before = (
            ("documents", lambda c: str(_asked(c).num_documents)),
            (report.metric, lambda c: number_text(_asked(c).measure)),
            ("95 % interval", lambda c: interval_text(_asked(c).interval)),
        )
        after = QUERIES
    columns = (*name, *belief, *before, *after) if belief_first else (*name, *before, *belief, *after)
    return _cells(columns, report.candidates)


def differences(report: Report) -> Cells:
    """A row for every comparison: differences and effect sizes."""
    return _cells((_against(report), *DIFFERENCES), report.comparisons)


def p_values(report: Report) -> Cells:
    """A row for every comparison: the p-value of each test, and after a slash Holm's."""
    names = [test.name for test in report.comparisons[0].tests] if report.comparisons else []
    named = _cells((_against(report),), report.comparisons)
    rows = [[*row, *map(_p_values_text, c.tests)] for row, c in zip(named.rows, report.comparisons, strict=True)]
    return Cells([*named.header, *names], rows)


def comparisons(report: Report) -> Cells:
    """A row for every comparison with all that is told of it."""
    first, second = differences(report), p_values(report)
    rows = [[*one, *other[1:]] for one, other in zip(first.rows, second.rows, strict=True)]
    return Cells([*first.header, *second.header[1:]], rows)


def _against(report: Report) -> Tuple[str, Callable[[Comparison], str]]:
    """Who is compared: the other one, where all comparisons are of the best candidate."""
    return "against", lambda c: c.second if c.first == report.best else f"{c.first} against {c.second}"


def _p_values_text(test: TestResult) -> str:
    if test.p_value is None:
        return test.too_few.partition(":")[0]
    return f"{p_value_text(test.p_value)} / {p_value_text(test.p_holm)}"


def single_score(report: Report) -> Cells:
    """What was compared, and how often it named another candidate than the best one."""
    single = report.single_score
    if single is None:
        return Cells([], [])
    splits = f"{count_text(single.num_common_splits, 'split')} that all have"
    own = "with seeds of its own" if report.on_official_splits else "every one on a split of its own"
    lines = [
        [f"one run of each, {own}", share_text(single.wrong_single)],
        [f"one run of each on one split, from the {splits}", share_text(single.wrong_same_split)],
        ["of 3 runs of each the one with the best validation score", share_text(single.wrong_best_of_3)],
    ]
    return Cells(["what is compared", "names another one"], [line for line in lines if line[1] != MISSING])


def development(report: Report) -> Cells:
    """Rank correlations of development and test scores: over all evaluations, and within candidates."""
    found = report.development
    if found is None:
        return Cells([], [])
    rows = [[f"all {found.num_evaluations} evaluations", number_text(found.overall, 3)]]
    rows += [[name, number_text(value, 3)] for name, value in found.by_candidate.items()]
    return Cells(["of", "Spearman's rho"], rows)


def finalists(report: Report) -> Cells:
    """The finalists of a search in the order of its screening, with their places and scores in both stages."""
    found = () if report.screening is None else report.screening.finalists
    rows = [
        [
            finalist.name,
            str(finalist.place_before),
            number_text(finalist.score_before),
            MISSING if finalist.place_after is None else str(finalist.place_after),
            number_text(finalist.mean_after),
            str(finalist.num_runs),
            number_text(finalist.optimism),
        ]
        for finalist in found
    ]
    header = ["finalist", "place in the screening", "score there", "place by mean", "mean of fresh runs", "runs"]
    return Cells([*header, "score - mean"], rows)


def summary_table(summary: Mapping[str, Any]) -> Table:
    """The candidates of a selection."""
    table = candidate_table(f"{summary.get('score', 'test')} {Metric.of(summary['metric']).text}")
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
            system.standing,
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


def plan_table(plan: Any, console: Console, *, planner: str) -> None:
    """What a dry run found: candidates, pool, split sizes, strategy, and the least and most runs.

    Args:
        planner: the command that estimates how many it will be.
    """
    has_vectors = any(preparation.coverage for preparation in plan.preparations.values())
    table = number_table("candidate", ("parameters", *(["tokens with a vector"] if has_vectors else [])))
    table.add_column("metrics it reports", overflow="fold")
    for name, preparation in plan.preparations.items():
        shares = [", ".join(f"{share:.1%}" for share in preparation.coverage)] if has_vectors else []
        parameters = MISSING if preparation.num_parameters is None else f"{preparation.num_parameters:,}"
        metrics = "known after a run" if preparation.metrics is None else ", ".join(sorted(preparation.metrics))
        table.add_row(escape(name), parameters, *shares, metrics)
    strategy = dict(plan.strategy)
    if "stop" in strategy:
        strategy["stop"] = strategy["stop"]["type"]
    _print_plan(
        console,
        table,
        *_data_texts(plan),
        *(f"A run of {escape(name)}: {escape(command)}" for name, command in plan.commands.items()),
        f"Metric: {plan.division.scored} {plan.metric.name}; the {_winning(plan.metric)} mean wins. {plan.scored_on}",
        _strategy_text(strategy),
        f"It takes at least {plan.least} and at most {plan.most} runs. Nothing was trained.",
        *_how_many(plan, planner),
    )


def _how_many(plan: Any, planner: str) -> Iterable[str]:
    if plan.most < 2 * len(plan.preparations):
        yield "Some candidates run only once, so P(best) will not be available."
    if plan.least < plan.most:
        by_numbers = f"{planner} --gap GAP --sd SD --candidates {len(plan.preparations)}"
        yield f"How many will it be? Ask {by_numbers}; or, once every candidate has two runs, {planner} DIR."


def _winning(metric: Metric) -> str:
    return "lowest" if metric.minimise else "highest"


def _data_texts(plan: Any) -> Iterable[str]:
    """The sizes of the data and of the sets that runs get."""
    pool, division = plan.pool, plan.division
    if not pool.official:
        yield "The programs cut their own sets."
        return
    official = ", ".join(f"{part} {size}" for part, size in pool.official.items())
    if division.is_official:
        yield f"Official splits: {official} instances in every run, and only seeds vary."
        return
    groups = f"{pool.num_groups} groups of equal {pool.group_by} kept whole" if pool.group_by else "no groups"
    about = "about " if pool.group_by else ""
    sizes = ", ".join(f"{part} {about}{size}" for part, size in pool.targets.items())
    yield f"Pool: {pool.size} instances (official sizes: {official})."
    yield f"Every split: {sizes}; {groups}."


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
