"""Where weights start: N(0, g / H) with H the number of inputs to a unit, so that signals keep their size.

g = 1 after odd or bounded functions (LeCun et al. 1998), g = 2 after ReLU and kin, which halve the power (He et al.
2015). The starting point of an optimiser or a chain, not a prior.
"""

import jax
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey


def scaled_normal(
    key: PRNGKey, shape: tuple[int, ...], num_inputs: int, dtype: np.dtype, *, gain: float = 1.0
) -> Float[Array, "..."]:
    """An array of independent N(0, g / H) entries, g = `gain` and H = `num_inputs`."""
    return jax.random.normal(key, shape, dtype) / np.sqrt(num_inputs / gain).astype(dtype)
