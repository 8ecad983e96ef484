"""The tables of a report as texts, the same in Markdown, LaTeX and HTML."""

from dataclasses import dataclass
from typing import Iterable, List

from fiesta_allennlp.reports.candidates import CandidateReport, Comparison, Development, SingleScore
from fiesta_allennlp.reports.formats import MISSING, interval_text, share_text
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.screening import Finalist, ScreeningReport
from fiesta_allennlp.selection.progress import Columns, Item
from fiesta_allennlp.selection.summary import count_text, number_text, probability_text


@dataclass(frozen=True)
class Cells:
    """Holds a table of texts. The first column has names."""

    header: List[str]
    rows: List[List[str]]


def _cells(columns: Columns[Item], items: Iterable[Item]) -> Cells:
    return Cells([head for head, _ in columns], [[text(item) for _, text in columns] for item in items])


def _scores(digits: int) -> Columns[CandidateReport]:
    return (
        ("n", lambda c: str(c.num_evaluations)),
        ("mean", lambda c: number_text(c.mean, digits)),
        ("sd", lambda c: number_text(c.sd, digits)),
        ("95% interval of the mean", lambda c: interval_text(c.interval, digits)),
        ("median", lambda c: number_text(c.median, digits)),
        ("min", lambda c: number_text(c.min, digits)),
        ("max", lambda c: number_text(c.max, digits)),
    )


WORK: Columns[CandidateReport] = (
    ("failed", lambda c: c.failures_text or "0"),
    ("mean s", lambda c: number_text(c.mean_seconds or None, 1)),
    ("parameters", lambda c: MISSING if c.num_parameters is None else f"{c.num_parameters:,}"),
)

QUERIES: Columns[CandidateReport] = (
    ("queries", lambda c: MISSING if c.num_queries is None else str(c.num_queries)),
    ("cost", lambda c: MISSING if c.cost is None else f"{c.cost:g}"),
    ("failed", lambda c: str(c.failures)),
    ("mean s", lambda c: number_text(c.mean_seconds or None, 3)),
)


def candidates(report: Report, *, belief_first: bool = False) -> Cells:
    """Return a row for every candidate; `belief_first` puts P(best) next to the names, for narrow screens."""
    name: Columns[CandidateReport] = ((report.words.candidate, lambda c: c.name),)
    belief: Columns[CandidateReport] = (("P(best)", lambda c: c.standing),)
    if report.margin:
        belief = (*belief, (f"P(within {report.margin:g})", lambda c: probability_text(c.prob_within_margin)))
    before, after = _scores(report.decimals), WORK
    if report.by_documents:
        before = (
            ("documents", lambda c: str(c.num_documents)),
            (report.metric, lambda c: number_text(c.measure)),
            ("95% interval", lambda c: interval_text(c.interval)),
        )
        after = QUERIES
    columns = (*name, *belief, *before, *after) if belief_first else (*name, *before, *belief, *after)
    return _cells(columns, report.candidates)


def short_candidates(report: Report) -> Cells:
    """Return n, mean, sd and P(best) of every candidate, which fits a column of a paper."""
    headings = ("documents", report.metric) if report.by_documents else ("n", "mean", "sd")
    if any(candidate.num_missed for candidate in report.candidates):
        headings = (*headings, "failed")
    table = candidates(report)
    columns = [0, *(i for i, heading in enumerate(table.header) if heading in (*headings, "P(best)"))]
    return Cells([table.header[i] for i in columns], [[row[i] for i in columns] for row in table.rows])


def differences(report: Report) -> Cells:
    """Return a row for every comparison. It names the other candidate where all are of the best one, and else both."""
    against: Columns[Comparison] = (
        ("against", lambda c: c.second if c.first == report.leading else f"{c.first} against {c.second}"),
    )
    columns: Columns[Comparison] = (
        *against,
        ("shared splits", lambda c: str(c.num_pairs)),
        ("mean difference", lambda c: number_text(c.mean_difference, report.decimals, sign="+")),
        ("95% interval", lambda c: interval_text(c.interval, report.decimals)),
        ("Cliff's delta", lambda c: number_text(c.cliffs_delta, 3)),
    )
    has_new_data = any(comparison.prob_new_data is not None for comparison in report.comparisons)
    new_data_column: Columns[Comparison] = (("P(better on new data)", lambda c: probability_text(c.prob_new_data)),)
    return _cells((*columns, *(new_data_column if has_new_data else ())), report.comparisons)


def single_score(single: SingleScore, *, on_official_splits: bool) -> Cells:
    """Return how often each way to compare named another candidate than the best one."""
    splits_note = f"{count_text(single.num_common_splits, 'split')} that all have"
    seeds_note = "each with its own seeds" if on_official_splits else "each on its own split"
    lines = [
        [f"one run of each, {seeds_note}", share_text(single.wrong_single)],
        [f"one run of each on one split, from the {splits_note}", share_text(single.wrong_same_split)],
        ["of 3 runs of each, the one with the best validation score", share_text(single.wrong_best_of_3)],
    ]
    return Cells(["comparison", "names another candidate"], [line for line in lines if line[1] != MISSING])


def development(report: Report, correlations: Development) -> Cells:
    """Return Spearman's rho with its number of runs, of all candidates together and of each."""
    rows = [["all", str(correlations.num_evaluations), number_text(correlations.overall, 3)]]
    for name, rho in correlations.by_candidate.items():
        num_scores = sum(score is not None for score in report.candidate(name).development_scores)
        rows.append([name, str(num_scores), number_text(rho, 3)])
    return Cells(["of", "n", "Spearman's rho"], rows)


FINALISTS: Columns[Finalist] = (
    ("finalist", lambda f: f.name),
    ("place in the screening", lambda f: str(f.place_before)),
    ("score there", lambda f: number_text(f.score_before)),
    ("place by mean", lambda f: MISSING if f.place_after is None else str(f.place_after)),
    ("mean of fresh runs", lambda f: number_text(f.mean_after)),
    ("runs", lambda f: str(f.num_runs)),
    ("score - mean", lambda f: number_text(f.optimism)),
)


def finalists(screening: ScreeningReport) -> Cells:
    """Return the finalists of a search with their places and scores in both stages."""
    return _cells(FINALISTS, screening.finalists)
