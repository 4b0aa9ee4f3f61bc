"""Whether a generator makes networks of its own, or hands out those that it was shown.

    d(θ) = min_{θ' in train} ‖φ(θ) − φ(θ')‖,       ratio = median d(generated) / median d(held out)

    U = Σ_ij 1[d(generated_i) > d(held out_j)] + ½ 1[=],      Z_U = (U − mn/2) / √(mn (m + n + 1) / 12)

for m generated and n held-out networks. φ is what networks are compared by: their probabilities at some inputs, or
their weights (`network_features`). Where both come from the same distribution the ratio is near 1 and Z_U is standard
normal. Z_U far below 0 says that generated networks lie closer to the training ones than fresh networks do: copies. Far
above 0 they lie farther off: what was generated is no network of the population. Held-out networks must come from other
runs, or they are copies themselves.

Z_U is standard normal only where networks are independent: pass one iterate of each held-out run. With k iterates of
each run that hardly differ, n in all, its variance is k (m + n/k + 1) / (m + n + 1), which tends to k for large m.
Networks that hardly say anything lie in the middle of all and look like copies in function space: read it beside their
accuracy, and beside the audit of weights.

Reference: Meehan, Chaudhuri and Dasgupta (2020), A non-parametric test to detect data-copying in generative models,
section 3.2, with one cell.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from weightscape.core.checks import require, require_finite, shape_of

_AT_ONCE = 512
Features = Float[np.ndarray, "_ feature"]


class Memorisation(NamedTuple):
    """Distances to the nearest training network.

    - `generated`, `held_out`: their medians.  `ratio`: the first over the second; copies have 0.
    - `z_u`: Z_U; below −3, say, the generator copies, if each held-out network is of a run of its own.
    """

    generated: float
    held_out: float
    ratio: float
    z_u: float


def memorisation(generated: Features, train: Features, held_out: Features) -> Memorisation:
    """The audit of generated networks; all are given by the same features.

    - `held_out`: one network of each of several other runs; more of a run make Z_U wider than a standard normal.
    """
    require_finite("Features of generated networks", generated)
    require_finite("Features of held-out networks", held_out)
    return audit(nearest_distances(generated, train), nearest_distances(held_out, train))


def audit(generated: Float[np.ndarray, " network"], held_out: Float[np.ndarray, " other"]) -> Memorisation:
    """The same from distances to the nearest training network: those of held-out networks are needed only once."""
    certain = z_u(generated, held_out)  # first, since it refuses distances whose medians mean nothing
    ours, theirs = float(np.median(generated)), float(np.median(held_out))
    asked = "Held-out networks of an audit must differ from those of training"
    require(theirs > 0, asked, "a median distance of 0", "Hold out whole runs, and compare by more features.")
    return Memorisation(ours, theirs, ours / theirs, certain)


def nearest_distances(
    networks: Float[np.ndarray, "network _"], train: Float[np.ndarray, "other _"]
) -> Float[np.ndarray, " network"]:
    """The Euclidean distance of each network to the training network that is closest to it."""
    asked, remedy = "Networks that are compared must have the same features", "Compute both in the same way."
    require(networks.shape[1:] == train.shape[1:], asked, f"{shape_of(networks)} and {shape_of(train)}", remedy)
    chosen = nearest_rows(networks, train, 1)[:, 0]
    differences = np.asarray(networks, np.float64) - np.asarray(train[chosen], np.float64)
    return np.linalg.norm(differences, axis=1)


def nearest_rows(
    networks: Float[np.ndarray, "network _"], train: Float[np.ndarray, "other _"], count: int
) -> Int[np.ndarray, "network nearest"]:
    """The numbers of the training networks that are closest to each network, the closest first."""
    # Their mean is taken off all, and one entry that is no number would make each distance one.
    require_finite("Features of training networks", train)
    centre = np.mean(train, axis=0, dtype=np.float64).astype(train.dtype)
    known = train - centre
    starts = range(0, len(networks), _AT_ONCE)
    return np.concatenate([_nearest(networks[start : start + _AT_ONCE] - centre, known, count) for start in starts])


def z_u(generated: Float[np.ndarray, " network"], held_out: Float[np.ndarray, " other"]) -> float:
    """Z_U of two samples of independent distances; ties count half, and lower the variance as usual."""
    require_finite("Distances of generated networks", generated)
    require_finite("Distances of held-out networks", held_out)
    m, n = len(generated), len(held_out)
    ranks = stats.rankdata(np.concatenate([generated, held_out]))
    larger = np.sum(ranks[:m]) - m * (m + 1) / 2
    _, counts = np.unique(ranks, return_counts=True)
    tied = np.sum(counts**3.0 - counts) / ((m + n) * (m + n - 1))
    variance = m * n / 12 * (m + n + 1 - tied)
    return float((larger - m * n / 2) / np.sqrt(variance)) if variance > 0 else 0.0


def _nearest(networks: Features, train: Features, count: int) -> Int[np.ndarray, "_ nearest"]:
    """The same for a few networks, in the precision of the features; how far off they are comes from differences."""
    squares = np.sum(train**2, axis=1)[None] - 2 * networks @ train.T
    few = np.argpartition(squares, min(count, len(train)) - 1, axis=1)[:, :count]
    return np.take_along_axis(few, np.argsort(np.take_along_axis(squares, few, axis=1), axis=1), axis=1)
