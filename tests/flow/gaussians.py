"""The flow from N(0, 1) to N(m, Σ) under the independent coupling, in closed form.

x_t ~ N(b m, S_t),   S_t = a² 1 + b² Σ
v(t, x) = ḃ m + (ȧ a 1 + ḃ b Σ) S_t⁻¹ (x − b m),      E[x₁ | x_t = x] = m + b Σ S_t⁻¹ (x − b m)
"""

import jax.numpy as jnp
import numpy as np

MEAN = np.array([1.0, -2.0, 0.5])
FACTOR = np.array([[1.5, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.4, 0.3, 0.2]])
COVARIANCE = FACTOR @ FACTOR.T


def velocity(path, mean=MEAN, covariance=COVARIANCE):
    identity = jnp.eye(len(mean))

    def of(time, x):
        at = path.coefficients(time)
        spread = at.a**2 * identity + at.b**2 * jnp.asarray(covariance)
        pull = at.a_rate * at.a * identity + at.b_rate * at.b * jnp.asarray(covariance)
        return at.b_rate * jnp.asarray(mean) + pull @ jnp.linalg.solve(spread, x - at.b * jnp.asarray(mean))

    return of


def target(path, mean=MEAN, covariance=COVARIANCE):
    identity = jnp.eye(len(mean))

    def of(time, x):
        at = path.coefficients(time)
        spread = at.a**2 * identity + at.b**2 * jnp.asarray(covariance)
        centred = jnp.linalg.solve(spread, x - at.b * jnp.asarray(mean))
        return jnp.asarray(mean) + at.b * jnp.asarray(covariance) @ centred

    return of


def log_normal(x, mean=MEAN, covariance=COVARIANCE):
    centred = np.asarray(x) - mean
    quadratic = np.einsum("...i,ij,...j->...", centred, np.linalg.inv(covariance), centred)
    return -0.5 * (quadratic + np.linalg.slogdet(2 * np.pi * covariance)[1])
