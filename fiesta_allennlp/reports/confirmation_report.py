"""Confirmations in words: their verdicts, their table, and what a number of fresh runs can show before they begin."""

from typing import Any, Iterator, Mapping, Sequence

from rich.console import Console

from fiesta_allennlp.choosing.t_tests import MAX_FRESH_RUNS
from fiesta_allennlp.confirming.confirm_settings import ConfirmSettings, check_resources
from fiesta_allennlp.confirming.confirmation import Confirmation, ConfirmationPlan, FinishedSelection, FreshComparison
from fiesta_allennlp.core import texts
from fiesta_allennlp.core.choice_settings import POWER
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.selecting.loop import Display
from fiesta_allennlp.selecting.results.candidate_result import SeenLead
from fiesta_allennlp.selecting.results.candidate_table import Columns, Table, TerminalLines, show


def confirmation_table(confirmations: Sequence[Confirmation]) -> Table:
    """Return a row for each rival of each confirmation that is over."""
    rows = [(confirmation, comparison) for confirmation in confirmations for comparison in confirmation.comparisons]
    columns: Columns = {
        "winner": lambda row: row[0].winner,
        "against": lambda row: row[1].rival,
        "runs": lambda row: str(row[0].num_runs),
        "lead": lambda row: texts.number_text(row[1].difference, sign="+"),
        "95% interval": lambda row: texts.interval_text(row[1].interval),
        "in sds": lambda row: texts.number_text(row[1].lead_in_sds, 2),
        "p": lambda row: texts.probability_text(row[1].p_value),
        "verdict": lambda row: row[1].verdict,
    }
    return Table.of(columns, rows, wrapped=("against", "verdict"))


def confirmation_in_words(confirmation: Confirmation) -> Iterator[str]:
    """State the verdict about each rival and which runs failed, or how far an unfinished confirmation is."""
    result = confirmation.result
    if not confirmation.is_over:
        state = "is running and has" if result.running else "has"
        num_planned = confirmation.num_runs * len(result.candidates)
        done = f"{state} {result.num_evaluations} of {num_planned} fresh runs"
        yield f"The confirmation of {confirmation.winner} in {result.directory} {done}, so it has no verdict yet."
        return
    for comparison in confirmation.comparisons:
        yield _verdict_in_words(confirmation, comparison)
    for candidate in result.candidates:
        failed = texts.count_text(candidate.failures, "fresh run")
        if candidate.num_evaluations < confirmation.num_runs:
            scores = f"{candidate.num_evaluations} of {confirmation.num_runs} scores"
            yield f"{candidate.name} has {scores} ({failed} failed), so nothing about it is confirmed."
        elif candidate.failures:
            yield f"{failed} of {candidate.name} failed, so the verdict is about runs that finish."
    yield from result.questions


def _verdict_in_words(confirmation: Confirmation, comparison: FreshComparison) -> str:
    """State the verdict about one rival with its interval, its p-value, and its size in run-to-run sds."""
    winner, rival, num_rivals = confirmation.winner, comparison.rival, len(confirmation.comparisons)
    lead = {
        "confirmed": f"Confirmed: {winner} is better than {rival}",
        "contradicted": f"Contradicted: {rival} is better than {winner}",
        "not confirmed": f"Not confirmed: {winner} against {rival}",
    }[comparison.verdict]
    runs = texts.count_text(confirmation.num_runs, "fresh run") + " each"
    if comparison.difference is None:
        return f"{lead}. Too few of the {runs} have a score."
    test, splits = "Welch's t-test", ""
    if comparison.num_pairs:
        test, splits = "paired t-test", f" on {texts.count_text(comparison.num_pairs, 'shared split')}"
    difference = f"{winner} minus {rival} is {texts.number_text(comparison.difference, sign='+')}{splits}"
    interval = f"95% interval {texts.interval_text(comparison.interval)}"
    p_text = texts.probability_text(comparison.p_value)
    evidence = f"{test}, one-sided p {p_text if p_text[0] in '<>' else f'= {p_text}'}"
    if num_rivals > 1:
        interval += f" by Bonferroni's method for {num_rivals} rivals"
        evidence += " by Holm's method"
    if comparison.lead_in_sds is not None:
        evidence += f"; {texts.number_text(comparison.lead_in_sds, 2)} run-to-run sds"
    return f"{lead}. Over {runs}, {difference} ({interval}; {evidence})."


def plan_in_words(plan: ConfirmationPlan) -> Iterator[str]:
    """State what is fixed, what choosing took and the claim adds if the time of a run is known, and what these runs can
    show."""
    rivals, total = texts.names_text([lead.rival for lead in plan.leads]), plan.num_runs * len(plan.names)
    new = "new splits and seeds" if plan.is_paired else "new seeds"
    yield f"Confirming {plan.winner} against {rivals}: {plan.num_runs} runs each, {total} in all, with {new}."
    if plan.seconds:
        before, after = map(texts.duration_text, (plan.seconds_before, plan.num_runs * plan.seconds))
        chosen = f"Choosing took {texts.count_text(plan.num_runs_before, 'run')} and {before}"
        yield f"{chosen}, and the claim takes {texts.count_text(total, 'run')} and {after} of all workers."
    for lead in plan.leads:
        yield power_in_words(plan, lead)


def power_in_words(plan: ConfirmationPlan, lead: SeenLead) -> str:
    """State the probability to confirm a difference as large as the selection saw, and half of it."""
    power, half = plan.power(lead, plan.num_runs), plan.power(lead, plan.num_runs, share=0.5)
    against = f" against {lead.rival}" if len(plan.leads) > 1 else ""
    if power is None:
        return f"The selection has too few runs{against} to estimate what these can show."
    if lead.lead is not None and lead.lead <= 0:
        return f"The selection saw no lead{against} on the runs that count, so expect no confirmation."
    needed = lead.num_runs_for_claim(num_rivals=len(plan.leads))
    proposal = "" if power >= POWER else f" For {POWER:.2f}: --runs {needed or f'above {MAX_FRESH_RUNS}'}."
    return (
        f"{plan.num_runs} runs each confirm a difference as large as the selection saw{against} "
        f"({texts.number_text(lead.lead)}, which tends to be too large) with probability {power:.2f}, half of it with "
        f"{half:.2f}.{proposal}"
    )


@show.register
def _(plan: ConfirmationPlan) -> TerminalLines:
    return [*plan_in_words(plan), "Nothing was started."]


@show.register
def _(confirmation: Confirmation) -> TerminalLines:
    tables = [confirmation_table([confirmation])] if confirmation.is_over else []
    return [*tables, *confirmation_in_words(confirmation)]


def plan_confirmation(settings: ConfirmSettings, resources: Mapping[str, Any]) -> ConfirmationPlan:
    """Return what a confirmation fixes, and what it can show. Start nothing."""
    return FinishedSelection.read(settings.directory, resources.get("allow", ())).plan(settings)


def confirm(
    settings: ConfirmSettings,
    resources: Mapping[str, Any],
    console: Console,
    *,
    display: Display,
    recover: bool = False,
) -> Confirmation:
    """Make the fresh runs of a confirmation, or continue them, and return what they say.

    `resources` are settings of `fiesta select` about resources, which replace those of the selection."""
    check_resources(resources)
    if recover:
        directory = FinishedSelection.resume(settings, resources, console, display)
    else:
        selection = FinishedSelection.read(settings.directory, resources.get("allow", ()))
        plan = selection.plan(settings)
        console.print(*plan_in_words(plan))
        directory = selection.begin(plan, seed=settings.seed, resources=resources, console=console, display=display)
    confirmation = Confirmation.read(directory)
    if confirmation is None:
        raise StoreError(f"{directory.root}: the confirmation has not begun its first run.")
    return confirmation
