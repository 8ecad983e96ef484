"""What a report explains, wherever it is shown."""

from fiesta_allennlp.reports.content import Report

DESCRIPTIVE = (
    "These numbers describe the scores that were collected. A selection trains longer what did well, by merit or by "
    "chance, so these p-values do not have the meaning of a test with sizes fixed beforehand, and none of them decided "
    "anything: P(best) did."
)
DESCRIPTIVE_TABLE = (
    "The best candidate was found on the same scores that are tested here, so these p-values describe and do not prove."
)
DESCRIPTIVE_PAIR = (
    "These p-values describe. They have the meaning of a test only if the two candidates and the numbers of their "
    "scores were chosen before any score was seen."
)
INTERVAL = (
    "The interval of a mean is the candidate's own: the mean -+ t(.975; n - 1) sd / sqrt(n), which is its 95 % "
    "credible interval under the prior 1 / sigma. The luck of the splits is in it. P(best) compares on shared splits, "
    "where that luck falls out, so it can be sure where intervals overlap."
)
INTERVAL_OFFICIAL = (
    "The interval of a mean is the candidate's own: the mean -+ t(.975; n - 1) sd / sqrt(n), which is its 95 % "
    "credible interval under the prior 1 / sigma. It has only the luck of the seeds in it, not that of the data."
)
MEASURE = (
    "{metric} is of all answers together. The 95 % credible interval is of what it would be on all documents like "
    "these, by the selection's belief. Queries are those that were made; kept answers cost nothing."
)
MEASURE_UNKNOWN = (
    "{metric} is of all answers together. The belief of this selection, {belief}, is about the mean score of a "
    "document, so there is no interval. Queries are those that were made; kept answers cost nothing."
)
EFFECT_SIZES = (
    "Mean difference and interval are of the differences on shared splits where there are two or more, else of the two "
    "samples (Welch). That interval is two-sided and comes from these differences alone. P(best) is one-sided and "
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
    "Lower scores are better here: a negative difference, delta or d and an A below 0.5 speak for the first one. ASO "
    "epsilon min is about its scores lying below the other's."
)
TESTS = (
    "Each cell has the p-value and, after the slash, that of Holm's correction for the number of comparisons. Each "
    "test takes 3 scores of each candidate, Wilcoxon's 3 shared splits."
)
SINGLE_SCORE = (
    "How often a comparison of single runs would have named another candidate than {best}: exactly, over all ways of "
    "drawing from the recorded scores. Three runs are drawn with replacement."
)
DEVELOPMENT = (
    "Spearman's rank correlation of the development score {metric} with the test score: near 1, the run that does best "
    "on the development part also does best on the test part."
)


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
