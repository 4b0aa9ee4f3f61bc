"""Newton's step from a network towards the nearest one that training may end in.

    δ ≈ (H + Λ)⁻¹ ∇ log p(D, θ(z)),      H = Jᵀ (−∂² log p(y | f)) J,      Λ = −∇² log p(θ(z))

with f the network's outputs (beside the likelihood's own parameters) and J their derivative by z. Nothing of the size
of H is made: conjugate gradients take k products with it, start at zero, and stop where they meet a direction in which
the density does not bend downwards. They commute with every rotation of z, so under permutations and signs δ moves as z
does.

H is a mean over rows, and a mean over a few thousand of them serves as well: each product takes as many as that.
Reference: Martens (2010), Deep learning via Hessian-free optimization.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.types import Scalar, Tree
from weightscape.flow.target import Target
from weightscape.posterior import Posterior

_MOST_ROWS = 2048

Product = Callable[[Float[Array, " weight"]], Float[Array, " weight"]]


def newton_step(
    target: Target, z: Float[Array, " weight"], gradient: Float[Array, " weight"], num_products: int
) -> Float[Array, " weight"]:
    """δ after so many products with the curvature.

    - `gradient`: that of the likelihood at z, for one row on average; the prior's is added here.
    """
    curvature, slope = curvature_of(target, z), lambda z: prior_gradient(target, z)
    bends = lambda v: curvature(v) - jax.jvp(slope, (z,), (v,))[1]
    return conjugate_gradients(bends, gradient + slope(z), num_products)


def prior_gradient(target: Target, z: Float[Array, " weight"]) -> Float[Array, " weight"]:
    """∇ log p(θ(z)), with its power and |det J|, for one row."""
    num_rows = target.posterior.num_points * target.posterior.likelihood_power
    return jax.grad(lambda z: _log_prior(target, z) / num_rows)(z)


def few_rows(posterior: Posterior) -> tuple[Array, Array]:
    """So many rows, evenly spaced, as are enough for a curvature."""
    few = slice(None, None, -(-posterior.num_points // _MOST_ROWS))
    return posterior.x[few], posterior.y[few]


def curvature_of(target: Target, z: Float[Array, " weight"]) -> Product:
    """v ↦ H v, for one row on average."""
    posterior = target.posterior
    x, y = few_rows(posterior)

    def outputs(z: Float[Array, " weight"]) -> Tree:
        parameters = posterior.constrain(target.source.position(z))
        return posterior.model.network.apply(parameters.network, x), parameters.likelihood

    def loss(found: Tree) -> Scalar:
        return -jnp.mean(posterior.model.likelihood.log_density(found[0], y, found[1]))

    found, forth = jax.linearize(outputs, z)
    back, bend = jax.linear_transpose(forth, z), jax.linearize(jax.grad(loss), found)[1]
    return lambda v: back(bend(forth(v)))[0]


def conjugate_gradients(
    product: Product, wanted: Float[Array, " weight"], num_products: int
) -> Float[Array, " weight"]:
    """x with A x ≈ `wanted`, the best among combinations of `wanted`, A `wanted`, …; where vᵀAv ≤ 0, the x so far."""
    begin = _Search(jnp.zeros_like(wanted), wanted, wanted, jnp.sum(wanted**2))
    # What is missing below that is rounding of a sum over all weights, and A may be flat in its direction.
    rounding = wanted.size * jnp.finfo(wanted.dtype).eps ** 2 * begin.square

    def step(at: _Search, _: None) -> tuple[_Search, None]:
        changed = product(at.direction)
        bend = jnp.sum(at.direction * changed)
        goes_on = (bend > 0) & (at.square > rounding)
        length = jnp.where(goes_on, at.square / jnp.where(goes_on, bend, 1), 0)
        residual = at.residual - length * changed
        square = jnp.sum(residual**2)
        share = square / jnp.where(goes_on, at.square, 1)
        # Where the search has ended it meets the same direction again, and stays.
        direction = jnp.where(goes_on, residual + share * at.direction, at.direction)
        return _Search(at.x + length * at.direction, residual, direction, square), None

    return jax.lax.scan(step, begin, None, length=num_products)[0].x


class _Search(NamedTuple):
    """x so far, what is missing of `wanted`, where to go next, and the square of what is missing."""

    x: Float[Array, " weight"]
    residual: Float[Array, " weight"]
    direction: Float[Array, " weight"]
    square: Scalar


def _log_prior(target: Target, z: Float[Array, " weight"]) -> Scalar:
    """log p(θ)^γ |det J| at z."""
    placed = target.posterior.model.place(target.source.position(z))
    return target.posterior.prior_power * placed.log_prior + placed.log_jacobian
