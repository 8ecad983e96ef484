from typing import Optional, Sequence

import numpy as np
from scipy import stats

from fiesta_allennlp.reports.content import CandidateReport, Development

MIN_SCORES = 3


def report_development(candidates: Sequence[CandidateReport], metric: str) -> Optional[Development]:
    """Spearman's rank correlation of development and test scores; None where no training told a development score."""
    pairs = {candidate.name: _pairs(candidate) for candidate in candidates}
    everything = np.concatenate([*pairs.values(), np.empty((0, 2))])
    if not len(everything):
        return None
    by_candidate = {name: spearman(found) for name, found in pairs.items()}
    return Development(
        metric=metric,
        overall=spearman(everything),
        num_evaluations=len(everything),
        by_candidate={name: value for name, value in by_candidate.items() if value is not None},
    )


def _pairs(candidate: CandidateReport) -> np.ndarray:
    """Development and test scores. Shape: `(num_evaluations, 2)`."""
    rows = zip(candidate.development_scores, candidate.scores, strict=bool(candidate.development_scores))
    return np.array([row for row in rows if row[0] is not None], dtype=float).reshape(-1, 2)


def spearman(pairs: np.ndarray) -> Optional[float]:
    """Spearman's rho of the two columns. None for fewer than 3 rows, or where a column is constant."""
    if len(pairs) < MIN_SCORES or (np.ptp(pairs, axis=0) == 0).any():
        return None
    return float(stats.spearmanr(pairs[:, 0], pairs[:, 1]).statistic)
