"""Coupling by symmetry: each target is moved to the equivalent network close to its own source.

    x₁ ← h g x₁,      g uniform over the group,      h = argmin_h ‖x₀ − h g x₁‖, by sweeps over the groups of units

q₀ and q₁ must be invariant. The random g makes an invariant sample of any sample; after it the rule is *natural*: when
source and target are moved together, so is what it gives,

    h(k x₀, k x₁) · k x₁ = k · h(x₀, x₁) x₁        for all elements k

so the law of the moved target is invariant as well, hence still q₁. Where another coupling comes first and looks at the
weights, as optimal transport does, x₀ knows of x₁ before g is drawn: then the law of the pair moved by one more uniform
element is right, which is all that an equivariant velocity field sees (Klein, Krämer and Noé 2023, Equivariant flow
matching).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import InputError, require, require_count
from weightscape.core.config import registered
from weightscape.core.layout import Layout
from weightscape.core.types import PRNGKey, Tree
from weightscape.flow.coupling_assignment import cheapest
from weightscape.flow.couplings import Coupling
from weightscape.geometry.group_step import pair_multipliers, replace_group
from weightscape.geometry.unit_products import moved_by_element, unit_products
from weightscape.geometry.weight_matching import is_one_assignment
from weightscape.symmetry import Element, Symmetry


@registered("flow.Aligned")
class Aligned(Coupling):
    """Targets moved by permutations and signs of units towards their own sources, anew in each step.

    - `num_sweeps`: how often all groups are gone through, each with one exact assignment.

    With one group that lies on each leaf once, one sweep gives the closest equivalent network, and is all that is made.
    It pairs after it is bound to a symmetry.
    """

    num_sweeps: int = eqx.field(static=True, default=2)

    def __check_init__(self) -> None:
        require_count("`num_sweeps` of Aligned", self.num_sweeps)

    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        raise InputError(
            "An Aligned coupling must know the symmetry of its networks before it pairs, got none. "
            "Call `bind(symmetry, layout)` and pair with what it returns."
        )

    def bind(self, symmetry: Symmetry, layout: Layout) -> Coupling:
        require(
            symmetry.num_scales == 0,
            "The symmetry of an Aligned coupling must have permutations and signs alone",
            f"{symmetry.num_scales} free scales",
            "Discover the symmetry of the posterior, or pass `symmetry.without_scaling()`.",
        )
        require(
            (symmetry.layout.paths, symmetry.layout.shapes) == (layout.paths, layout.shapes),
            f"The symmetry of an Aligned coupling must act on {layout.paths} of shapes {layout.shapes}",
            f"{symmetry.layout.paths} of shapes {symmetry.layout.shapes}",
            "Discover the symmetry of this posterior.",
        )
        return _BoundAligned(symmetry, layout, 1 if is_one_assignment(symmetry) else self.num_sweeps)


class _BoundAligned(Coupling):
    """An Aligned coupling that knows its symmetry."""

    symmetry: Symmetry
    layout: Layout
    num_sweeps: int = eqx.field(static=True)

    def pair(
        self, key: PRNGKey, sources: Float[Array, "pair weight"], targets: Float[Array, "pair weight"]
    ) -> Float[Array, "pair weight"]:
        tree, vector = jax.vmap(self.layout.unflatten), jax.vmap(self.layout.flatten)
        moved = moved_at_random(key, self.symmetry, tree(targets))
        align = lambda source, target: aligned(self.symmetry, source, target, num_sweeps=self.num_sweeps)
        return vector(jax.vmap(align)(tree(sources), moved)).astype(targets.dtype)

    def bind(self, symmetry: Symmetry, layout: Layout) -> Coupling:
        return Aligned(self.num_sweeps).bind(symmetry, layout)


def moved_at_random(key: PRNGKey, symmetry: Symmetry, params: Tree) -> Tree:
    """Many networks, each moved by an element of its own, uniform over permutations and signs."""

    def move(key: PRNGKey, params: Tree) -> Tree:
        return symmetry.apply(params, symmetry.random(key, scale_spread=0.0))

    return jax.vmap(move)(jax.random.split(key, len(jax.tree.leaves(params)[0])), params)


def aligned(symmetry: Symmetry, source: Tree, target: Tree, *, num_sweeps: int) -> Tree:
    """The target moved close to the source: natural, and never farther from it than the target was.

    Sweeps go through the groups in the order of the network. In the first each is matched by those weights alone that
    belong to no later group, which is not matched yet.
    """
    num_groups = len(symmetry.groups)

    def sweep(i: Array, element: Element) -> Element:
        for g in range(num_groups):
            known = jnp.where(i == 0, jnp.asarray(np.arange(num_groups) < g), True).astype(float)
            element = _matched_group(symmetry, g, source, target, element=element, known=known)
        return element

    moved = symmetry.apply(target, jax.lax.fori_loop(0, num_sweeps, sweep, symmetry.identity()))
    closer = _squared_distance(source, moved) < _squared_distance(source, target)
    return jax.tree.map(lambda new, old: jnp.where(closer, new, old), moved, target)


def _matched_group(
    symmetry: Symmetry, group: int, source: Tree, target: Tree, *, element: Element, known: Float[Array, " group"]
) -> Element:
    """The element with the best permutation and signs for one group, all others held."""
    moved = moved_by_element(symmetry, element)
    units = unit_products(symmetry, group, target, source, moved=moved, known=known)
    pairs = pair_multipliers(symmetry.groups[group], units)
    order = cheapest(pairs.cost)
    chosen = jax.tree.map(lambda leaf: leaf[jnp.arange(len(order)), order], pairs)
    return replace_group(element, group, order, chosen)


def _squared_distance(source: Tree, target: Tree) -> Float[Array, ""]:
    terms = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), source, target)
    return jnp.sum(jnp.stack(jax.tree.leaves(terms)))
