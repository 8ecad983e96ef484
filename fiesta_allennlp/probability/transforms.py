import numpy as np

from fiesta_allennlp.errors import ScoreError

LOGIT_CLIP = 1e-6
"""Scores nearer than this to 0 or 1 are taken as this near."""


def logit(scores: np.ndarray, *, candidate: str) -> np.ndarray:
    """log(score / (1 - score)), which takes scores in [0, 1] to the whole line. Same shape as `scores`.

    Scores are clipped to [`LOGIT_CLIP`, 1 - `LOGIT_CLIP`] first, so that a score of exactly 0 or 1 becomes -13.8 or
    13.8 and not infinite. Where a candidate has some such scores and others that are not near, its mean logit
    depends on `LOGIT_CLIP`: prefer the scores themselves then.

    # Raises

    `ScoreError` : where a score is outside [0, 1] or NaN. The message names `candidate` and the first such score.
    """
    scores = np.asarray(scores, dtype=float)
    refused = scores[~((scores >= 0) & (scores <= 1))]
    if refused.size:
        raise ScoreError(
            f'a logit needs scores from 0 to 1 but candidate "{candidate}" has {refused[0]}: give the metric as a '
            "share, or use a belief without logit."
        )
    clipped = np.clip(scores, LOGIT_CLIP, 1 - LOGIT_CLIP)
    return np.log(clipped) - np.log1p(-clipped)
