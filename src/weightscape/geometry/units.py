"""The weights of a group's units in the places where they lie, and back."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped

from weightscape.core.types import Tree
from weightscape.symmetry import Element, LeafFactors, Symmetry
from weightscape.symmetry.action import act


def leaf_of(symmetry: Symmetry, group: int, member: int) -> LeafFactors:
    """The factors of the leaf that a member lies in."""
    return symmetry.leaves[_leaf_number(symmetry, group, member)]


def unit_weights(
    symmetry: Symmetry, params: Tree, group: int, member: int, *, after: Element | None = None
) -> Shaped[Array, "unit ..."]:
    """The weights of each unit in a member: the units first, then the leaf's other factors in their order.

    - `after`: an element that the network is moved by first; only the member's leaf is computed.
    """
    place = symmetry.groups[group].members[member]
    factors = leaf_of(symmetry, group, member)
    leaf = jnp.asarray(jax.tree.leaves(params)[_leaf_number(symmetry, group, member)])
    moved = leaf if after is None else act(symmetry.groups, factors, leaf, after)
    units_first = jnp.moveaxis(moved.reshape(factors.sizes), place.factor, 0)
    is_all = place.positions == tuple(range(len(units_first)))
    return units_first if is_all else units_first[jnp.asarray(place.positions)]


def with_unit_weights(
    symmetry: Symmetry, params: Tree, group: int, member: int, weights: Shaped[Array, "unit ..."]
) -> Tree:
    """The tree with other weights of the units in a member: the inverse of `unit_weights`."""
    place = symmetry.groups[group].members[member]
    number = _leaf_number(symmetry, group, member)
    leaves, structure = jax.tree.flatten(params)
    leaf = jnp.asarray(leaves[number])
    factors = jnp.moveaxis(leaf.reshape(symmetry.leaves[number].sizes), place.factor, 0)
    is_all = place.positions == tuple(range(len(factors)))
    new = weights.astype(leaf.dtype)
    changed = new if is_all else factors.at[jnp.asarray(place.positions)].set(new)
    leaves[number] = jnp.moveaxis(changed, 0, place.factor).reshape(leaf.shape)
    return jax.tree.unflatten(structure, leaves)


def joined_weights(
    symmetry: Symmetry, params: Tree, group: int, members: tuple[int, ...], *, after: Element | None = None
) -> Shaped[Array, "unit ..."]:
    """The weights of each unit in several members, in a row; those of a single member as they are."""
    parts = [unit_weights(symmetry, params, group, member, after=after) for member in members]
    return parts[0] if len(parts) == 1 else jnp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def with_joined_weights(
    symmetry: Symmetry, params: Tree, group: int, members: tuple[int, ...], rows: Shaped[Array, "unit weight"]
) -> Tree:
    """The tree with other weights of the units in several members, given in a row for each unit."""
    for member in members:
        shape = unit_shape(symmetry, group, member)
        own, rows = jnp.split(rows, [math.prod(shape)], axis=1)
        params = with_unit_weights(symmetry, params, group, member, own.reshape(len(own), *shape))
    return params


def unit_shape(symmetry: Symmetry, group: int, member: int) -> tuple[int, ...]:
    """The shape of one unit's weights in a member: the leaf's other factors in their order."""
    own = symmetry.groups[group].members[member].factor
    return tuple(size for factor, size in enumerate(leaf_of(symmetry, group, member).sizes) if factor != own)


def other_factors(symmetry: Symmetry, group: int, member: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each axis of `unit_weights` after the first, the (group, member) that lie along it."""
    places = leaf_of(symmetry, group, member).members
    own = symmetry.groups[group].members[member].factor
    return tuple(along for factor, along in enumerate(places) if factor != own)


def _leaf_number(symmetry: Symmetry, group: int, member: int) -> int:
    return symmetry.layout.paths.index(symmetry.groups[group].members[member].path)
