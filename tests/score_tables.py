"""Tables of scores of which consecutive ones of a candidate share a split, and scores with known means."""

import csv
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

from fiesta_allennlp.tables.simulation.planning import NOISE_SD, ScorePreset

TDSA_MEANS = {
    "tdlstm": 0.6462,
    "atae": 0.6323,
    "ian": 0.6319,
    "tdlstm_50": 0.6095,
    "lstm": 0.6062,
    "atae_50": 0.5946,
    "ian_50": 0.5925,
    "lstm_50": 0.5679,
}
"""Mean test macro-F1 of the 8 candidates of the FIESTA paper's section 5.2."""

TDSA_8 = ScorePreset("tdsa-8", TDSA_MEANS)
TIE = ScorePreset("tie", {"first": 0.64, "second": 0.64, "third": 0.62, "fourth": 0.60})
NOISY = ScorePreset(
    "noisy", {"best": 0.64, "noisy": 0.62, "third": 0.62, "fourth": 0.60}, noise_sds={"noisy": 3 * NOISE_SD}
)


def score_rows(scores: Mapping[str, Sequence[Any]], unit: str = "seed", **more: Any) -> List[Dict[str, Any]]:
    """Return a row for each score, with its place among those of its candidate as the seed or another unit."""
    return [
        {"candidate": name, unit: place, "score": score, **more}
        for name, values in scores.items()
        for place, score in enumerate(values)
    ]


def split_rows(scores: Mapping[str, Sequence[float]], scores_per_split: int = 1) -> List[Dict[str, Any]]:
    """Return a row for each score. Each `scores_per_split` consecutive ones of a candidate share a split."""
    return [
        {"candidate": name, "split": number // scores_per_split, "seed": number + 1, "score": score}
        for name, values in scores.items()
        for number, score in enumerate(values)
    ]


def write_split_table(path: Path, scores: Mapping[str, Sequence[float]], scores_per_split: int = 1) -> Path:
    """Write these rows as CSV."""
    rows = split_rows(scores, scores_per_split)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
