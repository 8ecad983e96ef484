"""Measures how often the correlated t interval of `probability/student_t.py` holds on new data of a known population.

    python scripts/benchmarks/new_data.py --samples 1000

Two linear models, with and without half of the features, are trained by least squares on random resplits of one finite
sample, as in a selection with shared splits. The truth for this sample is the difference in accuracy of the two models
trained on samples of the same training size, on fresh data: its mean over the population. An interval covers it or not;
a 95 % interval should in 95 % of the samples.
"""

from typing import Tuple

import numpy as np
from common import make_parser
from scipy import stats

from fiesta_allennlp.probability.student_t import correlated_t

NUM_FEATURES = 20
NUM_FRESH = 4000
LEVEL = 0.95


def draw(number: int, rng: np.random.Generator) -> Tuple[np.ndarray, np.ndarray]:
    """Draw features and labels of -1 and 1. Shapes: `(number, NUM_FEATURES)` and `(number,)`."""
    features = rng.normal(size=(number, NUM_FEATURES))
    weights = 0.8 ** np.arange(NUM_FEATURES)
    return features, np.sign(features @ weights + rng.normal(0.0, 1.5, number))


def accuracies(train: Tuple[np.ndarray, np.ndarray], test: Tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the accuracy of the model with all features, and of the one with the first half."""
    accuracy_by_model = []
    for num_features in (NUM_FEATURES, NUM_FEATURES // 2):
        weights = np.linalg.lstsq(train[0][:, :num_features], train[1], rcond=None)[0]
        accuracy_by_model.append(np.mean(np.sign(test[0][:, :num_features] @ weights) == test[1]))
    return np.array(accuracy_by_model)


def true_difference(num_train: int, repetitions: int, rng: np.random.Generator) -> float:
    """Return the mean difference in accuracy over fresh samples of the population."""
    differences = [np.subtract(*accuracies(draw(num_train, rng), draw(NUM_FRESH, rng))) for _ in range(repetitions)]
    return float(np.mean(differences))


def resplit_differences(size: int, share: float, num_splits: int, rng: np.random.Generator) -> np.ndarray:
    """Return the differences on random splits of one sample. Shape: `(num_splits,)`."""
    features, labels = draw(size, rng)
    num_test = round(share * size)
    differences = []
    for _ in range(num_splits):
        order = rng.permutation(size)
        test, train = order[:num_test], order[num_test:]
        differences.append(np.subtract(*accuracies((features[train], labels[train]), (features[test], labels[test]))))
    return np.array(differences)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--splits", type=int, nargs="+", default=[5, 10, 30])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    truth = true_difference(args.size - round(args.share * args.size), 3000, rng)
    print(f"true mean difference on new data: {truth:.4f}")
    for num_splits in args.splits:
        covered = {"correlated t": 0, "plain t": 0}
        for _ in range(args.samples):
            differences = resplit_differences(args.size, args.share, num_splits, rng)
            for name, share in (("correlated t", args.share), ("plain t", 0.0)):
                posterior = correlated_t(differences, share)
                low, high = stats.t.interval(LEVEL, posterior.df, posterior.mean, posterior.scale)
                covered[name] += low <= truth <= high
        text = ", ".join(f"{name} {number / args.samples:.3f}" for name, number in covered.items())
        print(f"{num_splits} splits: coverage of 95 % intervals: {text}")


if __name__ == "__main__":
    main()
