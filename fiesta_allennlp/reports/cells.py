"""The tables of a report as texts, the same in Markdown, LaTeX and HTML."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterable, List

from fiesta_allennlp.reports.candidates import CandidateReport, Comparison, DevelopmentCorrelation, SingleScoreRisk
from fiesta_allennlp.reports.formats import MISSING_TEXT, interval_text, share_text
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.selection.progress import Columns, Item
from fiesta_allennlp.selection.summary import count_text, number_text, probability_text

if TYPE_CHECKING:
    from fiesta_allennlp.reports.screening import Finalist, ScreeningReport


@dataclass(frozen=True)
class TextTable:
    """Holds a table of texts. The first column has names."""

    header: List[str]
    rows: List[List[str]]


def _make_table(columns: Columns[Item], items: Iterable[Item]) -> TextTable:
    return TextTable([heading for heading, _ in columns], [[text(item) for _, text in columns] for item in items])


WORK_COLUMNS: Columns[CandidateReport] = (
    ("failed", lambda c: c.failures_text or "0"),
    ("mean s", lambda c: number_text(c.mean_seconds or None, 1)),
    ("parameters", lambda c: MISSING_TEXT if c.num_parameters is None else f"{c.num_parameters:,}"),
)

QUERY_COLUMNS: Columns[CandidateReport] = (
    ("queries", lambda c: MISSING_TEXT if c.num_queries is None else str(c.num_queries)),
    ("cost", lambda c: MISSING_TEXT if c.cost is None else f"{c.cost:g}"),
    ("failed", lambda c: str(c.failures)),
    ("mean s", lambda c: number_text(c.mean_seconds or None, 3)),
)


def tabulate_candidates(report: Report, *, belief_first: bool = False) -> TextTable:
    """Return a row for every candidate; `belief_first` puts P(best) next to the names, for narrow screens."""
    name_column: Columns[CandidateReport] = ((report.words.candidate, lambda c: c.name),)
    belief_columns: Columns[CandidateReport] = (("P(best)", lambda c: c.standing),)
    if report.margin:
        margin_heading = f"P(within {report.margin:g})"
        belief_columns = (*belief_columns, (margin_heading, lambda c: probability_text(c.prob_within_margin)))
    digits, work_columns = report.decimals, WORK_COLUMNS
    score_columns: Columns[CandidateReport] = (
        ("n", lambda c: str(c.num_evaluations)),
        ("mean", lambda c: number_text(c.mean, digits)),
        ("sd", lambda c: number_text(c.sd, digits)),
        ("95% interval of the mean", lambda c: interval_text(c.interval, digits)),
        ("median", lambda c: number_text(c.median, digits)),
        ("min", lambda c: number_text(c.min, digits)),
        ("max", lambda c: number_text(c.max, digits)),
    )
    if report.by_documents:
        score_columns = (
            ("documents", lambda c: str(c.num_documents)),
            (report.metric, lambda c: number_text(c.measure)),
            ("95% interval", lambda c: interval_text(c.interval)),
        )
        work_columns = QUERY_COLUMNS
    middle_columns = (*belief_columns, *score_columns) if belief_first else (*score_columns, *belief_columns)
    return _make_table((*name_column, *middle_columns, *work_columns), report.candidates)


def tabulate_candidates_briefly(report: Report) -> TextTable:
    """Return n, mean, sd and P(best) of every candidate, which fits a column of a paper."""
    shown_headings = ("documents", report.metric) if report.by_documents else ("n", "mean", "sd")
    if any(candidate.num_missed for candidate in report.candidates):
        shown_headings = (*shown_headings, "failed")
    table = tabulate_candidates(report)
    indices = [0, *(i for i, heading in enumerate(table.header) if heading in (*shown_headings, "P(best)"))]
    return TextTable([table.header[i] for i in indices], [[row[i] for i in indices] for row in table.rows])


def tabulate_differences(report: Report) -> TextTable:
    """Return a row for every comparison. It names the other candidate where all are of the best one, and else both."""
    columns: Columns[Comparison] = (
        ("against", lambda c: c.second if c.first == report.leading else f"{c.first} against {c.second}"),
        ("shared splits", lambda c: str(c.num_pairs)),
        ("mean difference", lambda c: number_text(c.mean_difference, report.decimals, sign="+")),
        ("95% interval", lambda c: interval_text(c.interval, report.decimals)),
        ("Cliff's delta", lambda c: number_text(c.cliffs_delta, 3)),
    )
    if any(comparison.prob_new_data is not None for comparison in report.comparisons):
        columns = (*columns, ("P(better on new data)", lambda c: probability_text(c.prob_new_data)))
    return _make_table(columns, report.comparisons)


def tabulate_single_score_risk(risk: SingleScoreRisk, *, on_official_splits: bool) -> TextTable:
    """Return how often each way to compare named another candidate than the best one."""
    splits_note = f"{count_text(risk.num_common_splits, 'split')} that all have"
    seeds_note = "each with its own seeds" if on_official_splits else "each on its own split"
    rows = [
        [f"one run of each, {seeds_note}", share_text(risk.wrong_single)],
        [f"one run of each on one split, from the {splits_note}", share_text(risk.wrong_same_split)],
        ["of 3 runs of each, the one with the best validation score", share_text(risk.wrong_best_of_3)],
    ]
    return TextTable(["comparison", "names another candidate"], [line for line in rows if line[1] != MISSING_TEXT])


def tabulate_development(report: Report, correlations: DevelopmentCorrelation) -> TextTable:
    """Return Spearman's rho with its number of runs, of all candidates together and of each."""
    rows = [["all", str(correlations.num_evaluations), number_text(correlations.overall, 3)]]
    for name, rho in correlations.by_candidate.items():
        num_scores = sum(score is not None for score in report.candidate(name).development_scores)
        rows.append([name, str(num_scores), number_text(rho, 3)])
    return TextTable(["of", "n", "Spearman's rho"], rows)


FINALIST_COLUMNS: "Columns[Finalist]" = (
    ("finalist", lambda f: f.name),
    ("place in the screening", lambda f: str(f.place_before)),
    ("score there", lambda f: number_text(f.score_before)),
    ("place by mean", lambda f: MISSING_TEXT if f.place_after is None else str(f.place_after)),
    ("mean of fresh runs", lambda f: number_text(f.mean_after)),
    ("runs", lambda f: str(f.num_runs)),
    ("score - mean", lambda f: number_text(f.optimism)),
)


def tabulate_finalists(screening: "ScreeningReport") -> TextTable:
    """Return the finalists of a search with their places and scores in both stages."""
    return _make_table(FINALIST_COLUMNS, screening.finalists)
