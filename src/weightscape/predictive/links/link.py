"""A link turns the Gaussian law of the outputs into a distribution of targets.

p(y | x) ≈ ∫ p(y | f) N(f; m, S) df
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import InputError
from weightscape.likelihoods import Bernoulli, Categorical, Likelihood, Own
from weightscape.predictive.linear_network import LinearNetwork
from weightscape.predictive.marginal import Density
from weightscape.predictive.mixture import Mixture
from weightscape.predictive.outputs import Held, pad_rows
from weightscape.predictive.plan import make_held_plan


class Link(eqx.Module):
    """A way to integrate the function out."""

    @abc.abstractmethod
    def mixture(self, network: LinearNetwork, x: Float[np.ndarray, "point ..."], memory: int) -> Mixture:
        """The distribution of targets at inputs `x` as the network sees them, within `memory` bytes."""


def one_component(density: Density, outputs: Float[Array, "point output"], own: Own) -> Mixture:
    """The mixture whose only component is `density` at `outputs`."""
    plan, rows = make_held_plan(len(outputs)), np.asarray(outputs)
    blocks = tuple(jnp.asarray(pad_rows(rows[points], plan.chunk_size)[None]) for points in plan.chunks)
    each = {name: value[None] for name, value in own.items()}
    return Mixture(density, Held(plan, blocks), each, jnp.ones(1, rows.dtype))


def class_likelihood(likelihood: Likelihood, link: str) -> Categorical | Bernoulli:
    """`likelihood` where its outputs are logits; raises otherwise."""
    if not isinstance(likelihood, Categorical | Bernoulli):
        raise InputError(
            f"{link} must be used with the likelihood Categorical or Bernoulli, got {type(likelihood).__name__}. "
            "Use `FunctionSamples(key)`."
        )
    return likelihood
