"""How an element acts on the weights: one index and one multiplier along each factor of a leaf.

leaf'[…, k, …] = multiplier[k] · leaf[…, index[k], …]
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from weightscape.symmetry.element import Element
from weightscape.symmetry.group import Group, LeafFactors, Member


def act(groups: Sequence[Group], factors: LeafFactors, leaf: Shaped[Array, "..."], element: Element) -> Array:
    """The leaf after the element."""
    moved = leaf.reshape(factors.sizes)
    for axis, places in enumerate(factors.members):
        if places:
            moved = jnp.take(moved, _index(groups, places, element, factors.sizes[axis]), axis=axis)
        weighed = [(g, m) for g, m in places if is_weighed(groups[g].members[m])]
        if weighed:
            shape = [size if i == axis else 1 for i, size in enumerate(factors.sizes)]
            multiplier = _multiplier(groups, weighed, element, factors.sizes[axis])
            moved = moved * multiplier.astype(leaf.dtype).reshape(shape)
    return moved.reshape(leaf.shape)


def is_weighed(member: Member) -> bool:
    """Whether scales or signs of its group change the weights of a member."""
    return any(member.scale_exponents) or any(member.sign_exponents)


def factor_of(member: Member, group: int, element: Element) -> Float[Array, " unit"]:
    """Π σ^e s^e: what the weights of each unit are multiplied by in one place."""
    scale_exponents = jnp.asarray(member.scale_exponents, element.log_scales[group].dtype)
    scales = jnp.exp(scale_exponents @ element.log_scales[group])
    flips = [element.signs[group][k] for k, exponent in enumerate(member.sign_exponents) if exponent]
    return scales * jnp.prod(jnp.stack([jnp.ones_like(element.permutations[group]), *flips]), axis=0)


def _index(groups: Sequence[Group], places: Sequence[tuple[int, int]], element: Element, size: int) -> Int[Array, " _"]:
    moved = [jnp.asarray(groups[g].members[m].positions)[jnp.asarray(element.permutations[g])] for g, m in places]
    return _placed(groups, places, jnp.arange(size), moved)


def _multiplier(
    groups: Sequence[Group], places: Sequence[tuple[int, int]], element: Element, size: int
) -> Float[Array, " _"]:
    factors = [factor_of(groups[g].members[m], g, element) for g, m in places]
    return _placed(groups, places, jnp.ones((size,), factors[0].dtype), factors)


def _placed(
    groups: Sequence[Group], places: Sequence[tuple[int, int]], rest: Array, values: Sequence[Array]
) -> Shaped[Array, " _"]:
    """`rest` with the values of each member at its positions, by one look-up: a scatter is slower."""
    where, start = np.arange(len(rest)), len(rest)
    for g, m in places:
        positions = groups[g].members[m].positions
        where[list(positions)] = start + np.arange(len(positions))
        start += len(positions)
    return jnp.concatenate([rest, *values])[where]
