"""What a report explains, wherever it is shown."""

import json
from typing import Any, Mapping, Tuple

from fiesta_allennlp.reports.content import CandidateReport, Report
from fiesta_allennlp.reports.screening import screening_in_words
from fiesta_allennlp.selection.options import flag

DESCRIPTIVE = (
    "These p-values describe the scores of this selection. It ran promising candidates more often and stopped early, "
    "which invalidates a test of fixed size. The decision rests on P(best) alone."
)
DESCRIPTIVE_TABLE = (
    "The best candidate was chosen on the same scores that are tested here, so these p-values only describe."
)
DESCRIPTIVE_PAIR = (
    "These p-values are those of a test only if you chose the two candidates and the numbers of their runs before you "
    "saw any score."
)
INTERVAL = (
    "The interval of a mean is mean -+ t(.975; n - 1) sd / sqrt(n), its 95 % credible interval under the prior "
    "1 / sigma. It includes the variance between splits. P(best) compares candidates on shared splits, where this "
    "variance cancels, so P(best) can be high where intervals overlap."
)
INTERVAL_OFFICIAL = (
    "The interval of a mean is mean -+ t(.975; n - 1) sd / sqrt(n), its 95 % credible interval under the prior "
    "1 / sigma. It includes the variance between seeds, but not between data sets."
)
MEASURE = (
    "{metric} is computed on all answers together. The 95 % credible interval is for all documents like these, by the "
    "selection's posterior. Queries leave out kept answers, which cost nothing."
)
MEASURE_UNKNOWN = (
    "{metric} is computed on all answers together. The posterior of this selection, {belief}, is about the mean score "
    "of a document, so there is no interval. Queries leave out kept answers, which cost nothing."
)
EFFECT_SIZES = (
    "Mean difference and interval use the differences on shared splits where there are two or more, and otherwise the "
    "two samples (Welch). This interval is two-sided and uses these differences alone. P(best) is one-sided and "
    "comes from the model of the scores, so it can reach .95 where the interval still contains 0. Cliff's delta is "
    "P(higher) - P(lower) over all pairs of scores, from -1 to 1; Vargha and Delaney's A is P(higher) + P(equal) / 2, "
    "with 0.5 for no effect; Cohen's d is the mean over the sd of the differences on shared splits."
)
ALMOST_STOCHASTIC_ORDER = (
    "ASO epsilon min (Almost Stochastic Order; Dror et al., 2019) is an upper 95 % bound of how far the first one's "
    "scores are from lying above the other's at every quantile: below 0.5 they are almost stochastically larger, and 0 "
    "is the clearest case. It assumes independent scores and takes 5 of each."
)
LOWER_IS_BETTER = (
    "Lower scores are better: a negative difference, delta or d and an A below 0.5 favour the first candidate. ASO "
    "epsilon min tests whether its scores lie below the other's."
)
TESTS = (
    "Each cell shows the p-value and, after the slash, the p-value with Holm's correction for the number of "
    "comparisons. Each test needs 3 scores of each candidate; Wilcoxon's needs 3 shared splits."
)
SINGLE_SCORE = (
    "How often a comparison of single runs would have named another candidate than {best}. The shares are exact, over "
    "all draws from the recorded scores. Three runs are drawn with replacement."
)
DEVELOPMENT = (
    "Spearman's rank correlation between the validation score {metric} and the test score. If it is near 1, the run "
    "that is best on the validation set is also best on the test set."
)


def changes(report: Report) -> Tuple[str, ...]:
    """What was changed on the way of how runs are chosen and when they end."""
    return tuple(
        f"{flag(change['option'])} was changed from {_value(change, 'before')} to {_value(change, 'now')} after "
        f"{change['num_done']} {report.words.evaluations_of(change['num_done'])}."
        for change in report.changes
    )


def _value(change: Mapping[str, Any], when: str) -> str:
    value = change[when]
    if value is None:
        return "its default" if change["option"] == "max_evaluations" else "none"
    if isinstance(value, dict) and list(value) == ["type"]:
        return str(value["type"])
    return json.dumps(value)


def interval(report: Report) -> str:
    """How the table of the candidates is to be read."""
    if not report.by_documents:
        return INTERVAL_OFFICIAL if report.on_official_splits else INTERVAL
    known = any(c.asked is not None and c.asked.interval is not None for c in report.candidates)
    return (MEASURE if known else MEASURE_UNKNOWN).format(metric=report.metric, belief=report.belief)


def effect_sizes(report: Report) -> str:
    """How the table of the differences is to be read."""
    return " ".join([EFFECT_SIZES, ALMOST_STOCHASTIC_ORDER, *([LOWER_IS_BETTER] if report.minimise else [])])


def descriptive(report: Report) -> str:
    """Why no p-value of this report proves anything."""
    if report.adaptive:
        return DESCRIPTIVE
    return DESCRIPTIVE_TABLE if len(report.candidates) > 2 else DESCRIPTIVE_PAIR


def no_part(candidate: CandidateReport) -> str:
    """Why a candidate takes no part, after its name."""
    what = "was removed" if candidate.out == "removed" else "dropped out"
    return f"{what}: {candidate.withdrawn_because or 'no reason is known'}"


def screening(report: Report) -> str:
    """What the first stage of a search came to."""
    return "" if report.screening is None else " ".join(screening_in_words(report.screening))
