"""The group of changes to the weights that leave a network's function unchanged.

    f(x; g θ) = f(x; θ)      for every element g, all weights θ and all inputs x

It is a product over groups of units. In each, units are permuted and, where the network allows it, rescaled or flipped:
a layer of n tanh units has n!·2ⁿ equivalent copies.
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core.checks import require
from weightscape.core.keys import require_key
from weightscape.core.layout import Layout
from weightscape.core.types import PRNGKey, Tree
from weightscape.draws import Draws
from weightscape.symmetry.action import act
from weightscape.symmetry.element import Element
from weightscape.symmetry.group import Group, LeafFactors
from weightscape.symmetry.order import log_signs
from weightscape.symmetry.table import table


class Symmetry(eqx.Module):
    """Groups of units and how they act on a tree of weights; made by `discover`.

    - `groups`: in the order in which the network makes their units.
    - `leaves`: how the axes of each leaf factor, in the order of the tree.
    - `layout`: paths and shapes of the tree that elements act on.
    - `lost`: for operations that are not understood, which leaves lost symmetry there.

    It holds no arrays: a jitted function may close over it or take it as an argument, and it costs no memory.
    """

    groups: tuple[Group, ...] = eqx.field(static=True)
    leaves: tuple[LeafFactors, ...] = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    lost: tuple[tuple[str, tuple[str, ...]], ...] = eqx.field(static=True, default=())

    @property
    def log_order(self) -> float:
        """log of the number of equivalent copies of a network: the order of the discrete part."""
        return sum(group.log_permutations for group in self.groups) + log_signs(self.groups)

    @property
    def num_scales(self) -> int:
        """How many positive numbers an element may choose freely."""
        return sum(group.size * group.num_scalings for group in self.groups)

    @eqx.filter_jit
    def identity(self) -> Element:
        """The element that changes nothing."""
        return self._element(
            lambda g: jnp.arange(self.groups[g].size),
            lambda g, shape: jnp.ones(shape, int),
            lambda g, shape: jnp.zeros(shape),
        )

    @eqx.filter_jit
    def random(self, key: PRNGKey, *, scale_spread: float = 1.0) -> Element:
        """An element whose permutations and signs are uniform, and whose log scales are N(0, scale_spread²)."""
        require_key(key, "random")
        key_order, key_sign, key_scale = jax.random.split(key, 3)
        return self._element(
            lambda g: jax.random.permutation(jax.random.fold_in(key_order, g), self.groups[g].size),
            lambda g, shape: 2 * jax.random.bernoulli(jax.random.fold_in(key_sign, g), 0.5, shape).astype(int) - 1,
            lambda g, shape: scale_spread * jax.random.normal(jax.random.fold_in(key_scale, g), shape),
        )

    @eqx.filter_jit
    def compose(self, second: Element, first: Element) -> Element:
        """The element that acts as `first` and then `second`."""
        pairs = list(zip(second.permutations, first.permutations, strict=True))
        carried = lambda later, earlier: tuple(combine[..., p] for combine, (p, _) in zip(earlier, pairs, strict=True))
        signs = zip(second.signs, carried(second.signs, first.signs), strict=True)
        scales = zip(second.log_scales, carried(second.log_scales, first.log_scales), strict=True)
        return Element(
            tuple(earlier[later] for later, earlier in pairs),
            tuple(later * earlier for later, earlier in signs),
            tuple(later + earlier for later, earlier in scales),
        )

    @eqx.filter_jit
    def invert(self, element: Element) -> Element:
        """The element that undoes `element`."""
        inverses = tuple(jnp.argsort(permutation) for permutation in element.permutations)
        return Element(
            inverses,
            tuple(signs[..., i] for signs, i in zip(element.signs, inverses, strict=True)),
            tuple(-scales[..., i] for scales, i in zip(element.log_scales, inverses, strict=True)),
        )

    def apply(self, params: Tree, element: Element) -> Tree:
        """The weights after the element: an equivalent network.

        - `params`: a tree of this symmetry's layout, or Draws.
        - `element`: one element; for Draws it may have leading axes (chain, draw), one element for each.
        """
        if isinstance(params, Draws):
            return self._apply_to_draws(params, element)
        self.require_layout(params)
        return self._apply(params, element)

    def without_scaling(self) -> "Symmetry":
        """The same symmetry with permutations and signs only."""
        return self._with_members(lambda member: dataclasses.replace(member, scale_exponents=()))

    def without_signs(self) -> "Symmetry":
        """The same symmetry with permutations and scalings only."""
        return self._with_members(lambda member: dataclasses.replace(member, sign_exponents=()))

    def __str__(self) -> str:
        lost = [f"no symmetry through {name}: {', '.join(paths)}" for name, paths in self.lost]
        scales = f"; {self.num_scales} free scales" if self.num_scales else ""
        order = f"log of the number of equivalent copies: {self.log_order:.1f}{scales}"
        return "\n".join([*table(self.groups, self.leaves), *lost, order])

    @eqx.filter_jit
    def _apply(self, params: Tree, element: Element) -> Tree:
        pairs = zip(self.leaves, jax.tree.leaves(params), strict=True)
        moved = [act(self.groups, factors, jnp.asarray(leaf), element) for factors, leaf in pairs]
        return jax.tree.unflatten(self.layout.structure, moved)

    def _element(self, order: Callable, sign: Callable, log_scale: Callable) -> Element:
        numbers = range(len(self.groups))
        signs = [(self.groups[g].num_signs, self.groups[g].size) for g in numbers]
        scales = [(self.groups[g].num_scalings, self.groups[g].size) for g in numbers]
        return Element(
            tuple(order(g) for g in numbers),
            tuple(sign(g, signs[g]) for g in numbers),
            tuple(log_scale(g, scales[g]) for g in numbers),
        )

    def _apply_to_draws(self, draws: Draws, element: Element) -> Draws:
        """Each draw moved; the density of draws is unchanged where the prior shares the symmetry."""
        whole = self.layout.structure == jax.tree.structure(draws.params)
        tree = draws.params if whole else draws.params.network
        batched = bool(element.permutations) and element.permutations[0].ndim == 3
        moved = _apply_to_many(self, jax.tree.map(jnp.asarray, tree), element, batched)
        return eqx.tree_at(lambda d: d.params if whole else d.params.network, draws, moved)

    def require_layout(self, params: Tree) -> None:
        """Raise unless the tree has the structure and the shapes that elements act on."""
        came = tuple(tuple(jnp.shape(leaf)) for leaf in jax.tree.leaves(params))
        asked = f"Weights that a Symmetry acts on must have the shapes {self.layout.shapes}"
        same = jax.tree.structure(params) == self.layout.structure and came == self.layout.shapes
        require(same, asked, came, "Discover the symmetry of this network, or vmap over leading axes.")

    def _with_members(self, change: Callable) -> "Symmetry":
        groups = tuple(dataclasses.replace(group, members=tuple(map(change, group.members))) for group in self.groups)
        return dataclasses.replace(self, groups=groups)


@eqx.filter_jit
def _apply_to_many(symmetry: Symmetry, tree: Tree, element: Element, batched: bool) -> Tree:
    axes = (0, 0 if batched else None)
    return jax.vmap(jax.vmap(symmetry.apply, in_axes=axes), in_axes=axes)(tree, element)
