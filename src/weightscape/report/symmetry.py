"""A symmetry in a table and a picture: which leaves hold the units of which groups."""

import numpy as np
from matplotlib.figure import Figure

from weightscape.report.numbers import counted
from weightscape.report.report import Table
from weightscape.report.style import GRID, MUTED, colour, shortened, styled
from weightscape.symmetry import Group, Symmetry

_ROLES = ("produces", "consumes", "produces and consumes", "joins")
_LEAF_INCHES = 0.34
_GROUP_INCHES = 1.5


def symmetry_table(title: str, symmetry: Symmetry) -> Table:
    """One row for each group."""
    rows = tuple(
        (group.name, str(group.size), ", ".join(group.kinds), str(len(group.members))) for group in symmetry.groups
    )
    return Table(title, ("group", "units", "what may be done to them", "places in the weights"), rows)


@styled
def plot_symmetry(symmetry: Symmetry) -> Figure:
    """Leaves against groups: coloured where units of the group lie, by what the weights do with the units."""
    paths, groups = [leaf.path for leaf in symmetry.leaves], symmetry.groups
    size = (3.2 + _GROUP_INCHES * max(1, len(groups)), 1.5 + _LEAF_INCHES * len(paths))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    for i, group in enumerate(groups):
        for path, roles in _roles(group).items():
            row = paths.index(path)
            axis.bar(i, 0.8, 0.92, row - 0.4, color=colour(_ROLES.index(roles[0])), alpha=0.85)
            axis.text(i, row, ", ".join(roles), ha="center", va="center", fontsize=8, color="white")
    labels = [f"{shortened(group.name, 18)}\n{counted(group.size, 'unit')}" for group in groups]
    axis.set_xticks(np.arange(len(groups)), labels)
    axis.set_yticks(np.arange(len(paths)), [shortened(path, 32) for path in paths])
    axis.set(xlim=(-0.55, max(1, len(groups)) - 0.45), ylim=(len(paths) - 0.45, -0.55), title="units and weights")
    axis.grid(visible=False)
    axis.hlines(np.arange(len(paths) - 1) + 0.5, -0.55, max(1, len(groups)) - 0.45, color=GRID, lw=0.8)
    if not groups:
        axis.text(0.0, (len(paths) - 1) / 2, "no groups", ha="center", va="center", color=MUTED)
    return figure


def _roles(group: Group) -> dict[str, list[str]]:
    """What weights do with the units, by the path of their leaf, each once."""
    found: dict[str, list[str]] = {}
    for member in group.members:
        roles = found.setdefault(member.path, [])
        if member.role not in roles:
            roles.append(member.role)
    return found
