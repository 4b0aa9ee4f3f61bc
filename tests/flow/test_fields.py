"""Fields over vectors: zero at first, told the time, in the right coordinates, and shown what the data pull to."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import tiny
from tests.flow.test_pull import PATHS, gradient, known_pull
from tests.flow.test_swing import of_counts
from tests.metanet.examples import doubles, metanet, symmetry_of

import weightscape as ws
from weightscape.core.checks import InputError
from weightscape.core.layout import Layout
from weightscape.flow import Equivariant, Straight, WhitenedSource
from weightscape.flow.architecture import Setting
from weightscape.flow.fields import _BOUND, _STIFFER, GuidedField, MetanetField, PrincipalField, ResidualField
from weightscape.flow.target import Target
from weightscape.metanet import Sizes
from weightscape.symmetry import discover

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


INPUTS = np.array([[2.0, 0.8, 0.0], [0.0, 1.5, -0.9], [0.5, 0.0, 1.2]])
OUTPUTS = np.array([1.0, -2.0, 0.5])
X = np.array([0.4, -1.3, 0.8])


def of_normal(inputs):
    """A likelihood of precision P = inputsᵀ inputs, and the mean and covariance of the posterior."""
    network, prior = ws.networks.MLP(hidden=(), bias=False), ws.priors.Normal(1.0)
    posterior = ws.Model(network, ws.likelihoods.Gaussian(1.0), prior).condition(ws.Batch(inputs, OUTPUTS))
    covariance = np.linalg.inv(np.eye(3) + inputs.T @ inputs)
    return Target(posterior, WhitenedSource.of(posterior)), covariance @ inputs.T @ OUTPUTS, covariance


def guided(target, path, curvature, num_leapfrog):
    """A guided field with given curvatures."""
    size = target.source.layout.size
    symmetry, rows = discover(target.posterior), jnp.zeros((2, size))
    setting = Setting(target, path, symmetry, np.arange(size), jnp.asarray(curvature), rows)
    field = Equivariant(tiny.SIZES, num_leapfrog=num_leapfrog).build(jax.random.key(0), setting)
    assert isinstance(field, GuidedField)
    return field


@eqx.filter_jit
def companions(field, time, z):
    """c₁ and c₂ themselves, without their scale and asinh."""
    return [_BOUND * field.guide.value.scale * jnp.sinh(seen / _BOUND) for seen in field._seen(time, jnp.asarray(z))]


@PATHS
@pytest.mark.parametrize("num_leapfrog", [1, 2, 16])
def test_a_turn_around_independent_weights_finds_the_pull(path, num_leapfrog):
    """κ is what the turn takes for the precision; the mean of a full turn is its centre, whatever the step size."""
    inputs = np.diag([3.0, 0.4, -1.5])
    target, mean, covariance = of_normal(inputs)
    precision = np.diag(inputs) ** 2
    turning, still = (guided(target, path, k, num_leapfrog) for k in (precision / _STIFFER, precision))
    for time in map(jnp.asarray, (0.0, 0.1, 0.5, 0.9, 1.0)):
        known = known_pull(path, time, jnp.asarray(X), mean, covariance)
        # Gradients of some ten, and of one step of a half turn, whose kick is 1e16 long, roundings of each part.
        np.testing.assert_allclose(companions(turning, time, X)[1], known, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(companions(still, time, X)[0], known, rtol=1e-12, atol=1e-12)


@PATHS
def test_a_turn_around_correlated_weights_comes_near_the_pull_sooner(path):
    """For s = a/σ → 0 the error of c₁ falls as s² and that of c₂ as s⁴; it is the smaller one long before."""
    target, mean, covariance = of_normal(INPUTS)
    field = guided(target, path, np.diag(INPUTS.T @ INPUTS), 16)
    errors = []
    for time in map(jnp.asarray, (0.8, 0.9, 1 - 2e-3, 1 - 1e-3)):
        known = known_pull(path, time, jnp.asarray(X), mean, covariance)
        errors.append([np.linalg.norm(seen - known) for seen in companions(field, time, X)])
    first, second = np.array(errors).T
    assert np.all(second < first * np.array([0.7, 0.4, 1e-3, 1e-3]))
    np.testing.assert_allclose(first[2] / first[3], 4.0, rtol=0.02)
    np.testing.assert_allclose(second[2] / second[3], 16.0, rtol=0.04)


def test_a_field_without_turns_is_shown_one_companion():
    target, mean, covariance = of_normal(INPUTS)
    curvature = np.array([0.3, 2.0, 5.0])
    with_turns, without = (guided(target, Straight(), curvature, number) for number in (4, 0))
    both, alone = companions(with_turns, 0.4, X), companions(without, 0.4, X)
    assert (len(both), len(alone)) == (2, 1)
    known = gradient(0.4 / 0.52 * X, mean, covariance) / (1 + 0.36 / 0.52 * curvature)
    for found in (both[0], alone[0]):
        np.testing.assert_allclose(found, known, rtol=1e-12)
    assert np.all(np.isfinite(eqx.filter_jit(shaken(without))(0.4, jnp.asarray(X))))
    assert Equivariant().num_leapfrog > 0
    with pytest.raises(InputError, match="`num_leapfrog` of Equivariant must be .* got -1"):
        Equivariant(num_leapfrog=-1)


NARROW = np.array([[1.0, 0.3], [-1.0, 0.4], [0.2, -1.0]])


def of_narrow(size, curvature):
    target = of_counts(ws.likelihoods.Poisson(), size * NARROW, np.ones(3))
    return guided(target, Straight(), np.full(2, curvature), 5)


def test_turns_that_are_not_finite_are_not_seen():
    """The gradient overflows after a step."""
    field, z = of_narrow(1e3, 0.0), jnp.asarray([3e-4, -1e-4])
    first, second = companions(field, 0.5, z)
    assert np.all(np.isfinite(first)) and np.all(np.abs(first) > 1)
    np.testing.assert_array_equal(second, 0.0)
    value, slopes = eqx.filter_jit(lambda field: jax.linearize(lambda z: field(0.5, z), z))(shaken(field))
    assert np.all(np.isfinite(value)) and np.all(value != 0)
    assert np.all(np.isfinite(jax.vmap(slopes)(jnp.eye(2))))


def test_turns_have_finite_derivatives_however_large_they_are():
    """Some are not seen, some are large beyond reason, and some are between."""
    with jax.enable_x64(False):
        field = of_narrow(8.0, 40.0)
        second = lambda z: field._seen(0.5, z)[1]
        z = jnp.asarray(np.random.default_rng(0).normal(size=(20_000, 2)), jnp.float32)
        values, slopes = jax.jit(jax.vmap(lambda z: (second(z), jax.jacfwd(second)(z))))(z)
    lost = np.any(values == 0, axis=1)
    assert 1000 < np.sum(lost) < 19_000
    assert np.max(np.abs(values)) > 100
    assert np.all(np.isfinite(values)) and np.all(np.isfinite(slopes))


def test_a_guided_field_commutes_with_the_symmetry():
    """So its density is invariant, which the tests of flow matching see."""
    method = dataclasses.replace(tiny.METHOD, architecture=Equivariant(tiny.DEEP, num_leapfrog=5))
    field, symmetry = tiny.shaken(tiny.untrained(method)).model.field, discover(tiny.posterior())
    layout, at = symmetry.layout, eqx.filter_jit(field)
    z = jnp.asarray(np.random.default_rng(0).normal(size=layout.size))
    elements = [symmetry.random(jax.random.key(seed)) for seed in range(6)]
    moved = [layout.flatten(symmetry.apply(layout.unflatten(z), element)) for element in elements]
    assert len({np.asarray(vector).tobytes() for vector in moved}) > 2
    for time in map(jnp.asarray, (0.0, 0.4, 0.95)):
        known = at(time, z)
        assert np.std(known) > 1e-3
        for element, vector in zip(elements, moved, strict=True):
            there = layout.flatten(symmetry.apply(layout.unflatten(known), element))
            # Some thousand products with roundings of 1e-16.
            np.testing.assert_allclose(at(time, vector), there, rtol=0, atol=1e-12 * np.max(np.abs(known)))


def test_a_loaded_field_turns_as_before(tmp_path):
    method = dataclasses.replace(tiny.METHOD, architecture=Equivariant(tiny.SIZES, num_leapfrog=3))
    flow = tiny.shaken(tiny.untrained(method))
    flow.save(tmp_path)
    loaded = ws.Flow.load(tmp_path, tiny.posterior())
    assert loaded.model.field.num_leapfrog == 3
    z = jnp.asarray(np.random.default_rng(0).normal(size=7))
    ours, theirs = (eqx.filter_jit(one.model)(jnp.asarray(0.7), z) for one in (flow, loaded))
    assert np.all(ours != 0)
    np.testing.assert_array_equal(ours, theirs)
