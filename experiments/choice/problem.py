"""A curve of sixteen points, and networks of one hidden layer that are compared on it."""

from typing import NamedTuple

import numpy as np

import weightscape as ws

NOISE = 0.25
NUM_ROWS = 16


class Candidate(NamedTuple):
    """A tanh network of `width` units whose weights have a N(0, `prior_scale`²) prior."""

    width: int
    prior_scale: float

    def __str__(self) -> str:
        return f"{self.width} unit{'s' if self.width > 1 else ''}, prior {self.prior_scale:g}"

    @property
    def num_weights(self) -> int:
        return 3 * self.width + 1


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Inputs in [−2, 2], and a step up with a bump, with noise."""
    generator = np.random.default_rng(3)
    x = np.sort(generator.uniform(-2, 2, NUM_ROWS))
    return x, np.tanh(2 * x) + 0.8 * np.exp(-4 * (x - 0.8) ** 2) + NOISE * generator.standard_normal(NUM_ROWS)


def posterior(candidate: Candidate) -> ws.Posterior:
    """The candidate, given the rows; nothing is scaled."""
    x, y = rows()
    network = ws.networks.MLP(hidden=(candidate.width,), activation="tanh")
    model = ws.Model(network, ws.likelihoods.Gaussian(NOISE), ws.priors.Normal(candidate.prior_scale))
    return model.condition(ws.Batch(x[:, None], y))
