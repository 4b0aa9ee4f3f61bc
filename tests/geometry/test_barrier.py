"""Barriers, local energies and sections of losses that are known in closed form, and the loss of data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.symmetry.by_hand import mlp_symmetry

import weightscape as ws
from weightscape.core import InputError, InputTypeError
from weightscape.geometry.barrier import barrier
from weightscape.geometry.energy import local_energy
from weightscape.geometry.loss import loss_of
from weightscape.geometry.paths import Linear
from weightscape.geometry.section import Plane, section

KEY = jax.random.key(0)


def test_a_convex_loss_has_no_barrier():
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)))
    loss = lambda w: jnp.sum((matrix @ w["a"]) ** 2) + jnp.sum(w["b"] ** 2)
    ends = [{"a": jax.random.normal(jax.random.key(i), (4,)), "b": jnp.ones(2) * i} for i in range(2)]
    found = barrier(Linear(*ends), loss)
    assert float(found.value) == 0.0 and float(found.at) in (0.0, 1.0)
    assert found.times.shape == found.losses.shape == (25,)


def test_a_tilted_double_well_has_the_known_barrier(x64):
    """(w² − 1)² + s w from −1 to 1: the tilt is the line between the ends, so (w² − 1)² is left, 1 at w = 0."""
    found = barrier(Linear(jnp.array(-1.0), jnp.array(1.0)), lambda w: (w**2 - 1) ** 2 + 0.7 * w, num_points=21)
    np.testing.assert_allclose(found.value, 1.0, rtol=1e-14)
    np.testing.assert_allclose(found.at, 0.5)
    w = 2 * np.linspace(0, 1, 21) - 1
    np.testing.assert_allclose(found.losses, (w**2 - 1) ** 2 + 0.7 * w, rtol=1e-13, atol=1e-15)


def test_an_asymmetric_barrier_is_found_where_it_is(x64):
    """sin(πt)² (1 + t): no closed form for the place, so a fine grid says."""
    loss = lambda t: jnp.sin(jnp.pi * t) ** 2 * (1 + t)
    found = barrier(Linear(jnp.array(0.0), jnp.array(1.0)), loss, num_points=1001)
    times = np.linspace(0, 1, 100_001)
    values = np.sin(np.pi * times) ** 2 * (1 + times)
    np.testing.assert_allclose(found.value, values.max(), atol=1e-5)
    np.testing.assert_allclose(found.at, times[np.argmax(values)], atol=1e-3)


def test_local_energy_of_a_quadratic(x64):
    """½ wᵀHw disturbed has mean ½ σ² Σ H_ii w_i², and the standard error is that of its draws."""
    generator = np.random.default_rng(0)
    root, w, spread = generator.normal(size=(5, 5)), jnp.asarray(generator.normal(size=5)), 0.3
    matrix = jnp.asarray(root @ root.T)
    loss = lambda params: 0.5 * params["w"] @ matrix @ params["w"]
    found = local_energy(KEY, loss, {"w": w}, spread=spread, num_draws=20_000)
    exact = 0.5 * spread**2 * float(jnp.sum(jnp.diag(matrix) * w**2))
    # With D = diag(w), the rise is σ wᵀHDz + ½ σ² zᵀDHDz, of variance σ² ‖DHw‖² + ½ σ⁴ ‖DHD‖².
    linear, square = w * (matrix @ w), w[:, None] * matrix * w[None]
    variance = spread**2 * jnp.sum(linear**2) + 0.5 * spread**4 * jnp.sum(square**2)
    np.testing.assert_allclose(found.standard_error, np.sqrt(variance / 20_000), rtol=0.1)
    assert abs(float(found.value) - exact) < 5 * float(found.standard_error)
    assert exact > 20 * float(found.standard_error)


def test_local_energy_does_not_change_with_rescalings_and_signs(x64):
    network = ws.networks.MLP(hidden=(6,), activation="relu", outputs=2)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(7, 3)))
    params = network.init(KEY, x)
    symmetry = mlp_symmetry(params, scaling=True)
    element = symmetry.random(KEY)
    element = type(element)(symmetry.identity().permutations, element.signs, element.log_scales)
    loss = lambda params: jnp.mean(network.apply(params, x) ** 2)
    first, second = (local_energy(KEY, loss, each) for each in (params, symmetry.apply(params, element)))
    np.testing.assert_allclose(second, first, rtol=1e-10)


def test_a_section_shows_the_plane_of_three_networks(x64):
    generator = np.random.default_rng(2)
    a, b, c = (
        {"w": jnp.asarray(generator.normal(size=(2, 3))), "b": jnp.asarray(generator.normal(size=4))} for _ in range(3)
    )
    plane = Plane.through(a, b, c)
    for corner, params in zip(plane.corners, (a, b, c), strict=True):
        jax.tree.map(lambda m, n: np.testing.assert_allclose(m, n, atol=1e-13), plane.at(*corner), params)
    # Distances in the picture are those in weight space.
    flat = lambda params: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])
    for i, j in ((0, 1), (0, 2), (1, 2)):
        there = np.linalg.norm(flat((a, b, c)[i]) - flat((a, b, c)[j]))
        np.testing.assert_allclose(np.linalg.norm(plane.corners[i] - plane.corners[j]), there, rtol=1e-13)
    found = section(lambda params: jnp.sum((flat_of(params) - flat(a)) ** 2), plane, num_points=9, margin=0.5)
    np.testing.assert_allclose(found.losses, found.u[None] ** 2 + found.v[:, None] ** 2, rtol=1e-11, atol=1e-13)
    low, high = np.min(plane.corners, axis=0), np.max(plane.corners, axis=0)
    np.testing.assert_allclose(
        [found.u[0], found.v[-1]], [low[0] - 0.5 * (high - low)[0], high[1] + 0.5 * (high - low)[1]]
    )


def flat_of(params):
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(params)])


def test_three_networks_on_a_line_are_refused(unchecked):
    with pytest.raises(InputError, match="must span a plane"):
        Plane.through(jnp.zeros(3), jnp.ones(3), 2 * jnp.ones(3))


def regression(noise=0.3):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(50, 3))
    data = ws.data.from_arrays(x, 40 + 7 * x[:, 0], task="regression")
    model = ws.Model(ws.networks.MLP(hidden=(4,)), ws.likelihoods.Gaussian(noise), ws.priors.Normal(1.0))
    return data, model


def test_the_loss_is_the_mean_negative_log_likelihood(x64):
    data, model = regression(ws.priors.Gamma(2.0, 2.0))
    posterior = model.condition(data.train)
    position = posterior.start_position(KEY)
    params = posterior.constrain(position)
    expected = -posterior.log_likelihood(position) / posterior.num_points
    for chunk_size in (1, 7, 40, 1000):
        np.testing.assert_allclose(loss_of(posterior, chunk_size=chunk_size)(params), expected, rtol=1e-12)
    np.testing.assert_allclose(loss_of(model, data.train)(params), expected, rtol=1e-12)
    unseen = -posterior.log_likelihood(position, data.test) / len(data.test)
    np.testing.assert_allclose(loss_of(posterior, data.test, chunk_size=3)(params), unseen, rtol=1e-12)


def test_the_loss_takes_the_network_alone_and_its_gradient_is_right(x64):
    data, model = regression()
    posterior = model.condition(data.train)
    params = posterior.constrain(posterior.start_position(KEY))
    in_chunks, whole = loss_of(posterior, chunk_size=7), lambda p: -jnp.mean(posterior.pointwise_log_likelihood(p))
    np.testing.assert_allclose(in_chunks(params.network), in_chunks(params), rtol=1e-15)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13),
        jax.jit(jax.grad(in_chunks))(params),
        jax.grad(whole)(params),
    )


def test_a_model_needs_data(unchecked):
    _, model = regression()
    with pytest.raises(InputTypeError, match="must be a Batch"):
        loss_of(model)
