"""Guidance: a trained flow led towards networks that another task's data make likely, without training.

    v'(t, x) = v(t, x) + s w(t) α G,             w = a (a ḃ − b ȧ) / (a² + b²)
    G = (1 + s r² P H P)⁻¹ P ∇ log L(x̂₁),        r² = a² / (a² + b²)
    α = ⟨g, G⟩ / (⟨g, G⟩ + max(0, ⟨G − g', G⟩))     g, g' = P ∇ log L at x̂₁ and at x̂₁ + s r² G

x̂₁ is where the path leads from x with the velocity v, (a v − ȧ x) / (a ḃ − b ȧ), for the straight path x + (1 − t) v
and on a manifold exp_x((1 − t) v); P projects to the tangent space of x, and is nothing where space is flat. w is that
of `pull`: where v carries a normal prior to itself, v + w E[∇ log L(x₁) | x_t = x] carries it to the posterior. There
x₁ has the variance r² given x_t, and H is the curvature of −log L (`newton`), so that G is the gradient at the mean of
what x leads to once L is known, not at that of what it led to before. α is 1 where L bends as H says; where H is too
small, as for classes that a network is sure of, and wrong, it is the zero by false position of the slope along G of
log L^s less |x₁ − x̂₁|² / 2r². Without H and α, which is cheaper, steps go beyond the top of L wherever s r² H is more
than two.

What it ends in has the density that `log_density` says, q'. That is q L^s, but for a constant, only where q is the
normal that the flow starts from and log L is quadratic; without H, linear. Elsewhere it is a heuristic: one target x̂₁
stands for all that x may lead to, and their spread is taken to be the source's, too large where q is narrow. Draws are
then likely networks of the new task that resemble those of the flow, and no draws of a posterior. Both densities are
known, so they can be weighed, by q L / q'.

Not to be confused with a guided *architecture*, whose field is trained with the gradient of its own task in sight.
Reference: Chung et al. (2023), Diffusion posterior sampling, where gradients go through x̂₁; here they are taken at it,
which costs one gradient of the likelihood and none of the field. Song, Vahdat, Mardani & Kautz (2023),
Pseudoinverse-guided diffusion models, for H, there of linear models with normal noise.
"""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from weightscape.core.checks import require, require_count, require_finite, require_type
from weightscape.core.facts import Facts
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.draws import Header
from weightscape.flow.fields import Field, told
from weightscape.flow.flow import Flow
from weightscape.flow.newton import Product, conjugate_gradients, curvature_of
from weightscape.flow.objective import Objective, OfVelocity
from weightscape.flow.population_flow import PopulationFlow
from weightscape.flow.pull import factors
from weightscape.flow.source import Source
from weightscape.flow.target import Target
from weightscape.inference.approximation import Approximation
from weightscape.inference.evidence import LogEvidence
from weightscape.posterior import Position, Posterior


class Guided(Approximation):
    """A flow led to another task; made by `guided`. Its draws are networks of that task, with its log p(D, θ).

    - `flow`: with guided velocities.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    flow: Any

    @property
    def is_proper(self) -> bool:
        return self.flow.is_proper

    def sample_position(self, key: PRNGKey) -> Position:
        return self.flow.sample_position(key)

    def sample_with_density(self, key: PRNGKey) -> tuple[Position, Scalar]:
        return self.flow.sample_with_density(key)

    def log_density(self, position: Position, key: PRNGKey | None = None) -> Scalar:
        """log q'; `key` is for the probes of a divergence that has some."""
        return self.flow.log_density(position, key)


class GuidanceField(Field):
    """v'. `model` and `objective` say v, `source` which network a vector is, `posterior` has L; s is `strength`.

    - `num_products`: how many products with H stand for the inverse; 0 for G = ∇ log L and α = 1.
    """

    model: Any
    objective: Objective
    source: Source
    posterior: Posterior
    strength: Scalar = eqx.field(converter=number)
    num_products: int = eqx.field(static=True, default=0)

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        path, time = self.objective.path, jnp.asarray(time, z.dtype)
        velocity = self.objective.velocity(told(self.model, context))(time, z)
        at, ahead = path.coefficients(time), path.leads_to(time, z, velocity)
        pull = self._pull(ahead, at.a**2 / (at.a**2 + at.b**2), partial(path.tangent, z))
        return velocity + (self.strength * factors(path, time).across * pull).astype(z.dtype)

    def _pull(self, ahead: Float[Array, " weight"], variance: Scalar, tangent: Product) -> Float[Array, " weight"]:
        """G, where x₁ has a variance around x̂₁; `tangent` is P."""
        slope = lambda z: tangent(jax.grad(self._log_likelihood)(z))
        gradient, share = slope(ahead), self.strength * variance
        if not self.num_products:
            return gradient
        curvature = curvature_of(Target(self.posterior, self.source), ahead)
        bends = lambda v: v + share * self.posterior.num_points * tangent(curvature(tangent(v)))
        solved = conjugate_gradients(bends, gradient, self.num_products)
        return _share_that_rises(gradient, solved, slope(ahead + share * solved)) * solved

    def _log_likelihood(self, z: Float[Array, " weight"]) -> Scalar:
        return self.posterior.log_likelihood(self.source.position(z))


def _share_that_rises(
    gradient: Float[Array, " weight"], solved: Float[Array, " weight"], beyond: Float[Array, " weight"]
) -> Scalar:
    """α, from g, G and g'; none where log L is not finite any more."""
    rise, fall = jnp.sum(gradient * solved), jnp.sum((solved - beyond) * solved)
    share = rise / jnp.maximum(rise + jnp.maximum(fall, 0), jnp.finfo(rise.dtype).tiny)
    return jnp.where(jnp.isfinite(fall), share, 0)


def guided(flow: Any, posterior: Posterior, strength: Scalar | float = 1.0, *, num_products: int = 8) -> Guided:
    """The flow, led by the likelihood of a posterior.

    - `flow`: a Flow or a PopulationFlow.
    - `posterior`: of another task, for networks of the same shapes; its data are L, and its prior has no part.
    - `strength`: s; at 0 it is the flow itself. A few of many rows count for all of them where s is how many rows each
      stands for. A number, so that another one compiles nothing.
    - `num_products`: with H; 0 for G = ∇ log L, which needs a small s.
    """
    asked, remedy = "`flow` of guided must be a Flow or a PopulationFlow", "Pass what a training has returned."
    require_type(isinstance(flow, Flow | PopulationFlow), asked, type(flow).__name__, remedy)
    wanted, came = flow.source.layout.shapes, Header.of(posterior).layout().shapes
    asked, remedy = f"`posterior` of guided must have the flow's shapes {wanted}", "Use `transfer` first."
    require(wanted == came, asked, came, remedy)
    if not isinstance(strength, Tracer):
        require_finite("`strength` of guided", strength)
    require_count("`num_products` of guided", num_products, least=0)
    field = GuidanceField(flow.model, flow.objective, flow.source, posterior, strength, num_products)
    objective = dataclasses.replace(flow.objective, prediction=OfVelocity())
    led = dataclasses.replace(flow.bare(), model=field, objective=objective, posterior=None)
    if isinstance(led, PopulationFlow):  # networks of another task may have larger weights
        led = dataclasses.replace(led, reach=jnp.full_like(led.reach, jnp.inf))
    facts = flow.facts.plus(guided_by=posterior.num_points)
    return Guided(Header.of(posterior), posterior, None, facts, led)
