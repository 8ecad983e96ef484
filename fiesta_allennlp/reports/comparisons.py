"""The scores of one candidate and of two compared, development and test scores, and the risk of single runs.

All of this describes. What decides is the posterior.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.probability.student_t import correlated_t
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.t_tests import (
    INTERVAL_LEVEL,
    MIN_NUM_SCORES,
    Interval,
    TTest,
    compute_mean_interval,
    differences_on_shared_splits,
    run_to_run_sd,
)

MIN_NUM_SPLITS = 5
"""With fewer splits that all candidates have, the share of wrong comparisons on one split is a matter of luck."""


@dataclass(frozen=True)
class DevelopmentCorrelation:
    """Spearman's rank correlation of development and test scores.

    `overall` covers the runs of all candidates. `by_candidate` has one entry for each candidate with three or more
    runs, unless its development or test scores are constant.
    """

    overall: Optional[float]
    num_evaluations: int
    by_candidate: Mapping[str, float] = field(default_factory=dict)


def correlate_development(candidates: Sequence[CandidateResult]) -> Optional[DevelopmentCorrelation]:
    """Return None if no candidate has a development score."""
    pairs_by_candidate = {candidate.name: _pair_development_scores(candidate) for candidate in candidates}
    all_pairs = np.concatenate([*pairs_by_candidate.values(), np.empty((0, 2))])
    if not len(all_pairs):
        return None
    rhos = {name: rho for name, pairs in pairs_by_candidate.items() if (rho := spearman_rho(pairs)) is not None}
    return DevelopmentCorrelation(spearman_rho(all_pairs), len(all_pairs), rhos)


def _pair_development_scores(candidate: CandidateResult) -> np.ndarray:
    """Development and test scores. Shape: `(num_evaluations, 2)`."""
    score_pairs = zip(candidate.development_scores, candidate.scores, strict=True)
    return np.array([row for row in score_pairs if row[0] is not None], dtype=float).reshape(-1, 2)


def spearman_rho(pairs: np.ndarray) -> Optional[float]:
    """Spearman's rho of the two columns. None for fewer than 3 rows, or where a column is constant."""
    if len(pairs) < MIN_NUM_SCORES or (np.ptp(pairs, axis=0) == 0).any():
        return None
    return float(np.corrcoef(*map(rank_values, pairs.T))[0, 1])


def rank_values(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value from 1 on; equal values share the mean of their ranks. Shape: `(num_values,)`."""
    _, value_indices, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[value_indices]


@dataclass(frozen=True)
class SingleScoreRisk:
    """The probability that a comparison of single scores names another candidate than `best`.

    The probability is exact, over all ways to draw from the recorded scores. It excludes candidates that failed or that
    you removed. The candidates of a tie share it.

    Attributes:
        wrong_single: for one run of each candidate, whatever its split.
        num_common_splits: the number of splits that all candidates have.
        wrong_same_split: for one run of each candidate on one common split, drawn at random. None if there are fewer
            than five of them.
        wrong_best_of_3: for three runs of each candidate, drawn with replacement. The run with the best development
            score counts, by its test score. None if a candidate has no development scores.
    """

    best: str
    wrong_single: float
    wrong_same_split: Optional[float] = None
    num_common_splits: int = 0
    wrong_best_of_3: Optional[float] = None


NUM_COMPARED_RUNS = 3


ScoreDistribution = Tuple[np.ndarray, np.ndarray]
"""Scores and their probabilities of being drawn, both of shape `(num_scores,)`."""


def compute_single_score_risk(result: Result) -> Optional[SingleScoreRisk]:
    """Compute what comparisons of single runs would have named, among candidates that take part. None where fewer than
    two have scores, or the leading one has none."""
    contenders = [_negate_scores(c) if result.minimise else c for c in result.active if c.scores]
    rivals = [candidate for candidate in contenders if candidate.name != result.leading]
    if result.leading is None or not rivals or len(rivals) == len(contenders):
        return None
    contenders = [next(candidate for candidate in contenders if candidate.name == result.leading), *rivals]
    scores_by_split = [_group_by_split(candidate) for candidate in contenders]
    common_splits = sorted(set.intersection(*map(set, scores_by_split)))
    by_split = ([_spread_evenly(scores[split]) for scores in scores_by_split] for split in common_splits)
    prob_wrong = [1 - prob_first_wins(distributions) for distributions in by_split]
    has_development = all(c.development_scores and None not in c.development_scores for c in contenders)
    return SingleScoreRisk(
        best=result.leading,
        wrong_single=1 - prob_first_wins([_spread_evenly(candidate.scores) for candidate in contenders]),
        wrong_same_split=float(np.mean(prob_wrong)) if len(common_splits) >= MIN_NUM_SPLITS else None,
        num_common_splits=len(common_splits),
        wrong_best_of_3=1 - prob_first_wins(list(map(_weigh_best_runs, contenders))) if has_development else None,
    )


def _negate_scores(candidate: CandidateResult) -> CandidateResult:
    development_scores = tuple(None if score is None else -score for score in candidate.development_scores)
    return replace(candidate, scores=tuple(-score for score in candidate.scores), development_scores=development_scores)


gauss_legendre = lru_cache(maxsize=1)(np.polynomial.legendre.leggauss)
"""Nodes and weights in [-1, 1]; the splits of a report all need the same ones."""


def prob_first_wins(distributions: Sequence[ScoreDistribution]) -> float:
    """Compute the probability that the first score is the highest of independent draws. A tie of k counts 1 / k.

    For a score x it is int_0^1 prod_j (L_j + E_j u) du, with the probabilities L_j and E_j that score j is lower than x
    or equal to it. Gauss and Legendre's rule gives it exactly."""
    (scores, weights), *rivals = distributions
    nodes, node_weights = gauss_legendre(len(rivals) // 2 + 1)
    nodes, node_weights = (nodes + 1) / 2, node_weights / 2
    # Shape: (num_scores, num_nodes)
    prob_rivals_lower = np.ones((len(scores), len(nodes)))
    for rival, rival_weights in rivals:
        order = np.argsort(rival)
        cumulated = np.concatenate([[0.0], np.cumsum(rival_weights[order])])
        lower, upper = (cumulated[np.searchsorted(rival[order], scores, side=side)] for side in ("left", "right"))
        prob_rivals_lower *= lower[:, None] + (upper - lower)[:, None] * nodes
    return float(np.clip(weights @ prob_rivals_lower @ node_weights, 0, 1))


def _spread_evenly(scores: Sequence[float]) -> ScoreDistribution:
    return np.array(scores), np.full(len(scores), 1 / len(scores))


def _group_by_split(candidate: CandidateResult) -> Dict[int, List[float]]:
    scores_by_split: Dict[int, List[float]] = {}
    for split, score in zip(candidate.split_seeds, candidate.scores, strict=True):
        scores_by_split.setdefault(split, []).append(score)
    return scores_by_split


def _weigh_best_runs(candidate: CandidateResult) -> ScoreDistribution:
    """Return test scores with the probability that theirs is the best of `NUM_COMPARED_RUNS` development scores; equal
    ones share it."""
    development_scores = np.array(candidate.development_scores)
    sorted_scores, num_scores = np.sort(development_scores), len(development_scores)
    share_below, share_up_to = (
        np.searchsorted(sorted_scores, development_scores, side=side) / num_scores for side in ("left", "right")
    )
    # of the runs that share a score, each is as likely to be taken
    num_equal = (share_up_to - share_below) * num_scores
    return np.array(candidate.scores), (share_up_to**NUM_COMPARED_RUNS - share_below**NUM_COMPARED_RUNS) / num_equal


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` compared with those of `second`; every difference is first minus second.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates, and `num_pairs` is their number. With two or more pairs (`paired`), `mean_difference` and `interval`
    (95%, Student's t) are of the paired differences. Otherwise they are of the two samples (Welch's t).

    `sd` is the run-to-run sd of the two (`run_to_run_sd`), and `effect` the mean difference in units of it.

    `cliffs_delta` is P(first > second) - P(first < second) over all pairs of scores, from -1 to 1.

    `prob_new_data` is the probability that `first` is better on new data of the same kind, by the correlated t
    posterior. It is None without three shared random splits of a known share of the data. With `minimise`, lower scores
    are better.
    """

    first: str
    second: str
    minimise: bool = False
    paired_differences: Tuple[float, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[Interval] = None
    sd: Optional[float] = None
    cliffs_delta: Optional[float] = None
    prob_new_data: Optional[float] = None

    @property
    def num_pairs(self) -> int:
        return len(self.paired_differences)

    @property
    def paired(self) -> bool:
        return self.num_pairs > 1

    @property
    def effect(self) -> Optional[float]:
        return self.mean_difference / self.sd if self.sd and self.mean_difference is not None else None

    @property
    def num_ahead(self) -> int:
        """The number of shared splits on which `first` is better."""
        return sum((difference < 0) if self.minimise else (difference > 0) for difference in self.paired_differences)


def compare_scores(
    first: CandidateResult, second: CandidateResult, *, minimise: bool = False, test_share: Optional[float] = None
) -> Comparison:
    """Compare two candidates. `test_share` is the share of the data that a random split tests on."""
    scores = first_scores, second_scores = np.array(first.scores), np.array(second.scores)
    differences = differences_on_shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
    is_paired, have_scores = len(differences) > 1, bool(first.scores and second.scores)
    unpaired_difference = float(np.mean(first_scores) - np.mean(second_scores)) if have_scores else None
    return Comparison(
        first=first.name,
        second=second.name,
        minimise=minimise,
        paired_differences=tuple(differences.tolist()),
        mean_difference=float(np.mean(differences)) if is_paired else unpaired_difference,
        interval=compute_mean_interval(differences)
        if is_paired
        else compute_welch_interval(first_scores, second_scores),
        sd=run_to_run_sd(differences if is_paired else np.array([]), scores)
        if is_paired or min(map(len, scores)) > 1
        else None,
        cliffs_delta=float(np.sign(first_scores[:, None] - second_scores).mean()) if have_scores else None,
        prob_new_data=(
            correlated_t(-differences if minimise else differences, test_share).prob_above_0()
            if test_share is not None and len(differences) >= MIN_NUM_SCORES
            else None
        ),
    )


def compute_welch_interval(first_scores: np.ndarray, second_scores: np.ndarray) -> Optional[Interval]:
    """Compute Welch's 95% interval of the difference of two means; None where one has fewer than 3 scores."""
    if min(len(first_scores), len(second_scores)) < MIN_NUM_SCORES:
        return None
    return TTest.welch(first_scores, second_scores).interval(INTERVAL_LEVEL)
