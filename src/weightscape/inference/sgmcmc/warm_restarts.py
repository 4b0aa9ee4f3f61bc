"""Warm restarts: cosine cycles whose length grows at first.

    C_j = C f^min(j, n),      h_i = h (1 + cos(π k/C_j)) / 2

with k the place of transition i in its cycle j. Short cycles move fast while the chain is still far from where the
posterior is. They belong to warm-up: the runner makes draws in a fixed pattern, and draws from cycles of different
lengths would be draws at different distances from the target.

Reference: Loshchilov & Hutter (2017), SGDR: stochastic gradient descent with warm restarts, section 3. There cycles
grow for ever.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import Scalar, registered
from weightscape.core.checks import require, require_count, require_positive
from weightscape.core.numbers import number
from weightscape.inference.sgmcmc.schedules import StepSize, check_cycles, check_gaps, cosine, gaps_at_end, is_past


@registered("inference.WarmRestarts")
class WarmRestarts(StepSize):
    """Cycles of C, C f, …, C f^n transitions, all later ones as long as the last; draws as `Cyclical` makes them.

    Warm-up must contain the cycles that grow, and whole cycles after them.

    - `step_size`: h, the first of a cycle.  `first_length`: C.  `factor`: f, a whole number.  `num_growing`: n.
    - `draws_per_cycle`: how many draws are made at the end of each cycle, a distance of the method's `thin` apart.
    - `explore`: the part of each cycle that climbs without noise.
    """

    step_size: Float[Array, ""] = eqx.field(converter=number)
    first_length: Int[Array, ""] = eqx.field(converter=lambda value: jnp.asarray(np.asarray(value)))
    factor: Int[Array, ""] = eqx.field(default=2, converter=lambda value: jnp.asarray(np.asarray(value)))
    num_growing: int = eqx.field(static=True, default=3)
    draws_per_cycle: int = eqx.field(static=True, default=1)
    explore: Float[Array, ""] = eqx.field(default=0.0, converter=number)

    def __check_init__(self):
        require_positive("`step_size` of WarmRestarts", self.step_size)
        require_count("`num_growing` of WarmRestarts", self.num_growing, least=0)
        lengths = {"first_length": self.first_length, "factor": self.factor}
        check_cycles("WarmRestarts", lengths, self.draws_per_cycle, self.explore)

    def size(self, index: Int[Array, ""]) -> Scalar:
        return cosine(self.step_size, *self._place(index))

    def noise(self, index: Int[Array, ""]) -> Scalar:
        return is_past(self.explore, *self._place(index))

    def gaps(self, thin: int) -> tuple[int, ...]:
        return gaps_at_end(int(self._lengths()[-1]), self.draws_per_cycle, thin)

    def check(self, method: str, num_warmup: int, thin: int) -> None:
        check_gaps("WarmRestarts", self.gaps(thin), float(self.explore))
        *growing, length = (int(length) for length in self._lengths())
        least = sum(growing)
        asked = f"`num_warmup` of {method} must be {least} transitions of growing cycles and whole cycles of {length}"
        nearest = least + max(0, round((num_warmup - least) / length)) * length
        fits = num_warmup >= least and (num_warmup - least) % length == 0
        require(fits, asked, num_warmup, f"Pass {nearest}.")

    def _lengths(self) -> Int[Array, " cycle"]:
        return self.first_length * self.factor ** jnp.arange(self.num_growing + 1)

    def _place(self, index: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The place of transition `index` in its cycle, and the cycle's length."""
        lengths = self._lengths()
        starts = jnp.cumsum(lengths) - lengths
        cycle = jnp.sum(index >= starts) - 1
        # Only the last cycle repeats: in an earlier one the remainder changes nothing.
        return (index - starts[cycle]) % lengths[cycle], lengths[cycle]
