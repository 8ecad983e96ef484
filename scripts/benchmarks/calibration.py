"""How often the default names a wrong winner on families of synthetic problems, as Markdown.

    python scripts/benchmarks/calibration.py --only "noise" --repetitions 200

The share of wrong winners is to be at most 1 - confidence in each family. Where two candidates are near to each other,
no Bayesian rule promises that for the single problem; such families are here too, to show what it comes to.
"""

import argparse
import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

import numpy as np

from fiesta_allennlp.replays.replay import replay
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.replays.sources import NOISE_SD, PRESETS, SPLIT_SD, TDSA_MEANS, ScorePreset
from fiesta_allennlp.replays.summary import summarise_replay, wilson_interval

ENTROPY = 20190802
HEADINGS = ("family", "margin", "mean evaluations", "5-95 %", "wrong (95 % interval)", "undecided", "seconds")

FAILURE_RATE, FAILURE_DROP = 0.2, 0.1
"""How often the candidate that may fail to converge does, and by how much its score is then lower."""


@dataclass(frozen=True)
class Family(ScorePreset):
    """Normal scores as of a preset, or with heavy tails, or with a candidate that sometimes fails to converge.

    `tail_df` : the noise is Student-t with these degrees of freedom and the same standard deviation.
    `failing` : this candidate's score is lower by `FAILURE_DROP` at the rate of `FAILURE_RATE`; its mean is as given.
    `margin` : what counts as equally good.
    """

    tail_df: Optional[float] = None
    failing: Optional[str] = None
    margin: float = 0.0

    def noise(self, name: str, rng: np.random.Generator, length: int) -> np.ndarray:
        if self.tail_df is None:
            noise = super().noise(name, rng, length)
        else:
            noise = rng.standard_t(self.tail_df, length) * NOISE_SD * np.sqrt((self.tail_df - 2) / self.tail_df)
        if name == self.failing:
            noise = noise + FAILURE_DROP * (FAILURE_RATE - (rng.random(length) < FAILURE_RATE))
        return noise


def noisier(*names: str) -> Mapping[str, float]:
    return dict.fromkeys(names, 3 * NOISE_SD)


FAMILIES: Dict[str, List[Family]] = {
    "Families": [
        Family("equal noise, 8 candidates", TDSA_MEANS),
        Family("second-best three times as noisy, 8", TDSA_MEANS, noisier("atae")),
        Family("best three times as noisy, 8", TDSA_MEANS, noisier("tdlstm")),
        Family("second-best fails to converge at times, 8", TDSA_MEANS, failing="atae"),
        Family("heavy tails (t with 3 df), 8", TDSA_MEANS, tail_df=3.0),
        Family("no split effect, 8", TDSA_MEANS, split_sd=0.0),
        Family("strong split effect, 8", TDSA_MEANS, split_sd=3 * SPLIT_SD),
        Family("near tie, 4", {"a": 0.640, "b": 0.637, "c": 0.620, "d": 0.600}, margin=0.01),
        Family("20 candidates, .008 apart", {f"c{k}": 0.65 - 0.008 * k for k in range(20)}),
    ],
    "Hard ones, without a promise": [
        Family("two equal, two behind", PRESETS["tie"].means),
        Family("two, .01 apart", {"a": 0.64, "b": 0.63}),
        Family("two, .02 apart, the worse three times as noisy", {"a": 0.64, "b": 0.62}, noisier("b")),
        Family("four, second three times as noisy", {"a": 0.646, "b": 0.632, "c": 0.62, "d": 0.61}, noisier("b")),
    ],
}


def cells(family: Family, *, confidence: float, repetitions: int, processes: Optional[int]) -> Tuple[str, ...]:
    """Run it. One text for each of `HEADINGS`. Every winner is wrong where several are equal and there is no margin."""
    settings = ReplaySettings(
        scores=family.name,
        confidence=confidence,
        margin=family.margin or None,
        repetitions=repetitions,
        processes=processes,
        entropy=ENTROPY,
    )
    outcome = replay(settings, source=family)
    best = max(family.means.values())
    equal = sum(best - mean <= family.margin for mean in family.means.values()) > 1 and not family.margin
    wrong = sum(run.stopped_by == "confidence" and (equal or not run.correct) for run in outcome.repetitions)
    summary = summarise_replay(outcome)
    low, high = wilson_interval(wrong, repetitions)
    return (
        family.name,
        f"{family.margin:g}",
        f"{summary['evaluations']['mean']:.1f}",
        f"{summary['evaluations']['quantiles']['5']}-{summary['evaluations']['quantiles']['95']}",
        f"{wrong / repetitions:.3f} ({low:.3f}-{high:.3f})",
        f"{summary['undecided']:.3f}",
        f"{summary['seconds']:.0f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--processes", type=int, help="by default one for each core")
    parser.add_argument("--only", default="", metavar="PATTERN", help="families whose name has this regular expression")
    args = parser.parse_args()
    for title, families in FAMILIES.items():
        chosen = [family for family in families if re.search(args.only, family.name)]
        if chosen:
            print(f"\n### {title}\n\n| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}", flush=True)
        for family in chosen:
            row = cells(family, confidence=args.confidence, repetitions=args.repetitions, processes=args.processes)
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
