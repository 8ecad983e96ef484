"""Says in sentences what an undecided selection, or one that is running, lacks and offers."""

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.selection.candidate_table import num_decimals
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.texts import count_text, loss_text, pair_text, probability_text


def leading_two_in_words(result: Result) -> str:
    """Offer the candidates that could be the best, and the margin that would have decided. Then name the two that lead
    and what is not met. Without P(best), name the candidates without a finished run."""
    candidates = [c for c in result.candidates if c.prob_best is not None]
    leading_two = sorted(candidates, key=lambda c: (c.name != result.leading, -(c.prob_best or 0.0)))[:2]
    if len(leading_two) < 2:
        missing = join_some(result.without_runs)
        return missing and f"Without a finished {result.words.evaluation}: {missing}."
    leader_text, rival_text = (f"{c.name} (P(best) {probability_text(c.prob_best)})" for c in leading_two)
    offers = (best_set_in_words(result), margin_in_words(result))
    lead_text = f"Leading: {leader_text}, then {rival_text}."
    needs = (undecided_in_words(result), loss_in_words(result), needs_in_words(result))
    return " ".join(filter(None, (*offers, lead_text, *needs)))


def margin_in_words(result: Result) -> str:
    """Offer the margin that would have decided; empty if there is none."""
    if result.credible_margin is None:
        return ""
    margin, best = f"{result.credible_margin['margin']:g}", result.credible_margin["best"]
    return (
        f"{best} is within {margin} of the best with the target probability: take it if such a difference does not "
        f"matter to you. Next time, set --margin {margin} before the first run; set afterwards, it voids the target."
    )


def best_set_in_words(result: Result) -> str:
    """Name the candidates that could still be the best; empty if that is one or all of them, or unknown."""
    names = result.best_set
    if not 1 < len(names) < len(result.active):
        return ""
    together = sum(c.prob_best or 0.0 for c in result.active if c.name in names)
    return f"{join_some(names, ' or ')} is the best with probability {probability_text(together)}."


def undecided_in_words(result: Result) -> str:
    """Name the condition of the stopping rule that is not met, and what would change it; empty if it is unknown."""
    if result.undecided is None:
        return ""
    target, required = (result.undecided[name] for name in ("target", "required"))
    text = {
        "starting runs": "Some candidates have not finished their starting runs yet",
        "probability": f"P(best) is below the target {target:g}: a margin or more runs can change that",
        "few runs": f"With few runs, the stopping rule requires {probability_text(required)}; with more, "
        f"only the target {target:g}",
        "collapsed runs": "Runs may collapse, so the leading two need more; --min-score counts such runs as failed",
        "evidence": f"The evidence does not reach the target {target:g}: more runs can change that",
    }[result.undecided["unmet"]]
    gave_up_text = " The remaining runs would probably not have decided it." if result.undecided["gave_up"] else ""
    return f"{text}.{gave_up_text}"


def loss_in_words(result: Result) -> str:
    """State what choosing the leader now costs; empty if it is unknown."""
    return _sentence(loss_text(result.leading, result.expected_loss, num_decimals(result.candidates)))


def pair_in_words(result: Result) -> str:
    """State P(best) of the leader against its runner-up alone, where it decides otherwise; empty elsewhere."""
    return _sentence(pair_text(result.leading, result.pair_alone))


def _sentence(text: str) -> str:
    return text and f"{text[0].upper()}{text[1:]}."


def needs_in_words(result: Result) -> str:
    """Name the runs that a probable winner still needs; empty if there is none."""
    needs = [f"{name} needs at least {count_text(num_runs, 'more run')}" for name, num_runs in result.lacking.items()]
    return f"The target is reached, but before {result.leading} can win, {join_some(needs, ' and ')}." if needs else ""
