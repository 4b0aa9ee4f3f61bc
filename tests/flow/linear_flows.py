"""Linear regression whose posterior, flows and divergences are known in closed form."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tests.flow import gaussians
from tests.known import linear

import weightscape as ws
from weightscape.core.facts import Facts
from weightscape.draws import Header
from weightscape.flow import Adaptive, Exact, OfVelocity, Trigonometric, WhitenedSource
from weightscape.flow.objective import Objective

SCALE = 0.7
PATH = Trigonometric()


class NormalField(eqx.Module):
    """The velocity from N(0, 1) to N(m, Q s Qᵀ), as `gaussians.velocity` has it, without a factorisation: those are not
    safe on several devices at once.
    """

    mean: Array
    axes: Array
    variances: Array

    @staticmethod
    def of(mean, covariance):
        variances, axes = np.linalg.eigh(covariance)
        return NormalField(jnp.asarray(mean), jnp.asarray(axes), jnp.asarray(variances))

    def __call__(self, time, x):
        at = PATH.coefficients(time)
        growth = (at.a_rate * at.a + at.b_rate * at.b * self.variances) / (at.a**2 + at.b**2 * self.variances)
        return at.b_rate * self.mean + self.axes @ (growth * (self.axes.T @ (x - at.b * self.mean)))


def problem():
    return linear(noise=1.5, prior_scale=SCALE)


def flow(mean, covariance, **changes):
    """The flow from the prior to a normal over the weights of the linear model."""
    posterior = problem().posterior
    source = WhitenedSource.of(posterior)
    field = NormalField.of(np.asarray(mean) / SCALE, np.asarray(covariance) / SCALE**2)
    # Solved to 1e-10 in each of some dozen steps.
    solver = Adaptive(1e-10, 1e-10, diffrax.Dopri8())
    made = ws.Flow(
        Header.of(posterior), posterior, None, Facts(), field, Objective(PATH, OfVelocity()), source, solver, Exact(),
        ws.FlowMatching(),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def weights_of(draws):
    """Weights with the shape (chain, draw, 3)."""
    return np.concatenate([np.asarray(leaf).reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(draws.params)], -1)


def known_draws(shape, seed=0):
    """Independent draws of the posterior itself."""
    posterior = problem().posterior
    rows = np.random.default_rng(seed).multivariate_normal(problem().mean, problem().covariance, size=shape)
    like = posterior.constrain(posterior.start_position(jax.random.key(0)))
    params = jax.tree.map(lambda leaf: rows.reshape(*shape, *leaf.shape), like)
    log_density = gaussians.log_normal(rows, problem().mean, problem().covariance) + problem().log_evidence
    return ws.Draws(params, log_density, *Header.of(posterior))


def two_way_divergence(mean, covariance, other_mean, other_covariance):
    """KL(p ‖ q) + KL(q ‖ p) of two normals; the determinants cancel."""
    inverse, other = np.linalg.inv(covariance), np.linalg.inv(other_covariance)
    between = mean - other_mean
    traces = np.trace(inverse @ other_covariance) + np.trace(other @ covariance) - 2 * len(mean)
    return 0.5 * (traces + between @ (inverse + other) @ between)
