"""How often the default names a wrong winner on families of synthetic problems, as Markdown.

    python scripts/benchmarks/calibration.py --only "noise" --repetitions 200

The share of wrong winners is to be at most 1 - confidence in each family. Where two candidates are near to each other,
no Bayesian rule promises that for the single problem; such families are here too, to show what it comes to.
"""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

import numpy as np
from common import make_parser, print_sections, share

from fiesta_allennlp import replay
from fiesta_allennlp.replays.sources import NOISE_SD, PRESETS, SPLIT_SD, TDSA_MEANS, ScorePreset
from fiesta_allennlp.replays.summary import wilson_interval

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
        Family("two equal", dict.fromkeys("ab", 0.64), margin=NOISE_SD / 2),
        Family("four equal", dict.fromkeys("abcd", 0.64), margin=NOISE_SD / 2),
    ],
    "Hard ones, without a promise": [
        Family("two equal, two behind", PRESETS["tie"].means),
        Family("two, .01 apart", {"a": 0.64, "b": 0.63}),
        Family("two, .02 apart, the worse three times as noisy", {"a": 0.64, "b": 0.62}, noisier("b")),
        Family("four, second three times as noisy", {"a": 0.646, "b": 0.632, "c": 0.62, "d": 0.61}, noisier("b")),
    ],
}


def cells(
    family: Family, *, confidence: float, repetitions: int, batch_size: int, processes: Optional[int], entropy: int
) -> Tuple[str, ...]:
    """Run it. One text for each of `HEADINGS`. Every winner is wrong where several are equal and there is no margin."""
    result = replay(
        family,
        confidence=confidence,
        margin=family.margin or None,
        repetitions=repetitions,
        batch_size=batch_size,
        processes=processes,
        entropy=entropy,
        progress=False,
    )
    best = max(family.means.values())
    equal = sum(best - mean <= family.margin for mean in family.means.values()) > 1 and not family.margin
    wrong = 1 - result.undecided if equal else result.wrong
    quantiles = result.summary["evaluations"]["quantiles"]
    return (
        family.name,
        f"{family.margin:g}",
        f"{result.mean_evaluations:.1f}",
        f"{quantiles['5']}-{quantiles['95']}",
        share(wrong, wilson_interval(round(wrong * repetitions), repetitions)),
        f"{result.undecided:.3f}",
        f"{result.seconds:.0f}",
    )


def main() -> None:
    parser = make_parser(__doc__, repetitions=1000, only="families whose name")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--batch-size", type=int, default=1, help="runs at once, as with so many workers")
    parser.add_argument("--processes", type=int, help="by default one for each core")
    parser.add_argument("--entropy", type=int, default=ENTROPY, help="another number draws other scores")
    args = parser.parse_args()
    options = {
        name: getattr(args, name) for name in ("confidence", "repetitions", "batch_size", "processes", "entropy")
    }
    print_sections(
        HEADINGS,
        FAMILIES,
        lambda family: cells(family, **options),
        label=lambda family: family.name,
        only=args.only,
    )


if __name__ == "__main__":
    main()
