"""Have the chains settled in weight space? R̂ and effective sample sizes of single weights, and their marginals.

Chains that found the same functions in another order of the hidden units disagree about every weight, so weight-space
R̂ says something only of re-based draws: compare `diagnose_weights(draws)` with `diagnose_weights(rebase(draws))`. What
is left after it is due to modes that no symmetry joins, to a matching that was not found, or to slow chains.

The numbers are those of `draws.diagnostics`, in the coordinates of positions.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from weightscape.core.checks import require, require_count, require_known, require_type
from weightscape.draws import Convergence, Draws
from weightscape.draws.diagnostics import measure_convergence
from weightscape.geometry.weight_moments import chosen_positions, header_of

_LEAST_DRAWS = 4
_GOOD_RHAT = 1.01


class LeafConvergence(NamedTuple):
    """R̂ and effective sample sizes of some weights of a leaf; `places` are theirs in the flattened leaf."""

    places: Int[np.ndarray, " weight"]
    convergence: Convergence


class WeightDiagnostics(NamedTuple):
    """How well the chains agree about single weights, by the path of their leaf."""

    by_leaf: dict[str, LeafConvergence]
    num_chains: int
    num_draws: int

    @property
    def rhat(self) -> Float[np.ndarray, " weight"]:
        """R̂ of all weights that were looked at, leaf by leaf; NaN for those that never change."""
        return np.concatenate([leaf.convergence.rhat for leaf in self.by_leaf.values()])

    @property
    def bulk_ess(self) -> Float[np.ndarray, " weight"]:
        """Bulk effective sample sizes of all weights that were looked at, leaf by leaf."""
        return np.concatenate([leaf.convergence.bulk_ess for leaf in self.by_leaf.values()])

    @property
    def share_settled(self) -> float:
        """The share of weights whose R̂ is below 1.01, those that never change left aside."""
        known = self.rhat[~np.isnan(self.rhat)]
        return float(np.mean(known < _GOOD_RHAT)) if known.size else float("nan")

    def __str__(self) -> str:
        rows = [("leaf", "weights", "median R̂", "worst R̂", "least ESS")]
        rows += [_row(path, *leaf) for path, leaf in self.by_leaf.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([*lines, f"{self.share_settled:.0%} of the weights have R̂ below {_GOOD_RHAT}"])


def diagnose_weights(draws: Draws, *, max_weights: int = 256) -> WeightDiagnostics:
    """R̂ and effective sample sizes of the weights, at most `max_weights` of each leaf, evenly spaced.

    - `draws`: chains in time, at least four draws of each and all weighing the same.
    """
    require_count("`max_weights` of diagnose_weights", max_weights)
    _require_chains(draws)
    layout = header_of(draws).layout()
    places = {
        path: np.unique(np.linspace(0, size - 1, min(size, max_weights)).round().astype(int))
        for path, size in zip(layout.paths, layout.sizes, strict=True)
        if size
    }
    values = chosen_positions(draws, np.concatenate([layout.places(path).start + places[path] for path in places]))
    parts = np.split(values, np.cumsum([len(where) for where in places.values()])[:-1], axis=2)
    by_leaf = {
        path: LeafConvergence(where, measure_convergence(part))
        for (path, where), part in zip(places.items(), parts, strict=True)
    }
    return WeightDiagnostics(by_leaf, draws.num_chains, draws.num_draws)


def marginals(draws: Draws, chosen: Mapping[str, Sequence[int]]) -> dict[str, Float[np.ndarray, "chain draw"]]:
    """The values of chosen weights in all draws, by names such as `network/layer0/weight[3]`.

    - `chosen`: places in the flattened leaf, by its path.
    """
    layout, flat = header_of(draws).layout(), {}
    for path, places in chosen.items():
        require_known("A leaf of marginals", path, layout.paths)
        within = layout.places(path)
        for place in places:
            last = within.stop - within.start - 1
            require(0 <= place <= last, f"A place in {path} must be from 0 to {last}", place, "Pass another place.")
            flat[f"{path}[{place}]"] = within.start + place
    values = chosen_positions(draws, np.array(list(flat.values()), int))
    return {name: values[:, :, i] for i, name in enumerate(flat)}


def _require_chains(draws: Draws) -> None:
    remedy = "Pass what `run` of a sampler returns, or `rebase` of it."
    require_type(isinstance(draws, Draws), "`draws` of diagnose_weights must be Draws", type(draws).__name__, remedy)
    remedy = "R̂ does not apply to weighted draws; look at the effective sample size of their weights."
    asked = "`draws` of diagnose_weights must weigh the same"
    require(draws.log_weights is None, asked, "draws with `log_weights`", remedy)
    asked = f"`draws` of diagnose_weights must have at least {_LEAST_DRAWS} draws of each chain"
    require(draws.num_draws >= _LEAST_DRAWS, asked, draws.num_draws, "Points are not chains in time; use a sampler.")


def _row(path: str, places: np.ndarray, found: Convergence) -> tuple[str, ...]:
    known = found.rhat[~np.isnan(found.rhat)]
    middle, worst = (f"{np.median(known):.3f}", f"{known.max():.3f}") if known.size else ("–", "–")
    return path, str(len(places)), middle, worst, f"{found.bulk_ess.min():.0f}"
