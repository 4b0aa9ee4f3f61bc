"""Probes: what the network does at a few learned inputs, as further features.

    tokens of units       += W · (values of the unit at the probes)
    token of the network  += V · f(probes; θ)

The values of units are the outputs of the dense and convolution layers that make them, before the activation function.
They carry the charge of their unit and, with weights of unit scales, no scale, so equivariance is kept. The idea of
probing: Kofinas et al. (2024), Graph neural networks for learning equivariant representations of neural networks.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require_count
from weightscape.core.types import PRNGKey, Tree
from weightscape.geometry.unit_values import UnitSource, layer_outputs, network_part, unit_sources
from weightscape.metanet.block import Hidden
from weightscape.metanet.features import charge_of
from weightscape.metanet.linear import Linear
from weightscape.metanet.plan import Plan
from weightscape.metanet.sizes import Sizes
from weightscape.networks import LinearLayers, Network, find_linear_layers
from weightscape.symmetry import Symmetry


class Probes(eqx.Module):
    """Asks a metanet to look at its networks at some inputs, which it learns.

    - `network`: the network whose weights are read.
    - `x`: inputs to start from, as the network sees them: standardised where the data are.
    - `num_probes`: how many.
    """

    network: Network
    x: Float[Array, "point ..."] = eqx.field(converter=jnp.asarray)
    num_probes: int = eqx.field(static=True, default=8)

    def __check_init__(self) -> None:
        require_count("`num_probes` of Probes", self.num_probes)


class ProbeEmbedding(eqx.Module):
    """Values at learned inputs to features of tokens."""

    inputs: Float[Array, "probe ..."]
    of_units: tuple[Linear, ...]
    of_outputs: Linear
    found: LinearLayers
    sources: tuple[tuple[int, UnitSource], ...] = eqx.field(static=True)
    plan: Plan = eqx.field(static=True)

    @staticmethod
    def of(
        key: PRNGKey, probes: Probes, symmetry: Symmetry, plan: Plan, sizes: Sizes, params: Tree
    ) -> "ProbeEmbedding":
        """A random one whose inputs are rows of `probes.x`, with a little noise."""
        key_row, key_noise, key_unit, key_output = jax.random.split(key, 4)
        rows = jax.random.choice(key_row, len(probes.x), (probes.num_probes,))
        inputs = probes.x[rows] + 0.1 * jax.random.normal(key_noise, (probes.num_probes, *probes.x.shape[1:]))
        found = find_linear_layers(probes.network, network_part(params), inputs)
        sources = tuple((g, s) for g in range(len(symmetry.groups)) for s in unit_sources(symmetry, g, found))
        values = jax.eval_shape(lambda p: _values(found, p, inputs, sources), params)
        keys = jax.random.split(key_unit, max(len(sources), 1))
        linear = lambda key, shape: Linear.of(key, shape[-1], sizes.width, bias=False)
        return ProbeEmbedding(
            inputs,
            tuple(linear(k, each.shape) for k, each in zip(keys, values[1:], strict=False)),
            linear(key_output, values[0].shape),
            found,
            sources,
            plan,
        )

    def __call__(self, params: Tree, hidden: Hidden) -> Hidden:
        """The features with those of the probes added."""
        outputs, *values = _values(self.found, params, self.inputs, self.sources)
        tokens = list(hidden.tokens)
        tokens[0] = tokens[0].at[self.plan.tokens(-1)].add(self.of_outputs(outputs))
        for (group, source), linear, each in zip(self.sources, self.of_units, values, strict=True):
            slot = self.plan.token_slot(charge_of(source.exponents[1]))
            tokens[slot] = tokens[slot].at[self.plan.tokens(group)].add(linear(each))
        return hidden._replace(tokens=tuple(tokens))


def _values(
    found: LinearLayers, params: Tree, inputs: Array, sources: tuple[tuple[int, UnitSource], ...]
) -> list[Float[Array, "unit value"]]:
    """The outputs of the network as one row, then for each source the values of its units."""
    network = network_part(params)
    outputs = found.network.apply(network, inputs).reshape(1, -1)
    seen = layer_outputs(found, network, inputs) if sources else {}
    return [outputs, *(source.values(seen) for _, source in sources)]
