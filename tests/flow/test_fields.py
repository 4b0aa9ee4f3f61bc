"""Fields over vectors: zero at first, told the time, and in the right coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.metanet.examples import doubles, metanet, symmetry_of

from weightscape.core.checks import InputError
from weightscape.core.layout import Layout
from weightscape.flow.fields import MetanetField, PrincipalField, ResidualField
from weightscape.metanet import Sizes

pytestmark = pytest.mark.usefixtures("x64")
SIZES = Sizes(width=8, num_blocks=2, num_heads=2)


def draws():
    mixing = jnp.asarray([[2.0, 0.3, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.1]])
    return 3.0 + jax.random.normal(jax.random.key(0), (50, 3)) @ mixing


def shaken(field):
    numbers, structure = eqx.partition(field, eqx.is_inexact_array)
    moved = jax.tree.map(
        lambda leaf: leaf + 0.3 * jnp.cos(jnp.arange(leaf.size, dtype=leaf.dtype)).reshape(leaf.shape), numbers
    )
    return eqx.combine(moved, structure)


def test_new_fields_stand_still_and_others_hear_the_time():
    x = jnp.asarray([1.0, -2.0, 0.5])
    for field in (ResidualField.of(jax.random.key(0), 3, SIZES), PrincipalField.of(jax.random.key(0), draws(), SIZES)):
        np.testing.assert_array_equal(field(0.3, x), 0.0)
    moved = shaken(ResidualField.of(jax.random.key(0), 3, SIZES))
    assert np.max(np.abs(moved(0.1, x) - moved(0.9, x))) > 1e-3


def test_principal_axes_are_orthonormal_and_whiten():
    rows = draws()
    field = PrincipalField.of(jax.random.key(0), rows, SIZES)
    np.testing.assert_allclose(field.frame.value.axes.T @ field.frame.value.axes, np.eye(3), atol=1e-12)
    white = (rows - field.frame.value.mean[None]) @ field.frame.value.axes / field.frame.value.deviations[None]
    np.testing.assert_allclose(np.cov(white.T), np.eye(3), atol=1e-10)


def test_a_principal_field_is_the_inner_one_in_other_coordinates():
    """y = Qᵀ(x − m)/s moves by v(t, y): then x moves by Q s v."""
    field = PrincipalField.of(jax.random.key(0), draws(), SIZES)
    field = eqx.tree_at(lambda f: f.field, field, shaken(field.field))
    y = jnp.asarray([0.2, -0.9, 0.7])
    inside = lambda x: ((x - field.frame.value.mean) @ field.frame.value.axes) / field.frame.value.deviations
    x = field.frame.value.mean + field.frame.value.axes @ (field.frame.value.deviations * y)
    rate = jax.jvp(inside, (x,), (field(0.4, x),))[1]
    np.testing.assert_allclose(rate, field.field(0.4, y), rtol=1e-10)


def test_fewer_draws_than_weights_leave_the_other_axes_as_they_are():
    rows = jax.random.normal(jax.random.key(1), (3, 6))
    field = PrincipalField.of(jax.random.key(0), rows, SIZES)
    np.testing.assert_allclose(field.frame.value.axes.T @ field.frame.value.axes, np.eye(6), atol=1e-12)
    np.testing.assert_array_equal(field.frame.value.deviations[2:], 1.0)
    with pytest.raises(InputError, match="at least 2 draws, got 1"):
        PrincipalField.of(jax.random.key(0), rows[:1], SIZES)


def test_a_metanet_on_vectors_is_the_metanet_on_trees():
    params, _ = doubles("tanh")
    layout = Layout.of(params)
    module = metanet("tanh", params)
    field = MetanetField(module, layout)
    z = layout.flatten(params)
    np.testing.assert_array_equal(eqx.filter_jit(field)(0.3, z), layout.flatten(eqx.filter_jit(module)(0.3, params)))
    assert symmetry_of("tanh").layout.paths == layout.paths
