"""The canonical form: one network for each class of equivalent ones.

Three choices are made, each from the first group of units to the last:

    scale   ‖w_i‖ = 1 for the incoming weights w_i of each unit; the shift and the outgoing weights follow
    sign    the first of the unit's largest incoming weights is positive
    order   units by ⟨c, v_i⟩, for all weights v_i of the unit and fixed c

Each applies to the groups that have the symmetry: tanh units are not rescaled, ReLU units not flipped. The scale of the
last layer belongs to no unit and stays a coordinate; normalising it would change probabilities. A unit whose incoming
weights are all zero keeps its scale.

c_j = sin(j²): by Lindemann and Weierstrass these are linearly independent over the algebraic numbers, so different
vectors of rational entries never tie. Along axes of units that have no order yet, the norm stands for the entries.

Where rescalings of two groups meet in the only matrix that could tell them apart (heads and entries of attention), no
scale makes all norms one. The group that comes first then has geometric mean 1, over the other's units, of its norms.

Reference: Pittorino, Ferraro, Perugini, Feinauer, Baldassi & Zecchina (2022), Deep networks on toroids. We differ
in keeping the scale of the last layer, and in fixing signs and order.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from weightscape.core.types import Tree
from weightscape.geometry.pivots import Pivot, scale_pivots, sign_pivots
from weightscape.geometry.units import joined_weights, other_factors, unit_weights
from weightscape.symmetry import Element, Symmetry

_NEARLY_LARGEST = 0.999
"""Weights this close to a unit's largest count as equal, so that rounding does not choose between equal ones."""


class CanonicalForm(NamedTuple):
    """`params` = `symmetry.apply(original, element)`; the inverse of `element` leads back."""

    params: Tree
    element: Element


def canonical(symmetry: Symmetry, params: Tree) -> CanonicalForm:
    """The canonical form of a network, the same to rounding for all equivalent ones.

    Units that agree in all their weights may stand in either order; units that nearly do are ordered by rounding.

    Example:
    >>> import jax
    >>> from weightscape import networks, symmetry
    >>> x = jax.numpy.ones((5, 2))
    >>> network = networks.MLP(hidden=(3,), activation="relu", outputs=1)
    >>> params = network.init(jax.random.key(0), x)
    >>> form = canonical(symmetry.discover(network, params, x), params)
    >>> jax.numpy.linalg.norm(form.params["layer0"]["weight"], axis=0).round(4).tolist()
    [1.0, 1.0, 1.0]
    """
    return _canonical(symmetry, params)


def unit_scales(symmetry: Symmetry, params: Tree, *, with_shifts: bool = False) -> CanonicalForm:
    """The equivalent network with the scales of the canonical form, and its own signs and order.

    - `with_shifts`: ‖(w_i, b_i)‖ = 1 in place of ‖w_i‖ = 1; a unit keeps its scale where both are zero.
    """
    if not symmetry.num_scales:
        return CanonicalForm(params, symmetry.identity())
    return _unit_scales(symmetry, params, with_shifts=with_shifts)


@eqx.filter_jit
def _canonical(symmetry: Symmetry, params: Tree) -> CanonicalForm:
    element = _settle_scales(symmetry, params, with_shifts=False)
    flipped = _flipped_groups(symmetry)
    # Signs in leaves that several groups flip need an order that does not depend on signs.
    for g in range(len(symmetry.groups)) if flipped else ():
        element = _settle_order(symmetry, params, element, g, flipped)
    for g in range(len(symmetry.groups)):
        element = _settle_signs(symmetry, params, element, g)
        element = _settle_order(symmetry, params, element, g, _flipped_groups(symmetry, g + 1))
    return CanonicalForm(symmetry.apply(params, element), element)


@eqx.filter_jit
def _unit_scales(symmetry: Symmetry, params: Tree, *, with_shifts: bool) -> CanonicalForm:
    element = _settle_scales(symmetry, params, with_shifts=with_shifts)
    return CanonicalForm(symmetry.apply(params, element), element)


def _settle_scales(symmetry: Symmetry, params: Tree, *, with_shifts: bool) -> Element:
    element = symmetry.identity()
    for pivot in scale_pivots(symmetry, with_shifts=with_shifts):
        weights = joined_weights(symmetry, params, pivot.group, pivot.members, after=element)
        sizes = _sizes(weights, pivot.joint)
        # One over a size below the smallest normal number is infinite; some devices take such sizes for zero anyway.
        usable = (sizes >= jnp.finfo(sizes.dtype).tiny) & jnp.isfinite(sizes)
        log_scales = -jnp.log(jnp.where(usable, sizes, 1.0))
        element = _rescaled(element, pivot, log_scales)
    return element


def _settle_signs(symmetry: Symmetry, params: Tree, element: Element, group: int) -> Element:
    for pivot in (each for each in sign_pivots(symmetry) if each.group == group):
        weights = joined_weights(symmetry, params, pivot.group, pivot.members, after=element)
        for axis in sorted(pivot.joint, reverse=True):
            weights = jnp.take(weights, 0, axis=axis + 1)
        element = _flipped(element, pivot, _signs(weights.reshape(len(weights), -1)))
    return element


def _settle_order(symmetry: Symmetry, params: Tree, element: Element, group: int, flipped: frozenset[int]) -> Element:
    """Order the units of a group; signs of the groups in `flipped` are not settled and must not matter."""
    parts = [
        _without_order(symmetry, unit_weights(symmetry, params, group, m, after=element), group, m, flipped)
        for m in range(len(symmetry.groups[group].members))
    ]
    weights = jnp.concatenate(parts, axis=1)
    places = np.arange(1, weights.shape[1] + 1, dtype=np.float64)
    order = jnp.argsort(weights @ jnp.asarray(np.sin(places**2), weights.dtype))
    return _ordered(element, group, order)


def _without_order(
    symmetry: Symmetry, weights: Float[Array, "unit ..."], group: int, member: int, flipped: frozenset[int]
) -> Float[Array, "unit _"]:
    """What does not depend on the order of later groups, of this one, or on signs that are not settled."""
    factors = other_factors(symmetry, group, member)
    everyone = [(group, member), *(place for along in factors for place in along)]
    is_flipped = lambda g, m: g in flipped and any(symmetry.groups[g].members[m].sign_exponents)
    if any(is_flipped(g, m) for g, m in everyone):
        weights = jnp.abs(weights)
    unordered = tuple(axis + 1 for axis, along in enumerate(factors) if any(g >= group for g, _ in along))
    if unordered:
        weights = jnp.sqrt(jnp.sum(weights**2, axis=unordered))
    return weights.reshape(len(weights), -1)


def _flipped_groups(symmetry: Symmetry, first: int = 0) -> frozenset[int]:
    """The groups from number `first` on that may change signs."""
    return frozenset(g for g in range(first, len(symmetry.groups)) if symmetry.groups[g].num_signs)


def _sizes(weights: Float[Array, "unit ..."], joint: tuple[int, ...]) -> Float[Array, " unit"]:
    """The norm of each unit's weights: over all axes, or its geometric mean along the `joint` ones."""
    plain = tuple(axis for axis in range(1, weights.ndim) if axis - 1 not in joint)
    # Through the largest entry, so that squares of very small or large weights neither vanish nor overflow.
    largest = jnp.max(jnp.abs(weights), axis=tuple(range(1, weights.ndim)), keepdims=True)
    largest = jnp.where(largest > 0, largest, 1.0)
    squares = jnp.sum((weights / largest) ** 2, axis=plain).reshape(len(weights), -1)
    # 1 stands for 0 under the root and the logarithm, which have no slope there.
    norms = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    means = jnp.exp(jnp.mean(jnp.log(norms), axis=1)) if joint else norms[:, 0]
    return jnp.where(jnp.all(squares > 0, axis=1), largest.reshape(-1) * means, 0.0)


def _signs(weights: Float[Array, "unit weight"]) -> Int[Array, " unit"]:
    """The sign of the first of each unit's largest weights; 1 where all are zero."""
    magnitudes = jnp.abs(weights)
    nearly: Bool[Array, "unit weight"] = magnitudes >= _NEARLY_LARGEST * jnp.max(magnitudes, axis=1, keepdims=True)
    first = jnp.take_along_axis(weights, jnp.argmax(nearly, axis=1)[:, None], axis=1)[:, 0]
    return jnp.where(first < 0, -1, 1)


def _rescaled(element: Element, pivot: Pivot, log_scales: Float[Array, " unit"]) -> Element:
    """The element, and then one that rescales the units of a group."""
    own = jnp.asarray(element.log_scales[pivot.group])
    changed = own.at[pivot.way].add(log_scales.astype(own.dtype))
    return Element(element.permutations, element.signs, _replaced(element.log_scales, pivot.group, changed))


def _flipped(element: Element, pivot: Pivot, signs: Int[Array, " unit"]) -> Element:
    """The element, and then one that flips units of a group."""
    own = jnp.asarray(element.signs[pivot.group])
    changed = own.at[pivot.way].multiply(signs.astype(own.dtype))
    return Element(element.permutations, _replaced(element.signs, pivot.group, changed), element.log_scales)


def _ordered(element: Element, group: int, order: Int[Array, " unit"]) -> Element:
    """The element, and then one that permutes the units of a group."""
    parts = (element.permutations, element.signs, element.log_scales)
    return Element(*(_replaced(part, group, jnp.asarray(part[group])[..., order]) for part in parts))


def _replaced(entries: tuple, i: int, entry: Array) -> tuple:
    return (*entries[:i], entry, *entries[i + 1 :])
