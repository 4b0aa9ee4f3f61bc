"""A flow as the prior of a new task: what networks of earlier tasks are like is where inference begins.

    p(θ | D') ∝ L(D' | θ) q(θ)         q the density of a flow

q must be one over all weights, which flows from prior to posterior have, and those over populations in the Euclidean
geometry. A normalised flow has a density on spheres, where rescaled networks are one point: it says nothing about
scales, and a posterior over all weights that took it for its prior could not be normalised.

Each evaluation solves the flow backwards with its divergence, and a gradient does so twice, so chains take far longer
than with a prior in closed form. It knows only its own width: `transfer` comes first.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core.checks import require, require_type
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.flow.divergence import Hutchinson
from weightscape.flow.flow import Flow
from weightscape.flow.forgetful_steps import ForgetfulSteps
from weightscape.flow.geometries import Euclidean
from weightscape.flow.population_flow import PopulationFlow
from weightscape.priors import Fitted
from weightscape.priors.prior import RealPrior


def prior_of(flow: Any) -> Fitted:
    """A prior whose density and draws are those of a flow over the weights of the same network.

    - `flow`: a Flow, or a PopulationFlow whose geometry is Euclidean.
    """
    asked, remedy = "`flow` of prior_of must be a Flow or a PopulationFlow", "Pass what a training has returned."
    require_type(isinstance(flow, Flow | PopulationFlow), asked, type(flow).__name__, remedy)
    if isinstance(flow, PopulationFlow):
        asked, came = "A flow that is a prior must have a density over all weights", type(flow.method.geometry).__name__
        remedy = "Train it with `geometry=Euclidean()`: densities on spheres say nothing about scales."
        require(isinstance(flow.method.geometry, Euclidean), asked, f"one of the {came} geometry", remedy)
    asked, remedy = "A flow that is a prior must be solved without noise", "Pass `flow.with_solver(FixedSteps())`."
    require(not isinstance(flow.solver, ForgetfulSteps), asked, "one with ForgetfulSteps", remedy)
    asked, remedy = "A flow that is a prior must have an exact divergence", "Pass `flow.with_divergence(Exact())`."
    require(not isinstance(flow.divergence, Hutchinson), asked, "Hutchinson", remedy)
    density = _Weights(dataclasses.replace(flow.bare(), posterior=None))
    asked, came = "A flow that is a prior must be one over weights alone", type(flow.header.model.prior).__name__
    alone = isinstance(flow.header.model.prior, RealPrior) and not jax.tree.leaves(density.nothing._replace(network=()))
    remedy = "Train it where the prior has no scales of its own and the likelihood nothing to infer."
    require(alone, asked, f"one with more, under {came}", remedy)
    return Fitted(density.log_density, density.sample)


class _Weights(eqx.Module):
    """A flow seen as a density over weights."""

    flow: Any

    @property
    def nothing(self) -> Any:
        """A position of zeros."""
        layout = self.flow.source.layout
        return layout.unflatten(jnp.zeros((layout.size,), layout.dtype))

    def log_density(self, params: Tree) -> Scalar:
        self._require_shapes(params)
        return self.flow.log_density(self.nothing._replace(network=params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        self._require_shapes(params_like)
        return self.flow.sample_position(key).network

    def _require_shapes(self, params: Tree) -> None:
        wanted, came = ([jnp.shape(leaf) for leaf in jax.tree.leaves(each)] for each in (self.nothing.network, params))
        asked = f"Weights under the prior of a flow must have its shapes {wanted}"
        require(wanted == came, asked, came, "Move the flow to this network first: `flow.transfer`.")
