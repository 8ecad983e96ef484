"""Draws the further numbers of candidates from the two-way model of those that exist."""

from dataclasses import dataclass

import numpy as np

from fiesta_allennlp.choosing.probability.leads import TwoWayModel
from fiesta_allennlp.choosing.probability.pooled_noise import PRIOR_DF


@dataclass(frozen=True, eq=False)
class Continuation:
    """Further numbers of each candidate, in several draws of what is true.

    Attributes:
        means: true means. Shape: `(size, num_candidates)`.
        numbers: shape `(size, num_candidates, length)`.
        units: the unit of each number, the same in every draw: from 0 those that exist, then new ones. Shape:
            `(num_candidates, length)`.
    """

    means: np.ndarray
    numbers: np.ndarray
    units: np.ndarray


def draw_continuation(
    model: TwoWayModel, size: int, length: int, rng: np.random.Generator, *, shares_units: bool
) -> Continuation:
    """Draw true means, noise and effects of units from their posterior by the model, and numbers from these.

    The noise variance of a candidate is drawn from its residuals and d0 degrees of freedom of the pooled noise.

    Args:
        model: two-way model of one selection.
        shares_units: whether candidates share units. A candidate then takes the units that others have and it lacks
            first. If not, each number is of a unit of its own.
    """
    noise_sds = np.sqrt(_draw_noise_variances(model, size, rng))
    spread = rng.normal(size=noise_sds.shape) @ np.linalg.cholesky(model.covariance[0]).T
    means = model.means[0] + noise_sds * spread
    units = next_units(model.is_there[0] > 0, length, shares_units=shares_units)
    effects = _draw_unit_effects(model, size, int(units.max(initial=-1)) + 1, rng)
    noise = rng.normal(size=(size, *units.shape)) * noise_sds[:, :, None]
    return Continuation(means, means[:, :, None] + effects[:, units] + noise, units)


def _draw_noise_variances(model: TwoWayModel, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the noise variance of each candidate. Shape: `(size, num_candidates)`."""
    noise = model.residuals[0] - model.is_there[0] * _unit_effects(model)
    squares = (noise**2 / (1 - model.unit_weights[0])).sum(axis=1)
    df = PRIOR_DF + model.num_units[0] - 1
    return np.asarray((PRIOR_DF * model.noise.variance[0] + squares) / rng.chisquare(df, size=(size, len(df))))


def _draw_unit_effects(model: TwoWayModel, size: int, num_units: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the effects of the first units, of which the model knows some. Shape: `(size, num_units)`."""
    variance, share = model.noise.variance[0], model.noise.unit_share[0]
    location = np.zeros(max(num_units, model.is_there.shape[2]))
    scale = np.full(len(location), np.sqrt(variance * share / (1 - share)))
    num_known = model.is_there.shape[2]
    location[:num_known], scale[:num_known] = _unit_effects(model), np.sqrt(variance * model.unit_weights[0, 0])
    return np.asarray(location + scale * rng.normal(size=(size, len(location))))


def _unit_effects(model: TwoWayModel) -> np.ndarray:
    """The expected effects of units. Shape: `(num_units,)`."""
    return np.asarray(model.unit_weights[0, 0] * model.residuals[0].sum(axis=0))


def next_units(has_number: np.ndarray, length: int, *, shares_units: bool) -> np.ndarray:
    """Return the units of the next numbers of each candidate. Shape: `(num_candidates, length)`.

    Args:
        has_number: whether a candidate has a number of a unit. Shape: `(num_candidates, num_units)`.
    """
    num_candidates, num_units = has_number.shape
    if not shares_units:
        return num_units + np.arange(num_candidates)[:, None] + num_candidates * np.arange(length)
    new = num_units + np.arange(length)
    return np.stack([np.concatenate([np.flatnonzero(~row), new])[:length] for row in has_number])
