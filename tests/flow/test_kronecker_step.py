"""The step by Kronecker factors: against matrices by hand, where it is Newton's, and what it commutes with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import tiny
from tests.flow.test_newton import (
    NOISE,
    NUM_CLASSES,
    PRIOR_SCALE,
    classes_posterior,
    gradient_for_a_row,
    linear_posterior,
    target_of,
)
from tests.flow.test_revised import flow_over, relu_posterior

import weightscape as ws
from weightscape.flow import Euclidean
from weightscape.flow import kronecker_step as module
from weightscape.flow.kronecker_step import kronecker_step
from weightscape.flow.orbits import orbits
from weightscape.flow.source import PriorSource
from weightscape.flow.target import Target
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)


def stepped(target, z):
    return kronecker_step(target, z, gradient_for_a_row(target, z))


def with_shift(x):
    return np.column_stack([np.asarray(x), np.ones(len(x))])


@pytest.fixture
def to_the_end(monkeypatch):
    """Solves with as many products as any matrix here has rows, and many more."""
    monkeypatch.setattr(module, "_NUM_PRODUCTS", 60)


@pytest.mark.parametrize("power", [1.0, 0.3])
def test_of_a_linear_network_it_is_newtons_step_of_the_likelihood(monkeypatch, to_the_end, power):
    """Without damping: (XᵀX / (Nσ²))⁻¹ times the slope of log p(D, θ) for a row, the prior's included. ε = 1e-9 of the
    mean diagonal is left, and the condition is below 1e2: 1e-7 of the step.
    """
    monkeypatch.setattr(module, "_DAMPING", 1e-9)
    target = target_of(linear_posterior().tempered(likelihood=power))
    z = 3.0 * target.source.sample(KEY)
    x, y = with_shift(target.posterior.x), np.asarray(target.posterior.y)
    layer = target.source.position(z).network["layer0"]
    weights = np.vstack([layer["weight"], layer["bias"]])
    slope = x.T @ (y - x @ weights) / NOISE**2 / len(x) - weights / PRIOR_SCALE**2 / len(x) / power
    wanted = np.linalg.solve(x.T @ x / NOISE**2 / len(x), slope)
    moved = target.source.position(z + stepped(target, z)).network["layer0"]
    np.testing.assert_allclose(np.vstack([moved["weight"], moved["bias"]]) - weights, wanted, rtol=1e-6, atol=1e-8)


def test_factors_are_those_of_inputs_and_of_gradients_at_outputs(to_the_end):
    """Two tanh units between three inputs and three classes, with ε = 1, by matrices and inverses of numpy.

    At the last layer the gradients are the columns of diag(√p) − p √pᵀ; before tanh they are multiplied by its slope.
    """
    target = target_of(classes_posterior(num_rows=40))
    z = target.source.sample(KEY)
    network = jax.tree.map(np.asarray, target.source.position(z).network)
    x = np.asarray(target.posterior.x)
    hidden = np.tanh(x @ network["layer0"]["weight"] + network["layer0"]["bias"])
    p = np.asarray(jax.nn.softmax(hidden @ network["layer1"]["weight"] + network["layer1"]["bias"], axis=1))
    last = np.sqrt(p)[:, None, :] * (np.eye(NUM_CLASSES)[None] - p[:, :, None])  # (row, output, factor)
    first = np.einsum("nor,ho->nhr", last, network["layer1"]["weight"]) * (1 - hidden**2)[:, :, None]
    total = target.source.layout.unflatten(
        (gradient_for_a_row(target, z) - target.source.scale**2 * z / PRIOR_SCALE**2 / 40) / target.source.scale
    ).network
    after = jax.tree.map(np.asarray, target.source.position(z + stepped(target, z)).network)
    for name, inputs, gradients in (("layer0", x, first), ("layer1", hidden, last)):
        stacked = lambda tree, name=name: np.vstack([tree[name]["weight"], tree[name]["bias"]])
        a = with_shift(inputs).T @ with_shift(inputs) / 40
        g = np.einsum("nir,njr->ij", gradients, gradients) / 40
        damped = lambda factor: factor + np.trace(factor) / len(factor) * np.eye(len(factor))
        wanted = np.linalg.inv(damped(a)) @ stacked(total) @ np.linalg.inv(damped(g))
        np.testing.assert_allclose(stacked(after) - stacked(network), wanted, rtol=1e-9, atol=1e-12)


def test_it_moves_as_the_network_does():
    """Under permutations and signs of tanh units, which take each weight to one of the same scale."""
    posterior = classes_posterior()
    symmetry = of_function(posterior)
    target = target_of(posterior, orbits(symmetry))
    layout, z, element = target.source.layout, target.source.sample(KEY), symmetry.random(jax.random.key(3))
    moved = lambda vector: layout.flatten(symmetry.apply(layout.unflatten(vector), element))
    assert not np.allclose(np.abs(moved(z)), np.abs(z))
    np.testing.assert_allclose(stepped(target, moved(z)), moved(stepped(target, z)), rtol=0, atol=1e-12)
    assert np.linalg.norm(stepped(target, z)) > 0.1


def test_a_step_leads_towards_higher_densities():
    """Damped factors are positive definite, so the slope along the step is positive, from anywhere."""
    target = target_of(classes_posterior(num_rows=30))
    for key in jax.random.split(KEY, 20):
        z = 2 * target.source.sample(key)
        assert float(jnp.vdot(jax.grad(target.log_density)(z), stepped(target, z))) > 0


def switched_off(source, z):
    """The same with all ReLUs of the first layer off."""
    position = source.position(z)
    layer = {**position.network["layer0"], "bias": jnp.full_like(position.network["layer0"]["bias"], -100.0)}
    return source.vector(position._replace(network={**position.network, "layer0": layer}))


def test_units_that_say_nothing_have_finite_steps():
    """All ReLUs off: gradients before them are zero, and so is G. Those weights have no step, others have one, and
    derivatives are finite: in single precision, in which a step that is divided by next to nothing has no square.

    The last layer's inputs are a one and zeros, its step that of a classifier without inputs: of order one.
    """
    with jax.enable_x64(False):
        given = classes_posterior()
        network = ws.networks.MLP(hidden=(2,), activation="relu")
        model = ws.Model(network, ws.likelihoods.Categorical(NUM_CLASSES), ws.priors.Normal(PRIOR_SCALE))
        target = target_of(model.condition(ws.Batch(np.asarray(given.x), np.asarray(given.y))))
        z = switched_off(target.source, target.source.sample(KEY))
        assert z.dtype == jnp.float32
        step = target.source.layout.unflatten(stepped(target, z)).network
        assert all(bool(jnp.all(leaf == 0)) for leaf in jax.tree.leaves(step["layer0"]))
        assert 0.01 < float(jnp.linalg.norm(step["layer1"]["bias"])) < 100
        assert bool(jnp.all(jnp.isfinite(jax.jacfwd(lambda z: stepped(target, z))(z))))


def test_a_field_that_looks_at_units_that_say_nothing_is_finite_in_single_precision():
    """At time 1 a path leads to z itself, and σ is the size of the step in the layers that have one."""
    with jax.enable_x64(False):
        field = flow_over(relu_posterior(), Euclidean(), sizes=tiny.DEEP, kronecker=True).model
        target = field.sight.value.target
        z = switched_off(target.source, target.source.sample(KEY))
        seen = lambda z: field._seen(target, jnp.asarray(1.0), z, jnp.zeros_like(z), None)[1]
        velocity, (ahead, _, step) = jax.jit(lambda z: (field(1.0, z), seen(z)))(z)
        np.testing.assert_array_equal(field.layout.flatten(ahead), z)
        assert velocity.dtype == jnp.float32 and bool(jnp.all(jnp.isfinite(velocity)))
        of_layer = lambda name: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(step.network[name])])
        np.testing.assert_array_equal(of_layer("layer0"), 0)
        np.testing.assert_allclose(np.sum(of_layer("layer1") ** 2), z.size, rtol=1e-5)


def test_weights_that_are_no_coordinates_of_their_own_have_no_step():
    """Those of a hierarchical prior are products with a scale; the noise of the likelihood is in no layer."""
    data = linear_posterior()
    batch = ws.Batch(np.asarray(data.x), np.asarray(data.y))
    for prior, noise, moves in (
        (ws.priors.Normal(1.0), ws.priors.Gamma(2.0, 2.0), True),
        (ws.priors.Hierarchical(ws.priors.HalfNormal(1.0)), 0.5, False),
    ):
        model = ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(noise), prior)
        posterior = model.condition(batch)
        target = Target(posterior, PriorSource.of(posterior))
        z = target.source.sample(KEY)
        step = target.source.layout.unflatten(kronecker_step(target, z, jnp.ones_like(z)))
        assert all(bool(jnp.any(leaf != 0)) == moves for leaf in jax.tree.leaves(step.network))
        assert all(bool(jnp.all(leaf == 0)) for leaf in jax.tree.leaves((step.likelihood, step.prior)))
