"""Functions drawn from the linearised network, for every likelihood.

    f_i(x) = f(x; μ) + J(x) R z_i,      z_i ~ N(0, I),      p(y | x) ≈ (1/n) Σ_i p(y | f_i(x))

At each point f_i(x) ~ N(m, S). One z_i serves all points, so a function hangs together across inputs, and samples of y
do as well. J is never formed: a function costs about two passes of the network.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from weightscape.core.checks import require_count
from weightscape.core.keys import chain_keys, require_key
from weightscape.core.types import PRNGKey
from weightscape.predictive.linear_network import LinearNetwork
from weightscape.predictive.links.link import Link
from weightscape.predictive.mixture import Mixture
from weightscape.predictive.outputs import Chunk, Outputs, check_outputs, hold, pad_rows
from weightscape.predictive.plan import Plan, make_plan


class FunctionSamples(Link):
    """A mixture over functions of the linearised network; an inferred noise scale is taken at the mean.

    - `key`: for the functions; the same key gives the same functions, however points are chunked.
    - `num_samples`: how many functions.
    """

    key: PRNGKey
    num_samples: int = eqx.field(static=True, default=1000)

    def __check_init__(self):
        require_key(self.key, "FunctionSamples")
        require_count("`num_samples` of FunctionSamples", self.num_samples)

    def mixture(self, network: LinearNetwork, x: Float[np.ndarray, "point ..."], memory: int) -> Mixture:
        params = jax.eval_shape(network.parameters, network.location).network
        plan = make_plan(network.model.network, params, x, num_draws=self.num_samples, memory=memory)
        outputs = LinearisedOutputs(plan, network, self.key, x)
        repeat = lambda value: jnp.broadcast_to(value[None], (plan.padded_draws, *value.shape))
        own = {name: repeat(value) for name, value in network.own().items()}
        weights = np.pad(np.full(self.num_samples, 1 / self.num_samples), (0, plan.padded_draws - self.num_samples))
        held = hold(outputs) if plan.fits else outputs
        return Mixture(network.model.likelihood, held, own, jnp.asarray(weights, x.dtype))


class LinearisedOutputs(Outputs):
    """f_i at all points, computed when asked for.

    - `key`: of the functions.  `x`: inputs as the network sees them.
    """

    plan: Plan = eqx.field(static=True)
    network: LinearNetwork
    key: PRNGKey
    x: Float[np.ndarray, "point ..."]

    def chunks(self) -> Iterator[Chunk]:
        for points in self.plan.chunks:
            x = jnp.asarray(pad_rows(self.x[points], self.plan.chunk_size))
            outputs = jnp.concatenate([_functions(self.network, keys, x) for keys in self._batches()])
            check_outputs(outputs, points, "Look at the approximation's `location` and `covariance`.")
            yield Chunk(points, outputs)

    def _batches(self) -> Iterator[Key[Array, " draw"]]:
        """Keys of `batch_size` functions at a time; those beyond the last get no weight."""
        keys = chain_keys(self.key, self.plan.padded_draws)
        return (keys[i : i + self.plan.batch_size] for i in range(0, len(keys), self.plan.batch_size))


@eqx.filter_jit
def _functions(
    network: LinearNetwork, keys: Key[Array, " draw"], x: Float[Array, "point ..."]
) -> Float[Array, "draw point output"]:
    mean, push_forward = jax.linearize(lambda vector: network.outputs(vector, x), network.location)

    def draw(key: PRNGKey) -> Float[Array, "point output"]:
        white = jax.random.normal(key, network.location.shape, network.location.dtype)
        return mean + push_forward(network.covariance.root(white))

    return jax.vmap(draw)(keys)
