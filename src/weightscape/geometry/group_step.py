"""One step of a matching: the best choice for one group while all others are held.

The gains of all pairs of units are computed on the device, the assignment is solved on the host, and the best signs and
scales of the chosen pairs become the group's part of the element.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from weightscape.core.types import Tree
from weightscape.geometry.assignment import assign, balanced
from weightscape.geometry.match import Task
from weightscape.geometry.multipliers import Multiplier, best_multiplier, exponent_kinds
from weightscape.geometry.unit_products import UnitProducts, moved_by_element, unit_products
from weightscape.symmetry import Element, Group


def best_for_group(
    task: Task,
    group: int,
    element: Element,
    known: Float[Array, " group"],
    *,
    wanted: Bool[np.ndarray, " batch"],
) -> Element:
    """The elements with the group's part replaced by the best one, for each network.

    - `known`: 1 for each group that counts, see `unit_products`.
    - `wanted`: networks that are worked on; others get a part that means nothing.
    """
    gains, multipliers = _pair_gains(task, group, element, known)
    permutations = jnp.asarray(assign(np.asarray(gains), wanted))
    return with_pairs(element, group, permutations, multipliers)


def pair_multipliers(group: Group, units: UnitProducts) -> Multiplier:
    """The best signs and scales of every pair (i, j): unit j in the place of unit i."""
    kinds = exponent_kinds(group)
    of_pair = lambda norms, products: best_multiplier(kinds, norms, products)
    of_row = jax.vmap(of_pair, in_axes=(1, 1))
    return jax.vmap(of_row, in_axes=(None, 1))(units.norms, units.products)


@eqx.filter_jit
def with_pairs(
    element: Element, group: int, permutations: Int[Array, "batch unit"], multipliers: Multiplier
) -> Element:
    """The elements with another part for one group: its permutations, and the multipliers of the pairs (i, π(i))."""
    chosen = lambda leaf, order: leaf[jnp.arange(len(order)), order]
    picked = jax.tree.map(lambda leaf: jax.vmap(chosen)(leaf, permutations), multipliers)
    return replace_group(element, group, permutations, picked)


def replace_group(element: Element, group: int, permutation: Array, multiplier: Multiplier) -> Element:
    """The element with another part for one group; generators come before units."""
    signs = jnp.swapaxes(multiplier.signs, -1, -2).astype(element.signs[group].dtype)
    log_scales = jnp.swapaxes(multiplier.log_scales, -1, -2).astype(element.log_scales[group].dtype)
    return Element(
        _replaced(element.permutations, group, permutation.astype(element.permutations[group].dtype)),
        _replaced(element.signs, group, signs),
        _replaced(element.log_scales, group, log_scales),
    )


@eqx.filter_jit
def _pair_gains(task: Task, group: int, element: Element, known: Array) -> tuple[Array, Multiplier]:
    def of_one(params: Tree, element: Element) -> tuple[Array, Multiplier]:
        moved = moved_by_element(task.symmetry, element)
        units = unit_products(task.symmetry, group, params, task.reference, moved=moved, known=known)
        multipliers = pair_multipliers(task.symmetry.groups[group], units)
        return balanced(-multipliers.cost), multipliers

    return jax.vmap(of_one)(task.params, element)


def _replaced(parts: tuple, group: int, new: Array) -> tuple:
    return (*parts[:group], new, *parts[group + 1 :])
