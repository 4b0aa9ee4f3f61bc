"""Local energy: how much the loss rises when each weight is disturbed in proportion to its size.

    E_z[loss(w (1 + σ z))] − loss(w),      z ~ N(0, I)

Flat minima have a small one. It does not change with the symmetries of the network, rescalings of units included,
because the noise of each weight scales with the weight. For the quadratic loss ½ wᵀ H w it is ½ σ² Σ_i H_ii w_i².

Reference: Pittorino et al. (2021), Entropic gradient descent algorithms and wide flat minima.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from weightscape.core import tree
from weightscape.core.checks import require_count, require_positive
from weightscape.core.keys import require_key
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree


class LocalEnergy(NamedTuple):
    """An estimate and its standard error."""

    value: Scalar
    standard_error: Scalar


def local_energy(
    key: PRNGKey, loss: Callable[[Tree], Scalar], params: Tree, *, spread: float | Array = 0.1, num_draws: int = 100
) -> LocalEnergy:
    """The mean rise of the loss over disturbed networks, which are evaluated one at a time.

    - `spread`: σ.  `num_draws`: how many disturbances z are drawn.
    """
    require_key(key, "local_energy")
    require_positive("`spread` of local_energy", spread)
    require_count("`num_draws` of local_energy", num_draws, least=2)
    return _local_energy(jax.random.split(key, num_draws), loss, jax.tree.map(jnp.asarray, params), number(spread))


@eqx.filter_jit
def _local_energy(keys: Array, loss: Callable[[Tree], Scalar], params: Tree, spread: Scalar) -> LocalEnergy:
    def rise(key: PRNGKey) -> Scalar:
        noise = tree.normal_like(key, params)
        disturbed = jax.tree.map(lambda w, z: w * (1 + spread.astype(w.dtype) * z), params, noise)
        return loss(disturbed) - undisturbed

    undisturbed = loss(params)
    rises = jax.lax.map(rise, keys)
    return LocalEnergy(jnp.mean(rises), jnp.std(rises, ddof=1) / jnp.sqrt(len(keys)))
