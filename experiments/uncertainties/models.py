"""y = 3x and noise: what a line and a network know of it after n measurements.

A line through zero with slope w, prior N(0, s²) and noise N(0, σ²) that is known has the posterior

    w ~ N(m, v),     1/v = 1/s² + Σ x_i²/σ²,     m = v Σ x_i y_i/σ²

so at x the doubt about the mean is |x| √v, which falls as 1/√n, and a new y has the variance x² v + σ².
The network does not know that the law is a line. It is told how large the noise is, or finds that out too.
"""

from typing import NamedTuple

import jax
import numpy as np

import weightscape as ws
from weightscape.data.scaling import Scaling

SLOPE, NOISE, PRIOR, AT = 3.0, 2.0, 10.0, 7.0
LECTURE = (1.1, 2.3, 3.3, 3.9, 9.6, 10.1, 11.3, 4.7, 8.2, 5.9)


class Spread(NamedTuple):
    """At one input: the mean, the doubt about it, and the noise around it, as standard deviations."""

    mean: float
    epistemic: float
    aleatoric: float


def measurements(num_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of shape (point, 1) and targets: those of the lecture first, then others between 1 and 12."""
    generator = np.random.default_rng(2024)
    x = np.concatenate([LECTURE, generator.uniform(1, 12, 10_000)])
    y = SLOPE * x + NOISE * generator.normal(size=len(x))
    return x[:num_points, None], y[:num_points]


def line(num_points: int) -> Spread:
    """In closed form."""
    x, y = measurements(num_points)
    variance = 1 / (1 / PRIOR**2 + np.sum(x**2) / NOISE**2)
    slope = variance * np.sum(x[:, 0] * y) / NOISE**2
    return Spread(AT * slope, AT * variance**0.5, NOISE)


def network(num_points: int, *, noise_is_known: bool) -> ws.Draws:
    """By HMC: 8 tanh units, with the noise that the line knows or one that is inferred."""
    x, y = measurements(num_points)
    scaling = Scaling.fit(x, y, "regression")
    width = NOISE / scaling.y_scale if noise_is_known else ws.priors.Gamma(0.5, 1.0)
    network = ws.networks.MLP(hidden=(8,), activation="tanh")
    posterior = ws.Model(network, ws.likelihoods.Gaussian(width), ws.priors.Normal(1.0)).condition(
        ws.Batch(x, y, scaling)
    )
    method = ws.HMC(num_chains=8, num_draws=500, num_warmup=500, num_leapfrog=128, target_acceptance=0.9)
    draws = method.run(jax.random.key(0), posterior)
    assert isinstance(draws, ws.Draws)
    return draws


def spread(draws: ws.Draws) -> Spread:
    """What the draws say at x = 7."""
    found = ws.predict(draws, [[AT]])
    return Spread(*(float(np.squeeze(values)) for values in (found.mean, found.epistemic_std, found.aleatoric_std)))
