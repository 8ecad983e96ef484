"""Shows confirmations: their table, their sentences, and what a number of fresh runs can show before they begin."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.reports.formats import MISSING_TEXT, Printable, TerminalLines
from fiesta_allennlp.selection.candidate_table import CSV, EVERYWHERE, LATEX, TERMINAL, Table
from fiesta_allennlp.selection.confirmation import (
    BegunConfirmation,
    Confirmation,
    ConfirmationPlan,
    FreshComparison,
    PlannedRival,
)
from fiesta_allennlp.selection.confirmation_texts import signed_text, unfinished_in_words, verdict_in_words
from fiesta_allennlp.selection.texts import count_text, interval_text, names_text, number_text, probability_text

NUMBERS_OF_RUNS = (5, 10, 20, 40)
"""The numbers of runs of each candidate whose power a dry run shows."""

NOT_FINISHED = "not finished"
"""What is said instead of a verdict that has not come yet."""

NO_VERDICT = "none, not finished or deleted"
"""What is said instead of an earlier verdict that is unknown."""

ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth")


def ordinal_text(number: int) -> str:
    return ORDINAL_WORDS[number - 1] if number <= len(ORDINAL_WORDS) else f"{number}th"


# The table.


@dataclass(frozen=True)
class Row:
    """A comparison of a confirmation, or a rival whose comparison is still to come."""

    confirmation: Confirmation
    rival: PlannedRival
    comparison: Optional[FreshComparison]

    @property
    def num_failed(self) -> int:
        return sum(self.comparison.num_failed) if self.comparison else 0

    @property
    def verdict(self) -> str:
        return self.comparison.verdict if self.comparison else NOT_FINISHED


@dataclass(frozen=True)
class RowColumn:
    """A column of every table of confirmations.

    Attributes:
        name: its heading in CSV.
        heading: its heading elsewhere.
        value: the value of a row, None if it has none.
        text: the value as text.
        outputs: where it is shown.
        is_shown: whether these rows have anything to show in it. CSV has it always.
    """

    name: str
    heading: str
    value: Callable[[Row], Any]
    text: Callable[[Any], str] = str
    outputs: FrozenSet[str] = EVERYWHERE
    is_shown: Callable[[Sequence[Row]], bool] = lambda rows: True


def _of_comparison(name: str) -> Callable[[Row], Any]:
    return lambda row: row.comparison and getattr(row.comparison, name)


def _any_of_comparison(name: str) -> Callable[[Sequence[Row]], bool]:
    return lambda rows: any(_of_comparison(name)(row) not in (None, 0) for row in rows)


def _are_adjusted(rows: Sequence[Row]) -> bool:
    return any(len(row.confirmation.plan.rivals) > 1 for row in rows)


def _are_unadjusted(rows: Sequence[Row]) -> bool:
    return not _are_adjusted(rows)


def _end(position: int) -> Callable[[Row], Any]:
    return lambda row: row.comparison and row.comparison.interval and row.comparison.interval[position]


NOT_CSV, ONLY_CSV, ON_PAGES = EVERYWHERE - {CSV}, frozenset({CSV}), EVERYWHERE - {TERMINAL, LATEX}
NOT_TERMINAL = EVERYWHERE - {TERMINAL}

COLUMNS: Tuple[RowColumn, ...] = (
    RowColumn("winner", "winner", lambda row: row.confirmation.plan.winner, outputs=ON_PAGES),
    RowColumn("rival", "against", lambda row: row.rival.name),
    RowColumn(
        "ordinal",
        "confirmation",
        lambda row: row.rival.ordinal,
        outputs=NOT_TERMINAL,
        is_shown=lambda rows: any(r.rival.earlier for r in rows),
    ),
    RowColumn("num_runs", "runs", lambda row: row.confirmation.plan.num_runs),
    RowColumn(
        "num_failed", "failed", lambda row: row.num_failed, is_shown=lambda rows: any(r.num_failed for r in rows)
    ),
    RowColumn(
        "num_pairs",
        "shared splits",
        _of_comparison("num_pairs"),
        outputs=ON_PAGES,
        is_shown=_any_of_comparison("num_pairs"),
    ),
    RowColumn("difference", "difference", _of_comparison("difference"), signed_text),
    RowColumn("interval", "95% interval", _of_comparison("interval"), interval_text, NOT_CSV, _are_unadjusted),
    RowColumn(
        "interval", "95% interval, Bonferroni", _of_comparison("interval"), interval_text, NOT_CSV, _are_adjusted
    ),
    RowColumn("interval_low", "", _end(0), outputs=ONLY_CSV),
    RowColumn("interval_high", "", _end(1), outputs=ONLY_CSV),
    RowColumn("lead_in_sds", "lead, sds", _of_comparison("lead_in_sds"), lambda value: number_text(value, 2)),
    RowColumn("p_value", "p", _of_comparison("p_value"), probability_text),
    RowColumn(
        "adjusted_p_value",
        "p, Holm",
        _of_comparison("adjusted_p_value"),
        probability_text,
        is_shown=_are_adjusted,
    ),
    RowColumn(
        "prob_new_data",
        "P(better on new data)",
        _of_comparison("prob_new_data"),
        probability_text,
        ON_PAGES,
        _any_of_comparison("prob_new_data"),
    ),
    RowColumn("verdict", "verdict", lambda row: row.verdict),
)
"""The columns in their order. Every output walks this list."""


def confirmation_rows(confirmations: Sequence[Confirmation]) -> List[Row]:
    """Return a row for each rival of each confirmation."""
    rows = []
    for confirmation in confirmations:
        by_rival = {comparison.rival: comparison for comparison in confirmation.comparisons}
        rows += [Row(confirmation, rival, by_rival.get(rival.name)) for rival in confirmation.plan.rivals]
    return rows


def confirmation_table(confirmations: Sequence[Confirmation], output: str = TERMINAL) -> Table:
    """Return the table of confirmations as an output shows it."""
    rows = confirmation_rows(confirmations)
    columns = [column for column in COLUMNS if output in column.outputs and column.is_shown(rows)]
    cells = [[column.text(column.value(row)) for column in columns] for row in rows]
    return Table([column.heading for column in columns], cells, wrapped=("verdict",))


def confirmation_values(confirmations: Sequence[Confirmation]) -> List[Dict[str, Any]]:
    """Return the values of every row by the names of their columns, for CSV."""
    columns = [column for column in COLUMNS if CSV in column.outputs]
    return [{column.name: column.value(row) for column in columns} for row in confirmation_rows(confirmations)]


# The sentences.


def confirmation_in_words(confirmation: Confirmation) -> Tuple[str, ...]:
    """State the verdict about each rival, or how far an unfinished confirmation is."""
    plan = confirmation.plan
    sentences = [] if confirmation.is_over else [unfinished_in_words(confirmation)]
    for comparison in confirmation.comparisons:
        sentences += [verdict_in_words(confirmation, comparison), new_data_in_words(confirmation, comparison)]
    sentences += [ordinal_in_words(plan, rival) for rival in plan.rivals]
    return tuple(filter(None, (*sentences, *failed_in_words(confirmation))))


def ordinal_in_words(plan: ConfirmationPlan, rival: PlannedRival) -> str:
    """State that a pair was confirmed before, and with which verdicts; empty for its first confirmation."""
    if not rival.earlier:
        return ""
    verdicts = join_some([verdict or NO_VERDICT for verdict in rival.earlier])
    pair = f"{plan.winner} and {rival.name}"
    return f"This is the {ordinal_text(rival.ordinal)} confirmation of {pair}; the verdict before: {verdicts}."


def deleted_in_words(deleted: Sequence[BegunConfirmation], known: Sequence[Confirmation]) -> Tuple[str, ...]:
    """State for each pair how many confirmations began, if the directory of one is gone."""

    def count(confirmations: Sequence[Union[BegunConfirmation, Confirmation]]) -> "Counter[Tuple[str, ...]]":
        return Counter(tuple(sorted(pair)) for confirmation in confirmations for pair in confirmation.plan.pairs)

    num_begun = count([*known, *deleted])
    return tuple(
        f"{count_text(num_begun[pair], 'confirmation')} of {names_text(pair)} began; the files of {num} were deleted."
        for pair, num in sorted(count(deleted).items())
    )


def new_data_in_words(confirmation: Confirmation, comparison: FreshComparison) -> str:
    if comparison.prob_new_data is None:
        return ""
    chance = probability_text(comparison.prob_new_data)
    return f"On new data of the same kind and size, {confirmation.plan.winner} is better with probability {chance}."


def failed_in_words(confirmation: Confirmation) -> Tuple[str, ...]:
    """Name the candidates with failed runs, and what these mean for the verdict."""
    sentences = []
    for candidate in confirmation.candidates:
        count = count_text(candidate.num_failed, "fresh run")
        if confirmation.is_over and not candidate.is_complete:
            scores = f"{candidate.num_finished} of {confirmation.plan.num_runs} scores"
            sentences.append(f"{candidate.name} has {scores} ({count} failed), so nothing about it is confirmed.")
        elif candidate.num_failed:
            verb = "has" if candidate.num_failed == 1 else "have"
            runs = f"{count} of {candidate.name} failed and {verb} no score"
            sentences.append(f"{runs}, so the verdict is about runs that finish.")
    return tuple(sentences)


# Before the fresh runs.


def plan_in_words(plan: ConfirmationPlan) -> Tuple[str, ...]:
    """State what is fixed, and what these runs can show."""
    rivals = names_text([rival.name for rival in plan.rivals])
    num_runs = plan.num_runs * len(plan.names)
    new = "new splits and seeds" if plan.is_paired else "new seeds"
    fixed = f"Confirming {plan.winner} against {rivals}: {plan.num_runs} runs each, {num_runs} in all, with {new}."
    return (fixed, *(power_in_words(plan, rival) for rival in plan.rivals))


def power_in_words(plan: ConfirmationPlan, rival: PlannedRival) -> str:
    """State the probability to confirm a difference as large as the selection saw, and half of it."""
    power, half = plan.power(rival, plan.num_runs), plan.power(rival, plan.num_runs, share=0.5)
    against = f" against {rival.name}" if len(plan.rivals) > 1 else ""
    if power is None:
        return f"The selection has too few runs to say what fresh runs can show{against}."
    if rival.lead is not None and rival.lead <= 0:
        return f"The selection saw no lead{against} on the runs that count, so expect no confirmation."
    return (
        f"{plan.num_runs} runs each confirm a difference as large as the selection saw{against} "
        f"({number_text(rival.lead)}, which tends to be too large) with probability {power:.2f}, half of it with "
        f"{half:.2f}."
    )


def power_table(plan: ConfirmationPlan) -> Table:
    """Return what each of `NUMBERS_OF_RUNS` can show, a row for each number and rival."""
    rows = []
    for num_runs in NUMBERS_OF_RUNS:
        for rival in plan.rivals:
            powers = [plan.power(rival, num_runs, share=share) for share in (1.0, 0.5)]
            texts = [MISSING_TEXT if power is None else f"{power:.2f}" for power in powers]
            rows.append([str(num_runs), rival.name, number_text(rival.lead), *texts])
    headings = ("runs each", "against", "difference seen", "P(confirmed)", "at half of it")
    return Table(headings, rows, wrapped=("against",))


@dataclass(frozen=True, repr=False)
class ConfirmationResult(Printable, Confirmation):
    """A `Confirmation` that prints as a table and sentences, on a terminal and in a notebook."""

    def shown(self) -> TerminalLines:
        table = [confirmation_table([self])] if self.is_over else []
        return [*table, *confirmation_in_words(self)]

    @property
    def verdicts(self) -> Dict[str, str]:
        """The verdict about each rival; empty until all runs have ended."""
        return {comparison.rival: comparison.verdict for comparison in self.comparisons}
