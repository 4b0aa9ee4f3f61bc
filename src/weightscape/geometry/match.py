"""Matching: which element of a symmetry brings one network close to another.

g = argmin_g ‖reference − g θ‖        over the elements g of a symmetry

Every way to do so takes the symmetry, a network and a reference, and gives the element and the distances.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.core.keys import require_key
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.symmetry import Element, Symmetry


class Matched(eqx.Module):
    """The element found, and how close it brings the network; of many networks with a leading axis.

    - `distance`: ‖reference − g θ‖.  `distance_before`: ‖reference − θ‖.
    - `num_sweeps`: how many times all groups were gone through.
    """

    element: Element
    distance: Float[Array, "..."]
    distance_before: Float[Array, "..."]
    num_sweeps: Int[Array, "..."]


class Task(NamedTuple):
    """Many networks on a leading axis, and the one that they are matched to.

    - `before`: how far each of them is from it.
    """

    symmetry: Symmetry
    params: Tree
    reference: Tree
    before: Float[Array, " batch"]

    @property
    def num_networks(self) -> int:
        return len(self.before)

    def identities(self) -> Element:
        """One identity for each network."""
        return self.repeated(self.symmetry.identity())

    def repeated(self, element: Element) -> Element:
        """The same element for each network."""
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.num_networks, *leaf.shape)), element)

    def distances(self, element: Element) -> Float[Array, " batch"]:
        """‖reference − g θ‖ of each network."""
        return _distances(self.symmetry, self.params, self.reference, element)

    def matched(self, element: Element, num_sweeps: Int[Array, " batch"]) -> Matched:
        """The result that has these elements."""
        return Matched(element, self.distances(element), self.before, num_sweeps)


class Matching(eqx.Module):
    """A way to find the element."""

    def match(self, key: PRNGKey, symmetry: Symmetry, params: Tree, reference: Tree) -> Matched:
        """The element that brings one network close to the reference, both trees of the symmetry's layout."""
        lone = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)
        return jax.tree.map(lambda leaf: leaf[0], self.match_many(key, symmetry, lone, reference))

    def match_many(self, key: PRNGKey, symmetry: Symmetry, params: Tree, reference: Tree) -> Matched:
        """The same for each of many networks, whose leaves have one leading axis. All are held in memory at once."""
        require_key(key, f"{type(self).__name__}.match")
        params, reference = (jax.tree.map(jnp.asarray, weights) for weights in (params, reference))
        _require_like(symmetry, params, reference)
        before = _distances_before(params, reference)
        finite = bool(jnp.all(jnp.isfinite(before)))
        require(finite, "Weights to match must be finite", "some that are not", "Leave these networks out.")
        return self.find(key, Task(symmetry, params, reference, before))

    @abc.abstractmethod
    def find(self, key: PRNGKey, task: Task) -> Matched:
        """What `match_many` does once its arguments are in order."""


@eqx.filter_jit
def _distances(symmetry: Symmetry, params: Tree, reference: Tree, element: Element) -> Float[Array, " batch"]:
    return jax.vmap(lambda weights, g: _distance(symmetry.apply(weights, g), reference))(params, element)


@eqx.filter_jit
def _distances_before(params: Tree, reference: Tree) -> Float[Array, " batch"]:
    return jax.vmap(_distance, in_axes=(0, None))(params, reference)


def _distance(weights: Tree, reference: Tree) -> Scalar:
    return tree.norm(tree.subtract(reference, weights))


def _require_like(symmetry: Symmetry, params: Tree, reference: Tree) -> None:
    """Raise unless both trees have the symmetry's layout, `params` with one more leading axis."""
    layout = symmetry.layout
    remedy = "Discover the symmetry of this network."
    for name, weights, skipped in (("reference", reference, 0), ("params", params, 1)):
        came = [leaf.shape for leaf in jax.tree.leaves(weights)]
        same = jax.tree.structure(weights) == layout.structure
        same = same and all(leaf[skipped:] == shape for leaf, shape in zip(came, layout.shapes, strict=True))
        asked = f"`{name}` of a matching must have the paths {layout.paths} and {'end with ' * skipped}the shapes "
        require(same, f"{asked}{layout.shapes}", f"{tuple(tree.named_leaves(weights))} and {came}", remedy)
