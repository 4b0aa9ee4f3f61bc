"""Diversity and averages of networks, against loops over pairs."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from weightscape.core import InputError
from weightscape.evaluate import averaging_curve, error_overlap, jensen_shannon


def networks(count=5, num_points=7):
    logits = 2 * np.random.default_rng(0).normal(size=(count, num_points, 3))
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    p[0, 0], y = [1.0, 0.0, 0.0], np.random.default_rng(1).integers(0, 3, num_points)
    y[0] = 0
    return p, y


def test_jensen_shannon_is_the_mean_of_scipys_over_pairs():
    p, _ = networks()
    pairs = itertools.combinations(range(5), 2)
    known = np.mean([jensenshannon(p[i, n], p[j, n]) ** 2 for i, j in pairs for n in range(7)])
    np.testing.assert_allclose(jensen_shannon(p), known, rtol=1e-10)
    opposed = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    np.testing.assert_allclose(jensen_shannon(opposed), np.log(2), rtol=1e-12)
    assert jensen_shannon(np.repeat(p[:1], 2, axis=0)) == 0.0


def test_overlap_is_that_of_sets():
    p, y = networks()
    wrong = [set(np.flatnonzero(np.argmax(each, axis=1) != y)) for each in p]
    pairs = list(itertools.combinations(wrong, 2))
    assert all(a | b for a, b in pairs)
    np.testing.assert_allclose(error_overlap(p, y), np.mean([len(a & b) / len(a | b) for a, b in pairs]), rtol=1e-12)
    right = np.eye(3)[y][None].repeat(2, axis=0)
    assert error_overlap(right, y) == 1.0
    half = right.copy()
    half[0, 0] = np.roll(half[0, 0], 1)
    assert error_overlap(half, y) == 0.0


def test_curves_average_probabilities():
    p, y = networks()
    rows = averaging_curve(p, y, (1, 3, 5))
    for row in rows:
        mean = sum(p[i] for i in range(row.num_networks)) / row.num_networks
        assert row.accuracy == np.mean([np.argmax(mean[n]) == y[n] for n in range(7)])
        np.testing.assert_allclose(row.nll, -np.mean([np.log(mean[n, y[n]]) for n in range(7)]), rtol=1e-9)
    assert [row.num_networks for row in rows] == [1, 3, 5]


def test_what_cannot_be_asked_is_named():
    p, y = networks()
    with pytest.raises(InputError, match="must be at least 2, got 1"):
        jensen_shannon(p[:1])
    with pytest.raises(InputError, match="must be at least 2, got 1"):
        error_overlap(p[:1], y)
    with pytest.raises(InputError, match="At most 5 networks can be averaged, got 6"):
        averaging_curve(p, y, (6,))
