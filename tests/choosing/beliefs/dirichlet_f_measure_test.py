from dataclasses import replace
from typing import Dict, List, Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta as beta_distribution
from scipy.stats import kstest

from fiesta_allennlp.choosing.beliefs import DirichletFMeasure
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import log_odds
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import Evaluation, History
from tests.choosing.histories import evaluation

BINARY = ("tp", "fp", "fn", "tn")
ALIKE = 1e8


def counted(documents: Dict[str, Sequence[Sequence[int]]], kinds: Sequence[str] = BINARY, first: int = 0) -> History:
    """A history of documents' counts by candidate, each in the order of `kinds`. `first` is the first document."""
    done: List[Evaluation] = []
    for name, rows in documents.items():
        for k, row in enumerate(rows, first):
            metrics = {f"count:{kind}": number for kind, number in zip(kinds, row, strict=True)}
            done.append(replace(evaluation(name, k, 0.5), metrics=metrics))
    return History(tuple(documents), tuple(done))


def test_one_document_of_each_against_integration() -> None:
    """Where documents are alike, tp : fp + fn is beta distributed, and F = x / (x + (1 - x) / 2)."""
    belief = DirichletFMeasure(concentration=ALIKE, num_samples=4096)
    found = belief.posterior(counted({"a": [(6, 1, 2, 11)], "b": [(4, 2, 3, 11)]}))
    x = (np.arange(100000) + 0.5) / 100000
    density = beta_distribution.pdf(x, 6.25, 3.5)
    f = x / (x + (1 - x) / 2)
    mean = (density * f).mean() / density.mean()
    deviation = ((density * (f - mean) ** 2).mean() / density.mean()) ** 0.5
    assert (found.location[0], found.scale[0]) == pytest.approx((mean, deviation), abs=5e-4)
    higher = (density * beta_distribution.cdf(x, 4.25, 5.5)).mean()
    assert_allclose(found.prob_best(), [higher, 1 - higher], atol=1e-3)


def test_kinds_that_one_candidate_lacks_are_0() -> None:
    full = counted({"a": [[6, 1, 2, 0]], "b": [[5, 2, 2, 0]]})
    lacking = History(full.candidates, (counted({"a": [[6, 1, 2]]}, BINARY[:3]).evaluations[0], full.evaluations[1]))
    belief = DirichletFMeasure()
    assert belief.posterior(full).prob_best().tolist() == belief.posterior(lacking).prob_best().tolist()
    with pytest.raises(ScoreError, match="'a' has x>x.*paired_measure"):
        belief.posterior(counted({"a": [[6, 1]]}, ["x>x", "x>y"]))


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.8, 1.0])
def test_log_odds_weigh_precision_against_recall(beta: float) -> None:
    precision, recall = 0.4 / 0.5, 0.4 / 0.7
    f = 1 / (beta / precision + (1 - beta) / recall)
    assert log_odds(np.log([[0.4, 0.1, 0.3, 0.2]]), beta)[0] == pytest.approx(np.log(f / (1 - f)))
    far = np.array([[0.0, -500.0, -500.0, -1.0], [-900.0, 0.0, 0.0, -1.0]])
    assert_allclose(log_odds(far, 0.5), [500, -900])


def test_everything_wrong_or_right_gives_finite_numbers() -> None:
    posterior = DirichletFMeasure().posterior(counted({"w": [[0, 9, 9, 9]] * 50, "r": [[9, 0, 0, 9]] * 50}))
    assert_allclose(posterior.prob_best(), [0, 1], atol=1e-6)
    assert posterior.location[0] < 0.05 < 0.95 < posterior.location[1] <= 1
    assert np.isfinite(posterior.scale).all()


def test_quantiles_are_uniform() -> None:
    """P(F below the true F) after three documents, with rates from the prior: uniform where all is right."""
    rng, belief = np.random.default_rng(23), DirichletFMeasure(num_samples=256)
    ranks = []
    for _ in range(150):
        rates = np.maximum(rng.dirichlet(np.full(4, 0.25)), 1e-12)
        documents = rng.multinomial(20, rng.dirichlet(rates, 3))
        (known,) = belief.posterior(counted({"a": documents.tolist()})).distributions
        log_odds = np.log(rates[0]) - np.log((rates[1] + rates[2]) / 2)
        ranks.append(np.interp(log_odds, known.log_odds, known.cdf))
    assert kstest(ranks, "uniform").pvalue > 0.01
