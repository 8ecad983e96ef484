"""The default of `fiesta documents`: closed forms, what it does with rare labels, and its calibration."""

from typing import Any, Dict, List, Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fiesta_allennlp.choosing.beliefs import PairedMeasure
from fiesta_allennlp.choosing.beliefs.paired_measure import PseudoScores, pseudo_scores
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.documents.annotated_documents import Classification
from tests.choosing.beliefs.dirichlet_f_measure_test import BINARY, counted

LABELS = ("x", "y", "z")
PAIRS = [f"{gold}>{answer}" for gold in LABELS for answer in (*LABELS, "?")]


def one_item(right: Dict[str, Sequence[int]]) -> History:
    """A history of documents with one item each, 1 where it is right."""
    return counted({name: [(each, 1 - each, 0, 0) for each in answers] for name, answers in right.items()})


def test_accuracy_of_one_item_documents_is_a_paired_difference_of_proportions() -> None:
    """If b and c documents are answered right by one system only, the difference is (b - c) / n, and its variance is
    (b + c - (b - c)^2 / n) / n^2, as in McNemar's test. The added item vanishes with n."""
    a, b = [1] * 2600 + [0] * 1400, [1] * 1700 + [0] * 900 + [1] * 400 + [0] * 1000
    posterior = PairedMeasure(average="accuracy").posterior(one_item({"a": a, "b": b}))
    difference, sd = 500 / 4000, (1300 - 500**2 / 4000) ** 0.5 / 4000
    lead = posterior.lead(1)
    assert lead is not None and posterior.leader == 0
    assert (lead.difference, lead.standard_error) == pytest.approx((difference, sd), rel=1 / 2000)
    assert posterior.prob_best()[0] == pytest.approx(stats.t.cdf(difference / sd, 3999), abs=2e-4)
    # A margin is in units of the metric.
    assert posterior.prob_best(0.12)[1] == pytest.approx(stats.norm.cdf((0.12 - difference) / sd), abs=3e-3)


def labelled(counts: Dict[str, Sequence[Sequence[int]]]) -> History:
    return counted(counts, PAIRS)


def rows_of(rng: np.random.Generator, share: float, number: int, freq: Sequence[float]) -> List[List[int]]:
    """Documents of some items: a label is wrong with this share, then another one at random."""
    rows = []
    for _ in range(number):
        row = np.zeros((3, 4), dtype=int)
        for gold in rng.choice(3, 1 + rng.poisson(2), p=freq):
            row[gold, gold if rng.random() < share else (gold + rng.integers(1, 3)) % 3] += 1
        rows.append(row.ravel().tolist())
    return rows


@pytest.mark.parametrize("average", ["macro", "accuracy"])
def test_the_location_is_the_metric_of_all_items(average: str) -> None:
    rng = np.random.default_rng(2)
    rows = {name: rows_of(rng, share, 3000, (0.5, 0.3, 0.2)) for name, share in (("a", 0.9), ("b", 0.6))}
    history = labelled(rows)
    posterior = PairedMeasure(average=average).posterior(history)
    task = Classification(metric="macro_f1" if average == "macro" else "accuracy")
    measures = [task.measure(history, name) for name in rows]
    assert np.diff(posterior.means) == pytest.approx(np.diff(measures), abs=5e-4)
    middle = posterior.interval(0.95).mean(axis=1)
    assert_allclose(middle, measures, atol=1e-3)


def test_the_f_measure_weighs_precision_by_beta_and_spans_need_no_true_negatives() -> None:
    both = {"precise": [[10, 0, 10]] * 20, "complete": [[10, 10, 0]] * 20}
    for beta, expected in ((0.9, [1, 0]), (0.5, [0.5, 0.5]), (0.1, [0, 1])):
        found = PairedMeasure(beta=beta).posterior(counted(both, BINARY[:3]))
        assert_allclose(found.prob_best(), expected, atol=0.02)


def test_a_rare_label_keeps_the_posterior_wide_until_it_is_seen() -> None:
    """a answers one item of z right and b wrong: that is a third of the metric, and no more than a coin's toss."""
    common = [[9, 1, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0], [8, 2, 0, 0, 2, 8, 0, 0, 0, 0, 0, 0]] * 20
    right, wrong = ([0] * 8 + [0, 0, 1, 0]), ([0] * 8 + [1, 0, 0, 0])
    posterior = PairedMeasure(average="macro").posterior(labelled({"a": [*common, right], "b": [*common, wrong]}))
    assert posterior.means[0] - posterior.means[1] == pytest.approx(2 / 4 / 3, rel=0.3)
    assert 0.6 < posterior.prob_best()[0] < 0.9


def test_documents_shared_by_some_systems_only_and_orders_of_their_own() -> None:
    """Hard documents hurt both systems: the pair is told apart on shared documents, not on documents of their own."""
    rng = np.random.default_rng(5)
    hard = rng.random(60) < 0.5
    a = np.where(hard, 2, 10)
    shared = counted({"a": [(x, 10 - x, 0, 0) for x in a], "b": [(x - 1, 11 - x, 0, 0) for x in a[:40]]})
    apart = counted({"a": [(x, 10 - x, 0, 0) for x in a], "b": [(0, 0, 0, 0)] * 60})
    other = counted({"b": [(x - 1, 11 - x, 0, 0) for x in a]}, first=60)
    own = History(("a", "b"), (*(e for e in apart.evaluations if e.request.candidate == "a"), *other.evaluations))
    belief = PairedMeasure(average="accuracy")
    assert belief.posterior(shared).prob_best()[0] > 0.999
    assert belief.posterior(own).prob_best()[0] < 0.95


@pytest.mark.parametrize(
    "rows",
    [[(0, 0, 0, 0)] * 3, [(5, 0, 0, 0)] * 3, [(0, 3, 3, 0)] * 5, [(1, 0, 0, 2), (0, 1, 0, 0), (1, 0, 1, 0)]],
)
@pytest.mark.parametrize("average", ["binary", "macro", "accuracy"])
def test_equal_systems_are_equal_even_where_nothing_varies(rows: Any, average: str) -> None:
    posterior = PairedMeasure(average=average).posterior(counted({"a": rows, "b": rows, "c": rows}))
    assert_allclose(posterior.prob_best(), 1 / 3, atol=1e-6)
    assert np.isfinite(posterior.interval(0.95)).all()


def test_probabilities_are_calibrated_among_systems_drawn_from_a_wide_prior() -> None:
    """P(best) of the winner after 30 documents, of 150 pairs: its mean is the share of right winners."""
    rng, belief = np.random.default_rng(8), PairedMeasure(average="macro")
    shares = rng.uniform(0.4, 0.9, (150, 2))
    histories = [
        labelled({name: rows_of(rng, share, 30, (0.6, 0.3, 0.1)) for name, share in zip("ab", pair, strict=True)})
        for pair in shares
    ]
    prob = np.array([belief.posterior(history).prob_best() for history in histories])
    right = prob.argmax(axis=1) == shares.argmax(axis=1)
    assert right.mean() == pytest.approx(prob.max(axis=1).mean(), abs=3 * right.std() / 150**0.5)


@pytest.mark.parametrize(
    ("average", "row", "kinds", "named"),
    [
        ("binary", [], [], "'a'.* none"),
        ("binary", [1, -1, 1, 1], BINARY, "'a'.*count:fp.*-1"),
        ("binary", [1, np.nan, 1, 1], BINARY, "'a'.*count:fp.*nan"),
        ("binary", [1, 1, 1, 1], ["x>x", "x>y", "y>x", "y>y"], "binary.*x>x"),
        ("macro", [1], ["x>>y"], "count:x>>y"),
        ("macro", [1], ["x>x"], "'x'"),
    ],
)
def test_counts_that_cannot_be_used_are_refused(average: str, row: Any, kinds: Any, named: str) -> None:
    with pytest.raises(ScoreError, match=named):
        PairedMeasure(average=average).posterior(counted({"a": [row] * 3}, kinds))


RNG = np.random.default_rng(4)


def of_accuracy(right: np.ndarray, sizes: np.ndarray) -> PseudoScores:
    """Shapes: `(num_systems, num_documents)` and `(num_documents,)`."""
    return pseudo_scores([2.0 * each[:, None] for each in right], [2.0 * sizes[:, None]] * len(right))


def test_a_label_that_nobody_has_seen_is_answered_like_all_others_and_adds_noise() -> None:
    """3 of 4 right: (6 + 1) / (8 + 2) of all. The unseen label has weight 4 / 2 / 2 = 1, the other 4 / 10 / 2 = 0.2."""
    seen = np.array([[2.0], [2.0], [2.0], [0.0]])
    numerators = np.concatenate([seen, np.zeros((4, 1))], axis=1)
    denominators = np.concatenate([np.full((4, 1), 2.0), np.zeros((4, 1))], axis=1)
    found = pseudo_scores([numerators], [denominators])
    known = (6 + 2 * 0.7) / 10
    assert found.centre == pytest.approx((known + 0.7) / 2)
    assert_allclose(found.unseen_squares, (2 * 0.2) ** 2 * known * (1 - known) + 2**2 * 0.7 * 0.3)


def test_intervals_are_those_of_a_mean_with_one_more_item() -> None:
    """Of many documents with 50 items each: nearly the t interval of the documents' shares."""
    right, sizes = RNG.binomial(50, 0.7, (1, 60)), np.full(60, 50)
    found = of_accuracy(right, sizes)
    shares = right[0] / 50
    low, high = found.interval(0.9)[0]
    assert_allclose((low, high), stats.t.interval(0.9, 59, shares.mean(), stats.sem(shares)), atol=2e-4)
    assert of_accuracy(np.full((2, 3), 5), np.full(3, 5)).interval(0.99)[:, 1].tolist() == [1, 1]


def test_intervals_cover_the_true_metric() -> None:
    """A fifth of the items is wrong, documents differ. The share of 95% intervals with the truth: 0.95 +- 3 sd."""
    covered = 0
    for _ in range(400):
        sizes = RNG.integers(1, 8, 40)
        found = of_accuracy(RNG.binomial(sizes, RNG.beta(8, 2, 40))[None], sizes)
        low, high = found.interval(0.95)[0]
        covered += low <= 0.8 <= high
    assert covered / 400 == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / 400) ** 0.5)
