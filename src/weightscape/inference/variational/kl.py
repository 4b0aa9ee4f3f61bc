"""The divergence from the prior, KL(q ‖ p): what the approximation pays for what it has learned.

    KL(q ‖ p) = E_q[log q − log p]

It is a sum over weights, to be set against a sum over data points, both in nats. Two estimates of it are alternatives:

- by Monte Carlo, log q(z) − log p(z) at the draw z that the likelihood sees. Its gradient leaves out the dependence of
  log q on φ at fixed z, whose expectation is zero ("sticking the landing"): what remains flows through z alone, so
  where q is the exact posterior log p(D, z) − log q(z) is constant in z and the gradient has no noise at all.
- in closed form, where the prior is normal and independent for each weight: log p is quadratic, so with q of mean μ and
  variances v, E_q[log p] = log p(μ) − ½ Σ_i v_i / σ_i². No noise of its own, but none of the likelihood's cancels.

Positions carry the Jacobian of their map to parameters, and a tempered target has γ log p in place of log p.

Reference: Roeder, Wu & Duvenaud (2017), Sticking the landing, section 3.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core import Scalar, Tree, registered
from weightscape.core.checks import require
from weightscape.core.layout import Layout
from weightscape.inference.variational.guide import Guide, MomentGuide, Vector, frozen
from weightscape.posterior import Posterior
from weightscape.priors import ByPath, FanInNormal, Normal, Prior


class Drawn(NamedTuple):
    """A draw z from a guide, and log q(z) as the draw gives it."""

    vector: Vector
    log_density: Scalar


class Divergence(eqx.Module):
    """An estimate of KL(q ‖ p)."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What it is called in the facts of a run."""

    @abc.abstractmethod
    def check(self, posterior: Posterior, guide: Guide) -> None:
        """Raise where it cannot be used."""

    @abc.abstractmethod
    def estimate(self, posterior: Posterior, layout: Layout, guide: Guide, drawn: Drawn) -> Scalar:
        """An unbiased estimate at the draw."""


@registered("variational.MonteCarlo")
class MonteCarlo(Divergence):
    """log q(z) − log p(z), for every prior and every guide.

    - `path_gradient`: whether the gradient flows through z alone; else it also has the score term.
    """

    path_gradient: bool = eqx.field(static=True, default=True)

    @property
    def name(self) -> str:
        return "Monte Carlo"

    def check(self, posterior: Posterior, guide: Guide) -> None:
        pass

    def estimate(self, posterior: Posterior, layout: Layout, guide: Guide, drawn: Drawn) -> Scalar:
        log_q = frozen(guide).log_density(drawn.vector) if self.path_gradient else drawn.log_density
        placed = posterior.model.place(layout.unflatten(drawn.vector))
        return log_q - posterior.prior_power * placed.log_prior - placed.log_jacobian


@registered("variational.ClosedForm")
class ClosedForm(Divergence):
    """−H(q) − E_q[log p(weights)], where both are known; a likelihood's own parameters enter by their draw."""

    @property
    def name(self) -> str:
        return "closed form"

    def check(self, posterior: Posterior, guide: Guide) -> None:
        asked = "`kl=ClosedForm()` must have a prior of Normal or FanInNormal"
        remedy = "Use `kl=MonteCarlo()`."
        prior = posterior.model.prior
        require(has_independent_normals(prior), asked, type(prior).__name__, remedy)
        asked = "`kl=ClosedForm()` must have a guide of known moments"
        require(isinstance(guide, MomentGuide), asked, type(guide).__name__, remedy)

    def estimate(self, posterior: Posterior, layout: Layout, guide: Guide, drawn: Drawn) -> Scalar:
        assert isinstance(guide, MomentGuide)
        mean, variance = (layout.unflatten(vector).network for vector in (guide.location, guide.variance()))
        of_weights = _expected_log_density(posterior.model.prior, mean, variance)
        placed = posterior.model.place(layout.unflatten(drawn.vector))
        of_others = placed.log_prior - posterior.model.prior.log_density(placed.parameters.network)
        return -guide.entropy() - posterior.prior_power * (of_weights + of_others) - placed.log_jacobian


def has_independent_normals(prior: Prior) -> bool:
    """Whether every weight has a normal prior of its own."""
    if isinstance(prior, ByPath):
        return all(has_independent_normals(part) for _, part in prior.parts)
    return isinstance(prior, (Normal, FanInNormal))


def _expected_log_density(prior: Prior, mean: Tree, variance: Tree) -> Scalar:
    """log p(μ) − ½ Σ_i v_i / σ_i²; of a zero-mean normal −∇ log p(1) is the vector of 1/σ_i², to rounding."""
    slope = jax.grad(prior.log_density)(jax.tree.map(jnp.ones_like, mean))
    products = jax.tree.map(lambda s, v: jnp.sum(s * v), slope, variance)
    return prior.log_density(mean) + 0.5 * sum(jax.tree.leaves(products), start=jnp.zeros(()))
