"""Why not one score: how often a comparison of single runs names another candidate than the best one."""

from typing import List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.reports.content import CandidateReport, SingleScore

NUM_RUNS = 3
"""Of which a development set picks one."""

Drawn = Tuple[np.ndarray, np.ndarray]
"""Scores and their probabilities of being drawn, both of shape `(num_scores,)`."""


def single_score(candidates: Sequence[CandidateReport], best: str) -> Optional[SingleScore]:
    """What comparisons of single runs would have named. None where fewer than two candidates have scores.

    # Parameters

    candidates : those that were not withdrawn; those without a score have no part.
    best : the name of one that has a score.
    """
    known = [candidate for candidate in candidates if candidate.scores]
    others = [candidate for candidate in known if candidate.name != best]
    if not others or len(others) == len(known):
        return None
    known = [next(candidate for candidate in known if candidate.name == best), *others]
    common = sorted(set.intersection(*(set(candidate.split_seeds) for candidate in known)))
    by_split = [1 - prob_first_wins([_on_split(candidate, split) for candidate in known]) for split in common]
    chosen = [_best_of_runs(candidate) for candidate in known]
    drawn = [pair for pair in chosen if pair is not None]
    return SingleScore(
        best=best,
        wrong_single=1 - prob_first_wins([_evenly(np.array(candidate.scores)) for candidate in known]),
        wrong_same_split=float(np.mean(by_split)) if common else None,
        num_common_splits=len(common),
        wrong_best_of_3=1 - prob_first_wins(drawn) if len(drawn) == len(known) else None,
    )


def prob_first_wins(drawn: Sequence[Drawn]) -> float:
    """The probability that the first one's score is the highest when each is drawn by itself; of a tie among k it has
    1 / k.

    With L_j and E_j the probabilities that score j is lower than x or equal to it, it is, for a score x,
    E[1 / (1 + number of ties); none is higher] = int_0^1 prod_j (L_j + E_j u) du, which Gauss and Legendre's rule gives
    exactly.
    """
    (scores, weights), *others = drawn
    nodes, node_weights = np.polynomial.legendre.leggauss(len(others) // 2 + 1)
    nodes, node_weights = (nodes + 1) / 2, node_weights / 2
    # Shape: (num_scores, num_nodes)
    product = np.ones((len(scores), len(nodes)))
    for other, other_weights in others:
        order = np.argsort(other)
        cumulated = np.concatenate([[0.0], np.cumsum(other_weights[order])])
        lower, upper = (cumulated[np.searchsorted(other[order], scores, side=side)] for side in ("left", "right"))
        product *= lower[:, None] + (upper - lower)[:, None] * nodes
    return float(np.clip(weights @ product @ node_weights, 0, 1))


def _evenly(scores: np.ndarray) -> Drawn:
    return scores, np.full(len(scores), 1 / len(scores))


def _on_split(candidate: CandidateReport, split: int) -> Drawn:
    return _evenly(np.array(candidate.scores)[np.array(candidate.split_seeds) == split])


def _best_of_runs(candidate: CandidateReport) -> Optional[Drawn]:
    """Test scores with the probability that theirs is the best development score of `NUM_RUNS` runs drawn with
    replacement; equal ones share it. None where a development score is missing."""
    found: List[float] = [score for score in candidate.development_scores if score is not None]
    if not found or len(found) < len(candidate.scores):
        return None
    development = np.array(found)
    ordered = np.sort(development)
    below, up_to = (np.searchsorted(ordered, development, side=side) / len(found) for side in ("left", "right"))
    # of the runs that share a score, each is as likely to be taken
    sharing = (up_to - below) * len(found)
    return np.array(candidate.scores), (up_to**NUM_RUNS - below**NUM_RUNS) / sharing
