"""Weights as features of units: what is fixed becomes channels, what may be permuted becomes grid axes.

    tree  ⇄  one array (unit of group g, unit of group h, …, channel) for each place

A place is a tuple of groups: () for weights that belong to no unit, (g,) for those of the units of one group, (g, h)
for those between units of two, and so on. The weights of a leaf along factors that no group moves are its channels
there: a matrix from inputs to units gives each unit as many channels as there are inputs, a 3 × 3 kernel gives each
pair of units nine, and four gates side by side are four channels.

Channels of a place that change sign in different ways when units do are kept apart, as different *charges*: for each of
its groups the set of the sign generators that flip them, as the bits of an integer. 0 means that no sign changes them.
"""

import dataclasses
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.types import Tree
from weightscape.symmetry import LeafFactors, Symmetry


@dataclasses.dataclass(frozen=True)
class Cell:
    """A part of a leaf: some positions along each of its factors.

    - `leaf`: the number of the leaf.  `positions`: along each factor.
    - `axes`: the factors along which units lie, in the order of the place's groups; the others are channels.
    """

    leaf: int
    positions: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The factors, those of units first."""
        return (*self.axes, *(i for i in range(len(self.positions)) if i not in self.axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the cell along the factors, those of units first."""
        return tuple(len(self.positions[i]) for i in self.order)

    @property
    def num_channels(self) -> int:
        """How many weights it has for each unit, or tuple of units."""
        return math.prod(self.shape[len(self.axes) :])


@dataclasses.dataclass(frozen=True)
class Place:
    """Weights that belong to units of the same groups and change sign alike.

    - `groups`: their numbers, in order.  `sizes`: how many units each has.
    - `charges`: for each group, the sign generators that flip the weights, as bits.
    - `cells`: where the weights lie; their channels follow each other.
    """

    groups: tuple[int, ...]
    sizes: tuple[int, ...]
    charges: tuple[int, ...]
    cells: tuple[Cell, ...]

    @property
    def num_channels(self) -> int:
        """How many weights there are for each unit, or tuple of units."""
        return sum(cell.num_channels for cell in self.cells)

    @property
    def is_charged(self) -> bool:
        """Whether some sign changes the weights."""
        return any(self.charges)


class Features(eqx.Module):
    """How the trees of a Symmetry are cut into places; exactly invertible.

    It holds no arrays.

    Example:
    >>> from weightscape import networks, symmetry
    >>> x = jnp.ones((5, 2))
    >>> network = networks.MLP(hidden=(4, 3), outputs=1)
    >>> params = network.init(jax.random.key(0), x)
    >>> features = Features(symmetry.discover(network, params, x))
    >>> [(place.groups, part.shape) for place, part in zip(features.places, features.split(params))]
    [((), (1,)), ((0,), (4, 3)), ((0, 1), (4, 3, 1)), ((1,), (3, 2))]
    """

    symmetry: Symmetry
    places: tuple[Place, ...] = eqx.field(static=True)

    def __init__(self, symmetry: Symmetry):
        self.symmetry = symmetry
        self.places = _places(symmetry)

    def split(self, params: Tree) -> tuple[Float[Array, "..."], ...]:
        """The weights of each place: (unit of each group …, channel)."""
        self.symmetry.require_layout(params)
        leaves = [
            jnp.asarray(leaf).reshape(factors.sizes)
            for leaf, factors in zip(jax.tree.leaves(params), self.symmetry.leaves, strict=True)
        ]
        return tuple(_gather(place, leaves) for place in self.places)

    def join(self, parts: tuple[Float[Array, "..."], ...]) -> Tree:
        """The tree whose places hold the given weights: the inverse of `split`."""
        pieces = _pieces(self.places, parts)
        layout = self.symmetry.layout
        leaves = [
            _assemble(pieces[i], factors.sizes).reshape(shape)
            for i, (factors, shape) in enumerate(zip(self.symmetry.leaves, layout.shapes, strict=True))
        ]
        return jax.tree.unflatten(layout.structure, leaves)


def _places(symmetry: Symmetry) -> tuple[Place, ...]:
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Cell]] = {}
    for number, factors in enumerate(symmetry.leaves):
        for groups, charges, cell in _cells(symmetry, number, factors):
            found.setdefault((groups, charges), []).append(cell)
    sizes = lambda groups: tuple(symmetry.groups[g].size for g in groups)
    return tuple(
        Place(groups, sizes(groups), charges, tuple(found[groups, charges])) for groups, charges in sorted(found)
    )


def _cells(symmetry: Symmetry, number: int, factors: LeafFactors):
    """(groups, charges, cell) for every choice of a stretch of units, or of what is fixed, along each factor."""
    stretches = [_stretches(symmetry, size, along) for size, along in zip(factors.sizes, factors.members, strict=True)]
    for chosen in itertools.product(*stretches):
        free = [(place, axis) for axis, (_, place) in enumerate(chosen) if place is not None]
        free.sort(key=lambda entry: (entry[0][0], entry[1]))
        groups = tuple(g for (g, _), _ in free)
        charges = tuple(charge_of(symmetry.groups[g].members[m].sign_exponents) for (g, m), _ in free)
        yield (
            groups,
            charges,
            Cell(number, tuple(positions for positions, _ in chosen), tuple(axis for _, axis in free)),
        )


def _stretches(symmetry: Symmetry, size: int, along: tuple[tuple[int, int], ...]):
    """The positions of each member along a factor, and those that belong to none."""
    stretches = [(symmetry.groups[g].members[m].positions, (g, m)) for g, m in along]
    taken = {position for positions, _ in stretches for position in positions}
    rest = tuple(position for position in range(size) if position not in taken)
    return [*stretches, (rest, None)] if rest else stretches


def charge_of(sign_exponents: tuple[int, ...]) -> int:
    """The sign generators of odd exponent, as bits."""
    return sum((exponent % 2) << k for k, exponent in enumerate(sign_exponents))


def _gather(place: Place, leaves: list[Array]) -> Float[Array, "..."]:
    parts = []
    for cell in place.cells:
        part = leaves[cell.leaf]
        for axis, positions in enumerate(cell.positions):
            if positions != tuple(range(part.shape[axis])):
                part = jnp.take(part, np.asarray(positions), axis=axis)
        parts.append(part.transpose(cell.order).reshape(*place.sizes, cell.num_channels))
    return jnp.concatenate(parts, axis=-1)


def _pieces(places: tuple[Place, ...], parts: tuple[Array, ...]) -> dict[int, list[tuple[Cell, Array]]]:
    """The cells of each leaf, by its number, with their weights in the order of the leaf's factors."""
    pieces: dict[int, list[tuple[Cell, Array]]] = {}
    for place, part in zip(places, parts, strict=True):
        starts = np.cumsum([cell.num_channels for cell in place.cells])[:-1].tolist()
        for cell, piece in zip(place.cells, jnp.split(part, starts, axis=-1), strict=True):
            ordered = piece.reshape(cell.shape).transpose(np.argsort(cell.order).tolist())
            pieces.setdefault(cell.leaf, []).append((cell, ordered))
    return pieces


def _assemble(pieces: list[tuple[Cell, Array]], sizes: tuple[int, ...]) -> Array:
    """A leaf from its cells, by one look-up: a scatter is slower."""
    if len(pieces) == 1:
        return _in_order(*pieces[0])
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    sources = np.concatenate([numbers[np.ix_(*cell.positions)].reshape(-1) for cell, _ in pieces])
    values = jnp.concatenate([piece.reshape(-1) for _, piece in pieces])
    return values[np.argsort(sources)]


def _in_order(cell: Cell, piece: Array) -> Array:
    """The only cell of a leaf: its positions may come in another order than along the leaf."""
    for axis, positions in enumerate(cell.positions):
        if positions != tuple(range(len(positions))):
            piece = jnp.take(piece, np.argsort(positions), axis=axis)
    return piece
