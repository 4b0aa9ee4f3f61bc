"""`weightscape symmetry`: which changes to the weights leave the run's network as it is, and its prior too."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from weightscape.cli.opened_run import open_run
from weightscape.cli.options import OutFolder, Quiet, RunFolder
from weightscape.cli.result_folder import result_folder, write_result
from weightscape.cli.screen import Screen
from weightscape.draws import Draws
from weightscape.geometry.weight_moments import header_of
from weightscape.report import Picture, Report, plot_symmetry, symmetry_table
from weightscape.report.describe import described
from weightscape.symmetry import Group, Symmetry, discover, of_draws


def symmetry(run: RunFolder, out: OutFolder = None, quiet: Quiet = False) -> None:
    """Find the symmetry of a run's network, and the part of it that the prior shares.

    Example: weightscape symmetry runs/houses
    """
    screen, folder = Screen(quiet), result_folder(out, run, "symmetry")
    opened = open_run(run)
    of_network, shared = symmetry_of_network(opened.draws), of_draws(opened.draws)
    screen.say(f"The network:\n{of_network}\n\nThe network with its prior:\n{shared}\n")
    report = _report(opened.record.name, of_network, shared, opened.draws)
    result = {"run": str(run), "network": as_json(of_network), "with_prior": as_json(shared)}
    page = write_result(folder, "symmetry", result, report)
    screen.say(f"{report.summary} The report:")
    screen.path(page)


def symmetry_of_network(draws: Draws) -> Symmetry:
    """The symmetry of the function alone; elements act on the network's own weights."""
    weights = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), draws.params.network)
    return discover(draws.model.network, weights, header_of(draws).standardised_example())


def as_json(symmetry: Symmetry) -> dict[str, Any]:
    """A symmetry as plain data."""
    return {
        "groups": [_group_as_json(group) for group in symmetry.groups],
        "leaves": [{"path": leaf.path, "factors": list(leaf.sizes)} for leaf in symmetry.leaves],
        "log_order": symmetry.log_order,
        "num_scales": symmetry.num_scales,
        "lost": [{"operation": name, "leaves": list(paths)} for name, paths in symmetry.lost],
    }


def _group_as_json(group: Group) -> dict[str, Any]:
    members = [
        {
            "path": member.path,
            "factor": member.factor,
            "positions": list(member.positions),
            "role": member.role,
            "scale_exponents": list(member.scale_exponents),
            "sign_exponents": list(member.sign_exponents),
        }
        for member in group.members
    ]
    return {"name": group.name, "size": group.size, "kinds": list(group.kinds), "members": members}


def _report(name: str, of_network: Symmetry, shared: Symmetry, draws: Draws) -> Report:
    tables = (
        symmetry_table("Of the network", of_network),
        symmetry_table("Of the network with its prior", shared),
    )
    caption = (
        "Each column is a group of units that may change places; each row a leaf of the weights. Coloured leaves hold "
        "weights of the units, and move with them."
    )
    picture = Picture("symmetry", "Units and weights", caption, plot_symmetry(of_network))
    settings = {"network": described(draws.model.network), "prior of the weights": described(draws.model.prior)}
    return Report(f"Symmetry of {name}", _finding(of_network, shared), tables, (picture,), settings)


def _finding(of_network: Symmetry, shared: Symmetry) -> str:
    if not of_network.groups:
        return "No units of this network are interchangeable: it is the only copy of its function that is known."
    copies = f"Every network has about 10^{of_network.log_order / math.log(10):.1f} equivalent copies"
    same = math.isclose(of_network.log_order, shared.log_order)
    density = ", all of the same density" if same else f"; the prior shares 10^{shared.log_order / math.log(10):.1f}"
    lost = of_network.num_scales - shared.num_scales
    scales = f" Its units may be rescaled by {of_network.num_scales} free numbers" if of_network.num_scales else ""
    kept = ", which the prior tells apart." if lost else ", which the prior does not see."
    return f"{copies}{density}.{scales}{kept if scales else ''}"
