"""Symmetries of networks: the changes to the weights that leave the function unchanged."""

from weightscape.symmetry.discover import discover, of_draws, of_function, symmetry_of
from weightscape.symmetry.element import Element
from weightscape.symmetry.group import Group, LeafFactors, Member
from weightscape.symmetry.symmetry import Symmetry

__all__ = [
    "Element",
    "Group",
    "LeafFactors",
    "Member",
    "Symmetry",
    "discover",
    "of_draws",
    "of_function",
    "symmetry_of",
]
