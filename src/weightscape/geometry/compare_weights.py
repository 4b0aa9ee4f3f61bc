"""Posteriors of several methods compared weight by weight, once all are re-based onto one network.

    KL_j = ½ (s_j²/b_j² + (θ̄_j − β_j)²/b_j² − 1 − log s_j²/b_j²)

is the divergence in nats of a method's Gaussian over weight j, N(θ̄_j, s_j²), from that of the base, N(β_j, b_j²). Its
sum over weights is KL(q ‖ q_base) of the two diagonal Gaussians. Without a common reference it would say in which
order the hidden units came, and nothing else.

Reference: Xiao, Liu & Bamler (2023), section 3.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from weightscape.core.checks import InputError, require, require_known
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.geometry.lone_network import network_at
from weightscape.geometry.merge import merge
from weightscape.geometry.moved_draws import rebased_draws
from weightscape.geometry.rebase import rebase_elements
from weightscape.geometry.weight_moments import Moments, moments
from weightscape.inference import Gaussian
from weightscape.symmetry import of_draws


class WeightComparison(NamedTuple):
    """What each method says of each weight, and how far that is from the base.

    - `found`: mean and variance of each weight by method, all re-based onto one network.
    - `divergence`: KL_j in nats by method, flat in the order of `layout`; zero for the base.
    """

    base: str
    found: dict[str, Moments]
    divergence: dict[str, Float[np.ndarray, " weight"]]
    layout: Layout

    def by_leaf(self, name: str) -> dict[str, Float[np.ndarray, "..."]]:
        """KL_j of a method by leaf, each in the leaf's shape."""
        return self.found[name].by_leaf(self.divergence[name])

    def totals(self, name: str) -> dict[str, float]:
        """Σ_j KL_j over each leaf, and over all weights."""
        parts = {path: float(part.sum()) for path, part in self.by_leaf(name).items()}
        return {**parts, "all": float(self.divergence[name].sum())}

    def __str__(self) -> str:
        names = [name for name in self.found if name != self.base]
        sizes = dict(zip((*self.layout.paths, "all"), (*self.layout.sizes, self.layout.size), strict=True))
        totals = {name: self.totals(name) for name in names}
        rows = [("KL in nats", "weights", *names)]
        rows += [(path, str(size), *(f"{totals[name][path]:.4g}" for name in names)) for path, size in sizes.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        cells = lambda row: [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        return "\n".join([*("  ".join(cells(row)) for row in rows), f"each of the columns to {self.base}"])


def compare_weights(
    by_name: Mapping[str, Draws | Gaussian],
    base: str,
    *,
    reference: Draws | Tree | None = None,
    floor: float | None = None,
) -> WeightComparison:
    """The divergence of each method's posterior from that of `base`, weight by weight.

    - `by_name`: draws, of which each is re-based, or Gaussians, which are moved as a whole by what re-bases their mean.
    - `reference`: one network, as in `rebase`; None is the base's own mean.
    - `floor`: the least standard deviation of a weight; without it a weight that does not vary is an error.

    Example:
    >>> print(compare_weights({"HMC": draws, "VI": gaussian}, base="HMC"))        # doctest: +SKIP
    """
    require_known("`base` of compare_weights", base, by_name)
    chosen = _mean_network(by_name[base]) if reference is None else reference
    found = {name: _with_floor(name, _rebased_moments(result, chosen), floor) for name, result in by_name.items()}
    layout = found[base].layout
    same = all(one.layout == layout for one in found.values())
    require(same, "Compared posteriors must be of one model", "models of different weights", "Use the same network.")
    return WeightComparison(base, found, {name: divergence(one, found[base]) for name, one in found.items()}, layout)


def divergence(of: Moments, to: Moments) -> Float[np.ndarray, " weight"]:
    """KL_j of each weight in nats, both taken as Gaussian."""
    ratio = of.variance / to.variance
    return 0.5 * (ratio + (of.mean - to.mean) ** 2 / to.variance - 1 - np.log(ratio))


def _mean_network(result: Draws | Gaussian) -> Draws:
    return (
        network_at(result.header, result.mean, Facts(method="mean")) if isinstance(result, Gaussian) else merge(result)
    )


def _rebased_moments(result: Draws | Gaussian, reference: Draws | Tree) -> Moments:
    return _moved(result, reference) if isinstance(result, Gaussian) else moments(rebased_draws(result, reference))


def _moved(gaussian: Gaussian, reference: Draws | Tree) -> Moments:
    """Moments of the Gaussian after the one element that re-bases its mean, a permutation with signs."""
    found, lone = moments(gaussian), _mean_network(gaussian)
    symmetry = of_draws(lone).without_scaling()
    element = jax.tree.map(lambda leaf: leaf[0, 0], rebase_elements(lone, reference, symmetry))

    def move(vector: Float[np.ndarray, " weight"]) -> Float[np.ndarray, " weight"]:
        position = found.layout.unflatten(jnp.asarray(vector, found.layout.dtype))
        return np.asarray(found.layout.flatten(symmetry.apply(position, element)), np.float64)

    return found._replace(mean=move(found.mean), variance=move(found.standard_deviation) ** 2)


def _with_floor(name: str, found: Moments, floor: float | None) -> Moments:
    if floor is not None:
        return found._replace(variance=np.maximum(found.variance, floor**2))
    still = [path for path, part in found.by_leaf(np.asarray(found.is_constant, float)).items() if np.any(part)]
    if still:
        raise InputError(
            f"Every weight of {name} must vary, got weights that do not in {', '.join(still)}. "
            "Pass `floor`, or draws in which every weight varies."
        )
    return found
