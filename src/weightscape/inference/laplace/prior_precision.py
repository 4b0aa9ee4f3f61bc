"""The prior's precision at a mode: P = −∇² (γ log p(θ) + log |det J|).

For priors that treat each weight alone P is a diagonal, found from one product with a vector of ones; a product with
random numbers shows whether that is so.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.inference.laplace.information import Precision
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.products import symmetric_matrix
from weightscape.inference.laplace.structures import FullStructure, Structure


def prior_precision(around: Neighbourhood, structure: Structure) -> Precision:
    """P over the weights that move: its diagonal, or all of it for the full structure under a prior that couples."""
    entries = np.asarray(diagonal_precision(around))
    probe = np.random.default_rng(0).normal(size=around.num_free).astype(entries.dtype)
    error = np.abs(np.asarray(_product(around, jnp.asarray(probe))) - entries * probe)
    is_diagonal = bool(np.all(error <= 1e-4 * np.max(np.abs(entries), initial=1e-12)))
    if isinstance(structure, FullStructure) and not is_diagonal:
        return _matrix(around)
    asked = f"The prior under a {type(structure).__name__} must treat each weight alone"
    remedy = 'Use structure "full", or a prior of independent weights.'
    require(is_diagonal, asked, "one that couples weights", remedy)
    finite = bool(np.all(np.isfinite(entries)))
    remedy = "Move the point, or use a prior that is smooth there."
    require(finite, "The prior's curvature must be finite at the mode", "infinite values", remedy)
    return jnp.asarray(entries)


@eqx.filter_jit
def diagonal_precision(around: Neighbourhood) -> Float[Array, " free"]:
    """P's diagonal for a prior that treats each weight alone: P times ones. Differentiable in the prior."""
    return _product(around, jnp.ones((around.num_free,), around.location.dtype))


@eqx.filter_jit
def _product(around: Neighbourhood, vector: Float[Array, " free"]) -> Float[Array, " free"]:
    return -jax.jvp(jax.grad(around.log_prior), (around.centre(),), (vector,))[1]


@eqx.filter_jit
def _matrix(around: Neighbourhood) -> Float[Array, "free free"]:
    return symmetric_matrix(lambda vector: _product(around, vector), around)
