"""Targets drawn from the predictive distribution.

    i ~ Categorical(w),     y_n ~ p(y | f(x_n; θ_i), φ_i)  for all points n

One draw i of the weights serves all points of a sample, so samples show how predictions hang together across inputs.
The noise of a point depends on the key, the sample and the point alone, not on how points are chunked.
"""

import equinox as eqx
import jax
from jaxtyping import Array, Int, Key, Shaped

from weightscape.core.types import PRNGKey
from weightscape.predictive.components import Components
from weightscape.predictive.marginal import Density


class Sampling(eqx.Module):
    """One target for each sample, as a function of a chunk's components.

    - `keys`: a key for each sample.
    - `chosen`: the draw i of each sample.
    """

    keys: Key[Array, " sample"]
    chosen: Int[Array, " sample"]

    def __call__(
        self, likelihood: Density, components: Components, points: Int[Array, " point"]
    ) -> Shaped[Array, "point sample ..."]:
        def one(key: PRNGKey, i: Array, point: Array, n: Array) -> Array:
            own = {name: values[i] for name, values in components.own.items()}
            return likelihood.sample(jax.random.fold_in(key, point), components.outputs[i, n][None], own)[0]

        over_samples = jax.vmap(one, (0, 0, None, None))
        rows = jax.numpy.arange(len(points))
        return jax.vmap(over_samples, (None, None, 0, 0))(self.keys, self.chosen, points, rows)
