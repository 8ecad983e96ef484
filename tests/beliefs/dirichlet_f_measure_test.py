from dataclasses import replace
from typing import Dict, List, Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta as beta_distribution
from scipy.stats import kstest

from fiesta_allennlp.beliefs import Belief, DirichletFMeasure
from fiesta_allennlp.errors import ConfigError, ScoreError
from fiesta_allennlp.records import Evaluation, History
from fiesta_allennlp.registry import build
from tests.strategies.histories import evaluation

BINARY = ("tp", "fp", "fn", "tn")
ALIKE = 1e8


def counted(documents: Dict[str, Sequence[Sequence[int]]], kinds: Sequence[str] = BINARY) -> History:
    """A history of documents' counts by candidate, each in the order of `kinds`."""
    done: List[Evaluation] = []
    for name, rows in documents.items():
        for k, row in enumerate(rows):
            metrics = {f"count:{kind}": number for kind, number in zip(kinds, row, strict=True)}
            done.append(replace(evaluation(name, k, 0.5), metrics=metrics))
    return History(tuple(documents), tuple(done))


def test_one_document_against_integration() -> None:
    """Where documents are alike, tp : fp + fn is beta distributed, and F = x / (x + (1 - x) / 2)."""
    belief = DirichletFMeasure(concentration=ALIKE, num_samples=4096)
    found = belief.posterior(counted({"a": [[6, 1, 2, 11]]}))
    x = (np.arange(100000) + 0.5) / 100000
    density = beta_distribution.pdf(x, 6.25, 3.5)
    f = x / (x + (1 - x) / 2)
    mean = (density * f).mean() / density.mean()
    deviation = ((density * (f - mean) ** 2).mean() / density.mean()) ** 0.5
    assert found.location[0] == pytest.approx(mean, abs=5e-4)
    assert found.scale[0] == pytest.approx(deviation, abs=5e-4)


def test_two_candidates_against_integration() -> None:
    belief = DirichletFMeasure(concentration=ALIKE, num_samples=4096)
    first, second = (6, 1, 2, 11), (4, 2, 3, 11)
    found = belief.posterior(counted({"a": [first], "b": [second]})).prob_best()
    x = (np.arange(100000) + 0.5) / 100000
    higher = (beta_distribution.pdf(x, 6.25, 3.5) * beta_distribution.cdf(x, 4.25, 5.5)).mean()
    assert_allclose(found, [higher, 1 - higher], atol=1e-3)


def test_documents_that_differ_tell_less() -> None:
    documents = {"a": [[6, 1, 2, 11], [5, 2, 2, 11]]}
    scales = [float(DirichletFMeasure(concentration=a).posterior(counted(documents)).scale[0]) for a in (1, 10, ALIKE)]
    assert scales[0] > 1.3 * scales[1] > 1.3 * 1.1 * scales[2]


def test_labels_by_pairs() -> None:
    kinds = [f"{gold}>{answer}" for gold in "ab" for answer in "ab"]
    pairs = DirichletFMeasure(average="macro").posterior(counted({"m": [[6, 1, 2, 11]]}, kinds))
    binary = DirichletFMeasure(average="macro").posterior(counted({"m": [[11, 2, 1, 6]]}))
    assert_allclose(pairs.location, binary.location, atol=2e-3)
    assert_allclose(pairs.scale, binary.scale, atol=2e-3)


def test_an_answer_that_is_no_label_counts_as_wrong() -> None:
    kinds = ["a>a", "a>b", "b>a", "b>b", "a>?"]
    without = counted({"m": [[40, 2, 2, 40, 0]]}, kinds)
    with_it = counted({"m": [[40, 2, 2, 40, 20]]}, kinds)
    belief = DirichletFMeasure(average="accuracy", concentration=ALIKE)
    assert belief.posterior(without).location[0] - belief.posterior(with_it).location[0] > 0.15


def test_kinds_that_one_candidate_lacks_are_0() -> None:
    full = counted({"a": [[6, 1, 2, 0]], "b": [[5, 2, 2, 0]]})
    lacking = History(full.candidates, (counted({"a": [[6, 1, 2]]}, BINARY[:3]).evaluations[0], full.evaluations[1]))
    belief = DirichletFMeasure()
    assert belief.posterior(full).prob_best().tolist() == belief.posterior(lacking).prob_best().tolist()


def test_beta_weighs_precision() -> None:
    both = counted({"precise": [[10, 0, 10, 10]], "complete": [[10, 10, 0, 10]]})
    for beta, expected in ((0.9, [1, 0]), (0.5, [0.5, 0.5]), (0.1, [0, 1])):
        found = DirichletFMeasure(beta=beta, concentration=ALIKE).posterior(both).prob_best()
        assert_allclose(found, expected, atol=0.02)


def test_everything_wrong_or_right_gives_finite_numbers() -> None:
    posterior = DirichletFMeasure().posterior(counted({"w": [[0, 9, 9, 9]] * 50, "r": [[9, 0, 0, 9]] * 50}))
    assert_allclose(posterior.prob_best(), [0, 1], atol=1e-6)
    assert posterior.location[0] < 0.05 < 0.95 < posterior.location[1] <= 1
    assert np.isfinite(posterior.scale).all()


@pytest.mark.parametrize("learned", [False, True])
def test_a_longer_history_is_the_same_as_one_made_at_once(learned: bool) -> None:
    """Nothing is kept between looks that changes what is believed."""
    belief = DirichletFMeasure(learn_concentration=learned)
    whole = counted({"a": [[6, 1, 2, 11], [3, 3, 3, 1]], "b": [[4, 2, 3, 11], [9, 1, 0, 4]]})
    grown = History(whole.candidates)
    for done in reversed(whole.evaluations):
        grown = grown.after([done])
        if all(grown.num_finished(name) for name in "ab"):
            belief.posterior(grown)
    fresh = DirichletFMeasure(learn_concentration=learned).posterior(whole)
    assert belief.posterior(grown).prob_best().tolist() == fresh.prob_best().tolist()


def posterior_rank(belief: DirichletFMeasure, concentration: float, rng: np.random.Generator) -> float:
    """P(F below the true F) after three documents, with rates from the prior: uniform where all is right."""
    rates = np.maximum(rng.dirichlet(np.full(4, 0.25)), 1e-12)
    documents = rng.multinomial(20, rng.dirichlet(concentration * rates, 3))
    log_odds = np.log(rates[0]) - np.log((rates[1] + rates[2]) / 2)
    (known,) = belief.posterior(counted({"a": documents.tolist()})).marginals
    return float(np.interp(log_odds, known.log_odds, known.below))


class TestCalibration:
    def test_quantiles_are_uniform(self) -> None:
        rng, belief = np.random.default_rng(17), DirichletFMeasure()
        assert kstest([posterior_rank(belief, 1.0, rng) for _ in range(400)], "uniform").pvalue > 0.01

    def test_quantiles_are_uniform_where_the_concentration_is_learned(self) -> None:
        rng, belief = np.random.default_rng(23), DirichletFMeasure(learn_concentration=True, num_samples=256)
        ranks = [posterior_rank(belief, a, rng) for a in np.exp(rng.normal(0, 2, 300))]
        assert kstest(ranks, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"beta": 1.5}, "beta must be from 0 .* got 1.5"),
        ({"average": "micro"}, "average must be binary, macro or accuracy but got 'micro'"),
        ({"concentration": 0}, "concentration must be from 0.001"),
        ({"prior_concentration": -1}, "prior_concentration must be from 0.001"),
        ({"num_samples": 1000}, "num_samples must be a power of 2, at least 64, but got 1000"),
        ({"num_samples": 32}, "at least 64"),
    ],
)
def test_parameters_out_of_range_are_refused(params: "dict[str, object]", message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(Belief, {"type": "dirichlet_f_measure", **params})


def test_counts_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(ScoreError, match='1 of candidate "a" have none'):
        DirichletFMeasure().posterior(counted({"a": [[]]}, []))
    for wrong in (-1, 0.5, np.nan, np.inf):
        with pytest.raises(ScoreError, match='whole numbers .* candidate "a" has count:fp'):
            DirichletFMeasure().posterior(counted({"a": [[1, wrong, 1, 1]]}))
    with pytest.raises(ScoreError, match="average 'binary' needs the counts tp, fp, fn, tn"):
        DirichletFMeasure().posterior(counted({"a": [[1, 1, 1, 1]]}, ["x>x", "x>y", "y>x", "y>y"]))
    with pytest.raises(ScoreError, match="labels must not contain '>'"):
        DirichletFMeasure(average="macro").posterior(counted({"a": [[1]]}, ["x>>y"]))
    with pytest.raises(ScoreError, match="count:tp: rename it"):
        DirichletFMeasure(average="macro").posterior(counted({"a": [[1, 1]]}, ["x>y", "tp"]))
    with pytest.raises(ScoreError, match="at least two labels but have 'x' only"):
        DirichletFMeasure(average="macro").posterior(counted({"a": [[1]]}, ["x>x"]))


@pytest.mark.parametrize("num_labels", [2, 8, 20])
def test_the_prior_does_not_drown_the_documents_of_many_labels(num_labels: int) -> None:
    """Three items of each label, all answered right: the macro-F is believed to be high."""
    labels = [f"l{i:02d}" for i in range(num_labels)]
    kinds = [f"{gold}>{answer}" for gold in labels for answer in labels]
    rows = [[int(kind == f"{label}>{label}") for kind in kinds] for label in labels for _ in range(3)]
    belief = DirichletFMeasure(average="macro", learn_concentration=True)
    draws = belief.posterior(counted({"a": rows}, kinds)).sample(4000, np.random.default_rng(0))
    assert draws.mean() > 0.85
