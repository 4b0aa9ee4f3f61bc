"""Inner products of the units of a network with those of a reference.

With all groups but one held as they are, the squared distance to the reference is a sum over units. Let P_m[j] be the
weights of unit j in place m after all other groups have acted, and R_m[i] those that the reference has for unit i:

    ‖reference − g θ‖² = const + Σ_i Σ_m f_m[i]² ‖P_m[π(i)]‖² − 2 f_m[i] ⟨R_m[i], P_m[π(i)]⟩

which is a linear assignment problem in π (Ainsworth et al. 2023, section 3.2). Where a group lies on a leaf twice, as
in a recurrent matrix, it is the linearisation: along one axis the group itself is held as it is.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.geometry.multipliers import exponent_kinds, exponents_of
from weightscape.symmetry import Element, LeafFactors, Member, Symmetry
from weightscape.symmetry.action import act


class UnitProducts(NamedTuple):
    """p_c[j] = ‖P_c[j]‖² and b_c[i, j] = ⟨R_c[i], P_c[j]⟩ for each kind c of places with the same exponents.

    Without scalings the norms are the same for every element, and are left at zero.
    """

    norms: Float[Array, "kind unit"]
    products: Float[Array, "kind unit unit"]


class Place(NamedTuple):
    """Where a member lies: the number of its leaf, the leaf's factors, and the member."""

    leaf: int
    factors: LeafFactors
    member: Member

    @property
    def others(self) -> list[int]:
        """The groups that lie along other factors of the leaf."""
        rest = self.factors.members[: self.member.factor] + self.factors.members[self.member.factor + 1 :]
        return sorted({g for along in rest for g, _ in along})

    def units(self, leaf: Float[Array, "..."]) -> Float[Array, "unit weight"]:
        """The weights of each unit."""
        axis, positions = self.member.factor, np.asarray(self.member.positions)
        split = jnp.moveaxis(leaf.reshape(self.factors.sizes), axis, 0)
        whole = np.array_equal(positions, np.arange(self.factors.sizes[axis]))
        return (split if whole else split[positions]).reshape(len(positions), -1)


def places(symmetry: Symmetry, group: int) -> Iterator[Place]:
    """All places where the units of a group lie."""
    for number, factors in enumerate(symmetry.leaves):
        for along in factors.members:
            for g, m in along:
                if g == group:
                    yield Place(number, factors, symmetry.groups[g].members[m])


def unit_products(
    symmetry: Symmetry,
    group: int,
    params: Tree,
    reference: Tree,
    *,
    moved: Callable[[Place, Array], Array],
    known: Float[Array, " group"],
) -> UnitProducts:
    """Norms and products of the units of one group, for one network.

    - `moved`: the leaf after all other groups have acted on it, for one place of this group.
    - `known`: 1 for each group that counts; a place that also belongs to a group that does not is left out.
    """
    leaves, wanted = jax.tree.leaves(params), jax.tree.leaves(reference)
    kinds, size = exponent_kinds(symmetry.groups[group]), symmetry.groups[group].size
    dtype = jnp.result_type(*leaves)
    norms = [jnp.zeros((size,), dtype) for _ in kinds]
    products = [jnp.zeros((size, size), dtype) for _ in kinds]
    for place in places(symmetry, group):
        c = kinds.index(exponents_of(place.member))
        units = place.units(moved(place, leaves[place.leaf]))
        weight = jnp.prod(known[np.asarray(place.others, int)]).astype(dtype)
        product = jnp.matmul(place.units(wanted[place.leaf]), units.T, precision=jax.lax.Precision.HIGHEST)
        if symmetry.groups[group].num_scalings:
            norms[c] = norms[c] + weight * jnp.sum(units**2, axis=1)
        products[c] = products[c] + weight * product
    return UnitProducts(jnp.stack(norms), jnp.stack(products))


def moved_by_element(symmetry: Symmetry, element: Element) -> Callable[[Place, Array], Array]:
    """The leaf after what an element does along its other factors."""

    def moved(place: Place, leaf: Array) -> Array:
        along = list(place.factors.members)
        along[place.member.factor] = ()
        return act(symmetry.groups, dataclasses.replace(place.factors, members=tuple(along)), leaf, element)

    return moved
