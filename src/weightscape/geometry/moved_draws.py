"""Draws that are re-based as they are read, so that no second copy of them is ever made.

    stretch of draws from disk  →  each draw moved by its own element  →  sums over draws

`rebase` returns draws that are all in memory. What only passes through them, moments and principal directions, needs
the elements alone: one small integer for each hidden unit.
"""

from collections.abc import Iterator

import equinox as eqx
import jax

from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.geometry.rebase import rebase_elements
from weightscape.geometry.references import Centre, Reference
from weightscape.symmetry import Element, Symmetry, of_draws


class MovedDraws(eqx.Module):
    """`draws`, each after the one of `elements`, with leading axes (chain, draw), that is its own."""

    draws: Draws
    symmetry: Symmetry
    elements: Element

    def batches(self, num_draws: int) -> Iterator[Draws]:
        """Stretches of at most `num_draws` moved draws of every chain."""
        for i, part in enumerate(self.draws.batches(num_draws)):
            where = slice(i * num_draws, (i + 1) * num_draws)
            yield self.symmetry.apply(part, jax.tree.map(lambda leaf, where=where: leaf[:, where], self.elements))


Source = Draws | MovedDraws
"""Draws as they are, or after elements of a symmetry."""


def as_they_are(source: Source) -> Draws:
    """The draws before they are moved, for what does not depend on it: how many there are, of what model."""
    return source.draws if isinstance(source, MovedDraws) else source


def rebased_draws(draws: Draws, reference: Draws | Reference | Tree | None = None) -> MovedDraws:
    """The draws, to be moved close to the reference as they are read; None is `Centre()`."""
    symmetry = of_draws(draws)
    return MovedDraws(draws, symmetry, rebase_elements(draws, Centre() if reference is None else reference, symmetry))
