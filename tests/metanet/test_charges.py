"""Charges: closure and products against enumeration."""

import itertools

import numpy as np
import pytest

from weightscape.metanet.charges import closure, factor_pairs, multiply, swapped

SETS = [((), 1), (((1,),), 1), (((1, 1),), 2), (((1, 0), (2, 3)), 2), (((1, 2, 0), (3, 0, 1), (1, 2, 0)), 3)]


@pytest.mark.parametrize(("charges", "rank"), SETS)
def test_slots_are_all_products(charges, rank):
    products = set()
    for size in range(len(charges) + 1):
        for chosen in itertools.combinations(charges, size):
            total = (0,) * rank
            for each in chosen:
                total = tuple(a ^ b for a, b in zip(total, each, strict=True))
            products.add(total)
    slots = closure(charges, rank)
    assert set(slots) == products
    assert slots[0] == (0,) * rank


@pytest.mark.parametrize(("charges", "rank"), SETS)
def test_pairs_of_slots_lead_where_signs_say(charges, rank):
    slots = closure(charges, rank)
    flips = np.random.default_rng(0).choice([-1, 1], size=(rank, 2))
    sign = lambda slot: np.prod([flips[i, k] for i in range(rank) for k in range(2) if slot[i] >> k & 1])
    for slot, pairs in zip(slots, factor_pairs(slots), strict=True):
        assert len(pairs) == len(slots)
        for a, b in pairs:
            assert multiply(slots[a], slots[b]) == slot
            assert sign(slots[a]) * sign(slots[b]) == sign(slot)


def test_exchange_of_two_units():
    assert swapped((1, 2, 3), 0, 2) == (3, 2, 1)
