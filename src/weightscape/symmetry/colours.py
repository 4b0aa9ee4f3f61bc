"""Colours of units: units that the program treats alike have the same colour.

Units in the same cuts start with the same colour. Then each colour is refined by the colours of the units that lie in
the same places, join by join, until no colour changes (Weisfeiler & Leman 1968). A permutation that keeps colours
commutes with every join.
"""

import numpy as np

from weightscape.symmetry.ledger import Ledger


def colours_of(ledger: Ledger) -> np.ndarray:
    """The colour of every unit, as a number."""
    colours = _by_cuts(ledger)
    if not ledger.joins:
        return colours
    left, right = (np.concatenate([join[side] for join in ledger.joins]) for side in (0, 1))
    number = np.repeat(np.arange(len(ledger.joins)), [len(join[0]) for join in ledger.joins])
    num_colours = 0
    while (found := int(colours.max()) + 1) > num_colours:
        num_colours = found
        colours = _refined(colours, left, right, number)
    return colours


def _by_cuts(ledger: Ledger) -> np.ndarray:
    colours = np.zeros(ledger.num_units, int)
    for cut in ledger.cuts:
        inside = np.zeros(ledger.num_units, int)
        inside[cut] = 1
        colours = np.unique(2 * colours + inside, return_inverse=True)[1]
    return colours


def _refined(colours: np.ndarray, left: np.ndarray, right: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Colours told apart by those of their neighbours in each join."""
    seen = np.zeros(len(colours), np.uint64)
    # A sum of hashes does not depend on the order of a unit's neighbours.
    np.add.at(seen, left, _hash(2 * number, colours[right]))
    np.add.at(seen, right, _hash(2 * number + 1, colours[left]))
    return np.unique(np.stack([colours.astype(np.uint64), seen]), axis=1, return_inverse=True)[1].ravel()


def _hash(label: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """A 64-bit number for each pair (splitmix64)."""
    mixed = (label.astype(np.uint64) << np.uint64(32)) + colour.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
