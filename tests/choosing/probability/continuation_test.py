import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiesta_allennlp.choosing.probability.continuation import draw_continuation, next_units
from fiesta_allennlp.choosing.probability.leads import TwoWayModel
from fiesta_allennlp.choosing.probability.pooled_noise import Table, pool_noise


def model_of(numbers: np.ndarray) -> TwoWayModel:
    table = Table(numbers[None])
    return TwoWayModel(table, pool_noise(table))


def test_a_candidate_takes_the_units_of_the_others_first() -> None:
    has_number = np.array([[True, True, True], [True, False, True]])
    assert_array_equal(next_units(has_number, 3, shares_units=True), [[3, 4, 5], [1, 3, 4]])
    own = next_units(has_number, 3, shares_units=False)
    assert len(np.unique(own)) == 6
    assert own.min() == 3


@pytest.mark.parametrize("unit_sd", [0.0, 3.0])
def test_long_pilots_are_continued_as_they_began(unit_sd: float) -> None:
    """Means, noise by candidate and effects of units are those of the pilot."""
    rng = np.random.default_rng(1)
    noise_sds, means = np.array([1.0, 1.0, 0.5]), np.array([5.0, 4.0, 3.0])
    effects = unit_sd * rng.normal(size=400)
    pilot = means[:, None] + effects + noise_sds[:, None] * rng.normal(size=(3, 400))
    pilot[0, 300:] = np.nan
    drawn = draw_continuation(model_of(pilot), 200, 300, rng, shares_units=True)
    assert_allclose(drawn.means.mean(axis=0) - drawn.means.mean(), means - means.mean(), atol=0.15)
    known = drawn.numbers[:, 0, :100] - drawn.means[:, [0]]
    assert np.corrcoef(known.mean(axis=0), effects[300:])[0, 1] > 0.9 if unit_sd else True
    differences = drawn.numbers[:, 1] - drawn.numbers[:, 2]
    assert differences.std(axis=1).mean() == pytest.approx(1.25**0.5, rel=0.05)
    assert (drawn.numbers[:, 1].std(axis=1) ** 2).mean() == pytest.approx(pilot[1].var(), rel=0.15)
