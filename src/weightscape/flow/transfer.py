"""A trained flow moved to other networks: wider or narrower ones, or the same on other data.

    v'(t, θ) = v(t, θ)      the same numbers, on other grids of units

A metanet has numbers for channels and kinds of units, none for how many units there are, so what it has learned is a
field on networks of every width. Numbers that belong to weights, such as the sizes of a source, are those of the orbit
that a weight lies in. A transferred flow has seen no network of the new kind: what it draws is a start to train from,
or a density to be weighed (`Flow.evidence`). Where a metanet has no blocks units know nothing of each other, and those
of a wider network are distributed as those of the narrow one; with blocks they attend to more units than in training.

Sizes stay those that the narrow networks have, though trained weights into a layer may shrink as it grows. Flows from
prior to posterior take them from the new prior.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core.checks import require, require_type
from weightscape.draws import Header
from weightscape.flow.architecture import Equivariant, Revised, setting_of
from weightscape.flow.fields import looking_at
from weightscape.flow.flow import Flow
from weightscape.flow.flow_files import filled
from weightscape.flow.given import bound_as, released
from weightscape.flow.orbits import orbits
from weightscape.flow.population_flow import PopulationFlow
from weightscape.flow.source import Source, WhitenedSource
from weightscape.flow.sphere_source import SphereSource
from weightscape.flow.target import Target
from weightscape.metanet import Features, Metanet
from weightscape.posterior import Posterior
from weightscape.symmetry import Symmetry, of_function

Numbers = tuple[np.ndarray, ...]
"""All arrays of a model, in the order of its tree."""


def transfer(flow: Any, posterior: Posterior) -> Any:
    """The flow on the networks of a posterior, which differ from its own in numbers of units only, or in their data.

    - `flow`: a Flow or a PopulationFlow; so is the result.
    - `posterior`: of a network with the same layers, inputs and outputs, and of other widths where wanted.

    For the flow's own posterior it is the flow itself, bit by bit.
    """
    asked, remedy = "`flow` of transfer must be a Flow or a PopulationFlow", "Pass what a training has returned."
    require_type(isinstance(flow, Flow | PopulationFlow), asked, type(flow).__name__, remedy)
    asked = "`architecture` of a flow that is transferred must be Equivariant or Revised"
    came = flow.method.architecture
    require_type(isinstance(came, Equivariant | Revised), asked, type(came).__name__, "Train one with a metanet.")
    if isinstance(flow, PopulationFlow):
        source, model, reach = _over_population(flow, posterior)
        of_weights = {"reach": reach}
    else:
        (source, model), of_weights = _to_posterior(flow, posterior), {}
    moved = flow.method.flow(Header.of(posterior), posterior, model, source)
    facts = flow.facts.plus(transferred_from=flow.source.layout.size)
    return dataclasses.replace(moved, facts=facts, solver=flow.solver, divergence=flow.divergence, **of_weights)


def _over_population(flow: PopulationFlow, posterior: Posterior) -> tuple[Source, Any, jax.Array]:
    """The geometry's source on the new networks, the model, which looks at the new data, and how far weights may go."""
    method, symmetry, layout = flow.method, of_function(posterior), Header.of(posterior).layout()
    before, after = _symmetry(flow.model), symmetry.without_scaling()
    _require_alike(before, after)
    assert isinstance(flow.source, WhitenedSource | SphereSource)
    source = method.geometry.source(symmetry, layout, _by_orbit(flow.source.scale, before, after))
    if isinstance(flow.source, SphereSource):
        same = np.array_equal(_by_orbit(flow.source.curved, before, after), source.curved)
        asked, remedy = "Units of networks that a flow is transferred to must have its spheres", "Train a new flow."
        require(same, asked, "units that are rescaled in other ways", remedy)
    target, zeros = Target(posterior, source), jnp.zeros((2, layout.size), layout.dtype)
    blind = looking_at(method.model(jax.random.key(0), symmetry, target, zeros), None)
    model = looking_at(
        filled(blind, _numbers(looking_at(released(flow.model), None))), method.architecture.seen(target)
    )
    return source, bound_as(model, flow.model), _by_orbit(flow.reach, before, after)


def _to_posterior(flow: Flow, posterior: Posterior) -> tuple[Source, Any]:
    """The new prior's source, and the model, which looks at the new data if it looks at any."""
    method, target = flow.method, Target(posterior, flow.method.source(posterior))
    zeros = jnp.zeros((2, target.source.layout.size), target.source.layout.dtype)
    setting = setting_of(method.architecture, target, method.path, zeros, zeros)
    before, after = _symmetry(flow.model), setting.symmetry
    _require_alike(before, after)
    blind = looking_at(method.model(jax.random.key(0), setting), None)
    numbers = _numbers(looking_at(flow.model, None))
    if before.layout.size != after.layout.size:
        numbers = _fitted(numbers, _numbers(blind), before, after)
    return target.source, looking_at(filled(blind, numbers), method.architecture.seen(target))


def _fitted(numbers: Numbers, new: Numbers, before: Symmetry, after: Symmetry) -> Numbers:
    """Numbers of each weight by orbit, the others as they are; shapes tell them apart, as the widths differ."""
    sizes = ((before.layout.size,), (after.layout.size,))

    def one(old: np.ndarray, like: np.ndarray) -> np.ndarray:
        if (old.shape, like.shape) != sizes:
            return old
        return like if jnp.issubdtype(like.dtype, jnp.integer) else np.asarray(_by_orbit(old, before, after))

    return tuple(one(old, like) for old, like in zip(numbers, new, strict=True))


def _by_orbit(values: Any, before: Symmetry, after: Symmetry) -> jax.Array:
    """Numbers that are the same on orbits, for the weights that lie in these orbits of other networks."""
    _, first = np.unique(orbits(before), return_index=True)
    return jnp.asarray(np.asarray(values)[first][orbits(after)])


def _numbers(model: Any) -> Numbers:
    return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array)))


def _symmetry(model: Any) -> Symmetry:
    """What the model's metanets commute with."""
    is_metanet = lambda node: isinstance(node, Metanet)
    found = [node for node in jax.tree.leaves(model, is_leaf=is_metanet) if is_metanet(node)]
    assert found
    return found[0].trunk.features.symmetry


def _require_alike(before: Symmetry, after: Symmetry) -> None:
    """Raise unless the leaves, the groups that they belong to and their channels are the same."""
    ours, theirs = _leaves(before), _leaves(after)
    differing = [path for path in {**ours, **theirs} if ours.get(path) != theirs.get(path)]
    asked = "Networks that a flow is transferred to must be its own but for numbers of units"
    came = f"other groups, signs or channels in {', '.join(differing)}"
    require(not differing, asked, came, "Keep inputs, outputs, layers and activations, or train a new flow.")


def _leaves(symmetry: Symmetry) -> dict[str, list[tuple]]:
    """For each leaf its parts: their groups, how these change their signs, and the channels of each."""
    found: dict[str, list[tuple]] = {leaf.path: [] for leaf in symmetry.leaves}
    for place in Features(symmetry).places:
        for cell in place.cells:
            part = (place.groups, place.charges, cell.axes, cell.shape[len(cell.axes) :])
            found[symmetry.leaves[cell.leaf].path].append(part)
    return found
