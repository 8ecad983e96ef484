"""What a confirmation says, as sentences: its verdicts with their numbers, or how far it is."""

from typing import Optional

from fiesta_allennlp.selection.confirmation import Confirmation, FreshComparison
from fiesta_allennlp.selection.texts import count_text, interval_text, number_text, probability_text


def signed_text(value: Optional[float]) -> str:
    return number_text(value, sign="+")


def progress_in_words(confirmation: Confirmation) -> str:
    return f"{confirmation.num_finished} of {confirmation.num_planned} fresh runs"


def unfinished_in_words(confirmation: Confirmation) -> str:
    state = "is running and has" if confirmation.running else "has"
    place = f"The confirmation of {confirmation.plan.winner} in {confirmation.directory}"
    return f"{place} {state} {progress_in_words(confirmation)}. Its verdict comes after the last one."


def verdict_in_words(confirmation: Confirmation, comparison: FreshComparison) -> str:
    """State the verdict about one rival with its numbers."""
    plan = confirmation.plan
    lead = {
        "confirmed": f"Confirmed: {plan.winner} is better than {comparison.rival}",
        "contradicted": f"Contradicted: {comparison.rival} is better than {plan.winner}",
        "not confirmed": f"Not confirmed: {plan.winner} against {comparison.rival}",
    }[comparison.verdict]
    runs = count_text(plan.num_runs, "fresh run") + " each"
    if comparison.difference is None:
        return f"{lead}. Too few of the {runs} have a score."
    return f"{lead}. Over {runs}, {difference_in_words(confirmation, comparison)}."


def difference_in_words(confirmation: Confirmation, comparison: FreshComparison) -> str:
    """State the mean difference with what it rests on."""
    plan = confirmation.plan
    splits = f" on {count_text(comparison.num_pairs, 'shared split')}" if comparison.num_pairs else ""
    lead = f"{plan.winner} minus {comparison.rival} is {signed_text(comparison.difference)}{splits}"
    return f"{lead} ({evidence_in_words(confirmation, comparison)})"


def evidence_in_words(confirmation: Confirmation, comparison: FreshComparison) -> str:
    """State the interval of a difference, its p-value, and its size in run-to-run sds."""
    plan, is_of_rival = confirmation.plan, comparison.verdict == "contradicted"
    p_value = comparison.adjusted_p_value_of_rival if is_of_rival else comparison.adjusted_p_value
    p_text = probability_text(p_value)
    equal = "" if p_text[0] in "<>" else "= "
    method = "paired t-test" if comparison.num_pairs else "Welch's t-test"
    interval = f"95% interval {interval_text(comparison.interval)}"
    test = f"{method}, one-sided p {equal}{p_text}"
    if len(plan.rivals) > 1:
        interval += f" by Bonferroni's method for {len(plan.rivals)} rivals"
        test += " by Holm's method"
    sds = "" if comparison.lead_in_sds is None else f"; {number_text(comparison.lead_in_sds, 2)} run-to-run sds"
    return f"{interval}; {test}{sds}"
