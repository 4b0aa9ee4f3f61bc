"""Activation matching: units that do the same at the same inputs belong together.

    π = argmax_π Σ_i corr(z_i, z'_{π(i)})        over the values z of the reference's units and z' of the network's

(Li et al. 2015; Ainsworth, Hayase and Srinivasa 2023, section 3.1). The values are the outputs of the dense or
convolution layers that make the units, before their activation function. Where units may change their sign, the size of
the correlation counts; where they may be rescaled, the standard deviations are made equal.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.types import PRNGKey, Tree
from weightscape.geometry.assignment import assign
from weightscape.geometry.group_step import replace_group
from weightscape.geometry.match import Matched, Matching, Task
from weightscape.geometry.multipliers import Multiplier, best_multiplier
from weightscape.geometry.unit_values import UnitSource, layer_outputs, network_part, unit_sources
from weightscape.networks import LinearLayers, Network, find_linear_layers
from weightscape.symmetry import Symmetry


class ActivationMatching(Matching):
    """One assignment for each group, on the correlations of the units' values.

    - `network`: the network whose weights are matched.
    - `x`: the inputs, as the network sees them: standardised where the data are.

    Every group must have a dense or convolution layer that makes its units; embeddings and attention heads have none.
    It gives no promise on the distance, and uses no randomness. Of weights that are more than a network's, such as
    `draws.params`, it looks at the network's alone.
    """

    network: Network
    x: Float[Array, "point ..."] = eqx.field(converter=jnp.asarray)

    def find(self, key: PRNGKey, task: Task) -> Matched:
        found = find_linear_layers(self.network, network_part(task.reference), self.x)
        sources = tuple(_sources(task.symmetry, g, found) for g in range(len(task.symmetry.groups)))
        element = task.identities()
        for g, compared in enumerate(_compare(found, sources, self.x, task)):
            permutations = jnp.asarray(assign(np.asarray(compared.gains)))
            multipliers = _multipliers(sources[g], compared, permutations)
            element = replace_group(element, g, permutations, multipliers)
        return task.matched(element, jnp.ones(task.num_networks, int))


class Compared(NamedTuple):
    """The units of one group on both sides, for each of the layers that make them.

    - `correlations`: of the reference's unit i and the network's unit j.
    - `log_deviations`, `log_deviations_wanted`: log standard deviations of the network's and the reference's units.
    - `gains`: the correlation with the best signs.
    """

    correlations: Float[Array, "*batch source unit unit"]
    log_deviations: Float[Array, "*batch source unit"]
    log_deviations_wanted: Float[Array, "*batch source unit"]
    gains: Float[Array, "*batch unit unit"]


def _sources(symmetry: Symmetry, group: int, found: LinearLayers) -> tuple[UnitSource, ...]:
    sources = unit_sources(symmetry, group, found)
    asked = "Activation matching needs a dense or convolution layer that makes the units of every group"
    require(bool(sources), asked, f"none for {symmetry.groups[group].name}", "Use WeightMatching.")
    return sources


@eqx.filter_jit
def _compare(
    found: LinearLayers, sources: tuple[tuple[UnitSource, ...], ...], x: Array, task: Task
) -> tuple[Compared, ...]:
    """Both sides of every group for each network; one after the other, as the values may be many."""
    wanted = layer_outputs(found, network_part(task.reference), x)

    def of_one(params: Tree) -> tuple[Compared, ...]:
        outputs = layer_outputs(found, network_part(params), x)
        return tuple(_compared(of_group, outputs, wanted) for of_group in sources)

    return jax.lax.map(of_one, task.params)


def _compared(sources: tuple[UnitSource, ...], outputs: dict[str, Array], wanted: dict[str, Array]) -> Compared:
    ours, deviations = zip(*(_standardised(source.values(outputs)) for source in sources), strict=True)
    theirs, deviations_wanted = zip(*(_standardised(source.values(wanted)) for source in sources), strict=True)
    products = [
        jnp.matmul(there, here.T, precision=jax.lax.Precision.HIGHEST) / here.shape[1]
        for here, there in zip(ours, theirs, strict=True)
    ]
    correlations = jnp.stack(products)
    gains = -jax.vmap(jax.vmap(_best_signs(sources), in_axes=1), in_axes=1)(correlations).cost
    return Compared(correlations, jnp.stack(deviations), jnp.stack(deviations_wanted), gains)


def _standardised(values: Float[Array, "unit value"]) -> tuple[Float[Array, "unit value"], Float[Array, " unit"]]:
    """Values of mean 0 and variance 1, and log standard deviations; a unit that is constant stays at 0."""
    deviation = jnp.maximum(jnp.std(values, axis=1), jnp.finfo(values.dtype).tiny)
    centred = values - jnp.mean(values, axis=1, keepdims=True)
    return centred / deviation[:, None], jnp.log(deviation)


def _best_signs(sources: tuple[UnitSource, ...]) -> Callable[[Float[Array, " source"]], Multiplier]:
    """The signs of the largest sum of correlations, for one pair of units."""
    kinds = tuple(((), source.exponents[1]) for source in sources)
    return lambda correlations: best_multiplier(kinds, jnp.zeros_like(correlations), correlations)


@eqx.filter_jit
def _multipliers(sources: tuple[UnitSource, ...], compared: Compared, permutations: Array) -> Multiplier:
    """Signs and scales of each unit once it is known which goes where; scales by least squares over the layers."""
    exponents = np.array([source.exponents[0] for source in sources], float).reshape(len(sources), -1)
    solve = jnp.asarray(np.linalg.pinv(exponents), compared.log_deviations.dtype)

    def of_one(compared: Compared, permutation: Array) -> Multiplier:
        pairs = jnp.take_along_axis(compared.correlations, permutation[None, :, None], axis=2)[..., 0]
        best = jax.vmap(_best_signs(sources), in_axes=1)(pairs)
        log_ratios = compared.log_deviations_wanted - compared.log_deviations[:, permutation]
        return best._replace(log_scales=(solve @ log_ratios).T)

    return jax.vmap(of_one)(compared, permutations)
