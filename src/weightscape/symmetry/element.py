"""An element of a symmetry group: a permutation, signs and scales for the units of each group.

(g w)_i = σ_i s_i^e w_{π(i)}        for the weights w_j of unit j
"""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

Host = Array | np.ndarray


class Element(eqx.Module):
    """What is done to the units of each group; every field has one entry for each group.

    - `permutations`: π; unit π(i) goes to place i.
    - `signs`: σ ∈ {−1, 1}, one row for each way to change signs.
    - `log_scales`: log s, one row for each way to rescale.

    Elements are pytrees of arrays: many of them are one `Element` with leading axes.
    """

    permutations: tuple[Int[Host, "... _"], ...]
    signs: tuple[Int[Host, "... _ _"], ...]
    log_scales: tuple[Float[Host, "... _ _"], ...]
