"""The tables of `real_problems.py` on the pages: all recorded lines of the final rule, added up."""

import re
from collections import Counter, defaultdict
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

import numpy as np
from common import ROOT, final_rule, replace_tables, share_text
from procedures import PROCEDURES
from real_results import GAPS, SETS, ResultRow, class_label, read_results

from fiesta_allennlp.tables.simulation.outlook import wilson_interval

PAGES = (ROOT / "docs" / "evaluation.md", ROOT / "README.md")
TABLE_PATTERN = re.compile(
    rf"(<!-- real: ({'|'.join(SETS)}) (\w+)(?:, ([^;]+?))?(; brief)? -->\n).*?(<!-- end -->)", flags=re.S
)
"""Place of a table on these pages: its set, its kind, the procedures in it where these
are not all, and whether it is brief."""

NUM_RESAMPLES = 2000

HEADINGS = (
    "selections",
    "runs: mean, median (5-95%)",
    "names a winner",
    "wrong, of all",
    "wrong, of named",
    "by over 0.1 sd",
    "by over 0.25 sd",
    "loss, sds",
)
BRIEF_COLUMNS = (1, 2, 4, 6)
"""Places of the `HEADINGS` of a brief table."""

FIELDS_BY_TABLE: Mapping[str, Tuple[str, ...]] = {"procedures": (), "gaps": ("gap",)}
"""Tables on the pages, and the fields that have a row each beside the procedure."""

HEADING_OF = {"gap": "gap, sds"}
ORDER = tuple(class_label(value, GAPS) for value in (0, *GAPS))


def sum_of(results: Sequence[ResultRow], key: str) -> float:
    return float(sum(getattr(line, key) for line in results))


def count_runs(results: Sequence[ResultRow]) -> np.ndarray:
    """Return the number of runs of every selection, sorted."""
    histogram = sum((line.histogram for line in results), Counter())
    return np.repeat(*(np.array(column) for column in zip(*sorted(histogram.items()), strict=True)))


def cells(results: Sequence[ResultRow]) -> Tuple[str, ...]:
    """Return one text for each of `HEADINGS`."""
    total, num_runs = sum_of(results, "selections"), count_runs(results)
    low, median, high = np.percentile(num_runs, (5, 50, 95), method="inverted_cdf")

    def rate(key: str, total_key: str) -> str:
        number = sum_of(results, total_key)
        return share_text(sum_of(results, key) / number, interval(results, key, total_key)) if number else "-"

    return (
        f"{total:,.0f}",
        f"{num_runs.mean():.1f}, {median} ({low}-{high})",
        f"{sum_of(results, 'named') / total:.3f}",
        rate("wrong", "selections"),
        rate("wrong", "named"),
        rate("wrong_by_tenth", "selections"),
        rate("wrong_by_quarter", "selections"),
        f"{sum_of(results, 'loss') / total:.4f}",
    )


def interval(results: Sequence[Any], key: str, total_key: str) -> Tuple[float, float]:
    """Compute the 95% interval of a share by a bootstrap over data sets. Where the count is 0, it is Wilson's for 0 of
    that many data sets, and for a single data set Wilson's for its selections."""
    by_data_set: Dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for result in results:
        by_data_set[result.data_set] += (getattr(result, key), getattr(result, total_key))
    counts = np.array(list(by_data_set.values()))
    if len(counts) == 1:
        return wilson_interval(*(int(number) for number in counts.sum(axis=0)))
    if not counts[:, 0].any():
        return wilson_interval(0, int((counts[:, 1] > 0).sum()))
    number = len(counts)
    weights = np.random.default_rng(1).multinomial(number, np.full(number, 1 / number), size=NUM_RESAMPLES)
    shares, numbers = (weights @ counts).T
    low, high = np.percentile(shares[numbers > 0] / numbers[numbers > 0], (2.5, 97.5))
    return float(low), float(high)


def group_rows(
    results: Iterable[ResultRow], rule: str, kind: str, names: Sequence[str] = PROCEDURES
) -> Dict[Tuple[str, ...], List[ResultRow]]:
    """Group the lines of this rule and these procedures by the fields of this table."""
    groups: Dict[Tuple[str, ...], List[ResultRow]] = defaultdict(list)
    for result in results:
        key = (result.procedure, *(getattr(result, field) for field in FIELDS_BY_TABLE[kind]))
        if result.procedure in names and result.rule == rule and all(key):
            groups[key].append(result)
    keys = sorted(groups, key=lambda key: (names.index(key[0]), ORDER.index(key[-1]) if key[-1] in ORDER else 0, key))
    return {key: groups[key] for key in keys}


def pool_rows(
    results: Iterable[ResultRow], rule: str, kind: str, names: Sequence[str] = PROCEDURES
) -> List[Tuple[str, ...]]:
    """Return a row for each group of `group_rows`."""
    groups = group_rows(results, rule, kind, names)
    return [(*key, *cells(group)) for key, group in groups.items()]


def update_page(page: str, results_by_set: Mapping[str, Sequence[ResultRow]], rule: str) -> str:
    """Return the page with each pooled table in its place.

    # Raises
        ValueError: if a marker names an unknown procedure, or a table is empty; the message has the name or the marker.
    """

    def table(match: "re.Match[str]") -> List[Tuple[str, ...]]:
        kind, names = match[3], tuple(match[4].split(", ")) if match[4] else PROCEDURES
        if unknown := [name for name in names if name not in PROCEDURES]:
            raise ValueError(f"{match[1].strip()} has an unknown procedure: {unknown[0]}.")
        results = results_by_set[match[2]]
        key_headings = ("procedure", *(HEADING_OF[field] for field in FIELDS_BY_TABLE[kind]))
        rows = [(*key_headings, *HEADINGS), *pool_rows(results, rule, kind, names)]
        columns = BRIEF_COLUMNS if match[5] else range(len(HEADINGS))
        return [(*row[: len(key_headings)], *(row[len(key_headings) + column] for column in columns)) for row in rows]

    return replace_tables(page, TABLE_PATTERN, table)


def with_tables(page: str) -> str:
    """Return the page with the tables of all recorded lines of the final rule."""
    return update_page(page, {name: read_results(name) for name in SETS}, final_rule())
