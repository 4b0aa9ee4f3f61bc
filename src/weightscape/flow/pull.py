"""The pull of the data: what a flow has to learn where its source is the prior, and how little noise that can have.

    x₀ ~ N(0, 1),   x₁ ~ p(x | D) ∝ N(x; 0, 1) L(x),   x_t = a x₀ + b x₁      independent of each other,   σ² = a² + b²

    G(t, x) = E[∇ log L(x₁) | x_t = x]                                         the pull
    v(t, x) = ( (a ȧ + b ḃ) x + a (a ḃ − b ȧ) G ) / σ²                         the velocity field, on every such path

Directions that the data do not inform have no pull, and G is the gradient of the likelihood itself at t = 1. Nothing
in the formula is singular. Two unbiased values of G come with each pair: g = ∇ log L(x₁), and what x₁ alone says,
(σ² x₁ − b x_t) / a². So does every mixture of them whose share depends on x_t and t only, and

    y = ( g + κ (x₁ − b x_t / σ²) ) / (1 + a² κ / σ²)

has no noise at all where L is a normal of precision κ. Regression on x₁ is the case κ → ∞, where a weight that the data
say nothing about has as much noise as any other. κ is learned with the model, by the same loss: its mean is the same
for every κ, so the least loss is the least noise.

Errors of G cost nats. The best stochastic flow with this drift has KL(p ‖ q) ≤ ∫ a b (a ḃ − b ȧ) / σ⁴ E‖G − Ĝ‖² dt,
which is how times are weighted.

Reference: De Bortoli et al. (2024), Target score matching, for g; Song et al. (2021), Maximum likelihood training of
score-based diffusion models, for the weights.
"""

from typing import NamedTuple

from jaxtyping import Array, Float

from weightscape.core.types import Scalar
from weightscape.flow.paths import Path


class Factors(NamedTuple):
    """v = along · x + across · G, and the cost in nats of an error of G."""

    along: Scalar
    across: Scalar
    cost: Scalar


def factors(path: Path, time: Scalar) -> Factors:
    """What the path makes of x and G at a time."""
    at = path.coefficients(time)
    variance = at.a**2 + at.b**2
    turn = at.a * at.b_rate - at.b * at.a_rate
    along = (at.a * at.a_rate + at.b * at.b_rate) / variance
    return Factors(along, at.a * turn / variance, at.a * at.b * turn / variance**2)


def velocity_of_pull(
    path: Path, time: Scalar, x: Float[Array, " weight"], pull: Float[Array, " weight"]
) -> Float[Array, " weight"]:
    """v, from G at x."""
    along, across, _ = factors(path, time)
    return along * x + across * pull


def pull_of_pair(
    path: Path,
    time: Scalar,
    x: Float[Array, " weight"],
    target: Float[Array, " weight"],
    gradient: Float[Array, " weight"],
    curvature: Float[Array, " weight"],
) -> Float[Array, " weight"]:
    """y, from a pair whose point is x: `gradient` is g at the target and `curvature` is κ."""
    at = path.coefficients(time)
    variance = at.a**2 + at.b**2
    return (gradient + curvature * (target - at.b / variance * x)) / (1 + at.a**2 / variance * curvature)
