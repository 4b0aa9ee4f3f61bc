"""Laws of matching and canonical forms on every network whose symmetry is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.zoo import CASES, weights

from weightscape.core import tree
from weightscape.geometry import WeightMatching, canonical
from weightscape.symmetry import discover

pytestmark = pytest.mark.slow
ROUNDING = 1e-9  # of relative size 1e-16 each, through a few dozen layers and scales of up to e^3


@pytest.fixture(params=CASES)
def case(request, x64):
    """A network's symmetry, its weights, and its function, in double precision."""
    chosen = CASES[request.param]
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), weights(chosen))
    x = jnp.asarray(chosen.x, jnp.float64)
    return discover(chosen.network, params, x), params, jax.jit(lambda params: chosen.network.apply(params, x))


def test_a_planted_element_is_recovered(case):
    symmetry, params, _ = case
    discrete = symmetry.without_scaling()
    copies = tree.stack([discrete.apply(params, discrete.random(jax.random.key(i))) for i in range(3)])
    found = WeightMatching(num_restarts=6).match_many(jax.random.key(0), discrete, copies, params)
    assert np.all(found.distance == 0)
    assert np.max(found.distance_before) > 0.1


def test_matching_never_leads_away(case):
    symmetry, params, function = case
    other = tree.normal_like(jax.random.key(3), params)
    found = WeightMatching().match(jax.random.key(0), symmetry, other, params)
    moved = symmetry.apply(other, found.element)
    assert found.distance <= found.distance_before
    assert tree.norm(tree.subtract(moved, params)) == pytest.approx(float(found.distance), rel=1e-9)
    np.testing.assert_allclose(function(moved), function(other), rtol=ROUNDING, atol=ROUNDING)


def test_canonical_forms_are_the_same_for_equivalent_networks(case):
    symmetry, params, function = case
    form = canonical(symmetry, params)
    np.testing.assert_allclose(function(form.params), function(params), rtol=ROUNDING, atol=ROUNDING)
    again = canonical(symmetry, form.params).params
    other = canonical(symmetry, symmetry.apply(params, symmetry.random(jax.random.key(5)))).params
    for same in (again, other):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING), same, form.params)
