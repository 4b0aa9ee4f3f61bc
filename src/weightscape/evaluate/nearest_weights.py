"""How far the nearest training network is by weights, each compared in the form that is closest to it.

    d(θ) = min_{θ' among candidates} min_g ‖θ − g θ'‖,      θ and θ' of unit scales, g permutations and signs

`weight_features` bring all networks close to one reference, and two of them that are almost the same may be brought
there in different ways. That makes copies look far off, the more so the deeper networks are. Here every candidate is
matched to the network itself. Candidates are the training networks that features say are close: a copy is close by its
function, or by those weights that the reference has brought to the same place.
"""

import jax
import numpy as np
from jaxtyping import Float, Int

from weightscape.core.checks import require
from weightscape.core.types import Tree
from weightscape.draws import Draws
from weightscape.evaluate.memorisation import nearest_rows
from weightscape.evaluate.network_features import kept_symmetry, normalised_networks
from weightscape.geometry import WeightMatching

Features = Float[np.ndarray, "_ _"]


def copy_candidates(*compared: tuple[Features, Features], count: int = 4) -> Int[np.ndarray, "network candidate"]:
    """For each network the numbers of training networks that it may be a copy of.

    - `compared`: features of the networks and of the training networks, once for each way to compare them.
    - `count`: how many of the closest are taken from each.
    """
    return np.concatenate([nearest_rows(*pair, count) for pair in compared], axis=1)


def matched_distances(
    networks: Draws,
    train: Draws,
    rows: Int[np.ndarray, "network candidate"],
    *,
    chosen: Int[np.ndarray, " network"] | None = None,
) -> Float[np.ndarray, " network"]:
    """d of each network, or of some; each takes some hundredths of a second.

    - `rows`: numbers of training networks for each of them, from `copy_candidates`.
    - `chosen`: the numbers of the networks that are compared; None for all.
    """
    numbers = np.arange(len(networks)) if chosen is None else chosen
    asked, remedy = "`rows` of matched_distances must be as many as networks", "Choose them with `copy_candidates`."
    require(len(rows) == len(numbers), asked, f"{len(rows)} for {len(numbers)}", remedy)
    kept, ours, theirs = kept_symmetry(networks), normalised_networks(networks), normalised_networks(train)
    key = jax.random.key(0)  # of the order of groups; any does, and a fixed one repeats

    def nearest(number: int, several: Int[np.ndarray, " candidate"]) -> float:
        found = WeightMatching().match_many(key, kept, _at(theirs, several), _at(ours, number))
        return float(np.min(found.distance))

    return np.asarray([nearest(int(number), several) for number, several in zip(numbers, rows, strict=True)])


def _at(networks: Tree, rows: int | Int[np.ndarray, " candidate"]) -> Tree:
    return jax.tree.map(lambda leaf: leaf[rows], networks)
