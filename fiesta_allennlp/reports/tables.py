"""The tables of a report as rows of texts: the same in Markdown, LaTeX and HTML; and those of the terminal."""

from collections import Counter
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fiesta_allennlp.listeners.progress import add_candidate, candidate_table
from fiesta_allennlp.reports.content import CandidateReport, Comparison, Interval, Report, TestResult
from fiesta_allennlp.selection.summary import probability_text


def ranked(report: Report) -> Tuple[CandidateReport, ...]:
    """By falling P(best), then by mean, `report.best` first and withdrawn candidates last; equal ones as given."""
    return tuple(sorted(report.candidates, key=lambda candidate: _place(candidate, report)))


def _place(candidate: CandidateReport, report: Report) -> "Tuple[bool, bool, float, float]":
    prob_best = -1.0 if candidate.prob_best is None else candidate.prob_best
    mean = float("-inf") if candidate.mean is None else candidate.mean
    return candidate.name != report.best, candidate.withdrawn, -prob_best, -mean


def shown_names(
    names: Sequence[str], length: int, *, has_glyph: Callable[[str], bool] = str.isprintable
) -> Dict[str, str]:
    """Names of at most `length` characters, cut in the middle, for long ones often differ at the ends only.

    Names that would look the same are told apart by their place, as in `#3 bert…base`. Characters without a glyph are
    shown as a box.

    # Parameters

    has_glyph : whether one character can be drawn.
    """
    clean = {name: "".join(c if has_glyph(c) else "□" for c in name) for name in names}
    shown = {name: _cut(text, length) for name, text in clean.items()}
    often = Counter(shown.values())
    for place, name in enumerate(names, start=1):
        if often[shown[name]] > 1:
            lead = f"#{place} "
            shown[name] = lead + _cut(clean[name], length - len(lead))
    return shown


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return text[: length - 1 - tail] + "…" + text[len(text) - tail :]


MISSING = "-"


Rows = List[List[str]]


def number_text(value: Optional[float], digits: int = 4) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def interval_text(interval: Optional[Interval]) -> str:
    return MISSING if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}"


def p_value_text(value: Optional[float]) -> str:
    """Three decimals, but never a rounded 0."""
    return MISSING if value is None else "< 0.001" if value < 0.0005 else f"{value:.3f}"


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
    failures, seconds = str(len(candidate.failures)), candidate.mean_seconds or None
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


def p_values_text(test: TestResult) -> str:
    if test.p_value is None:
        return test.too_few.partition(":")[0]
    return f"{p_value_text(test.p_value)} / {p_value_text(test.p_holm)}"


def share_text(value: Optional[float]) -> str:
    return MISSING if value is None else f"{value:.1%}"


def single_score_lines(report: Report) -> List[Tuple[str, str]]:
    """What was compared, and how often it named another candidate than the best one."""
    single = report.single_score
    if single is None:
        return []
    splits = f"{single.num_common_splits} split{'' if single.num_common_splits == 1 else 's'} that all have"
    lines = [
        ("one run of each, every one on a split of its own", share_text(single.wrong_single)),
        (f"one run of each on one split, from the {splits}", share_text(single.wrong_same_split)),
        ("of 3 runs of each the one with the best development score", share_text(single.wrong_best_of_3)),
    ]
    return [line for line in lines if line[1] != MISSING]


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
