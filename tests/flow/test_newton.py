"""Newton's step: conjugate gradients against Krylov spaces, curvature against jacobians, and where a step leads to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import inferred_noise

import weightscape as ws
from weightscape.flow import Revised, newton
from weightscape.flow.newton import conjugate_gradients, newton_step
from weightscape.flow.orbits import orbits
from weightscape.flow.source import PriorSource, WhitenedSource
from weightscape.flow.target import Target
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
PRIOR_SCALE, NOISE = 0.7, 0.5
NUM_CLASSES = 3


def rotated(values, seed=0):
    """A symmetric matrix with these eigenvalues, and a vector that has a part in each direction."""
    generator = np.random.default_rng(seed)
    turn = np.linalg.qr(generator.normal(size=(len(values), len(values))))[0]
    return turn @ np.diag(values) @ turn.T, turn @ generator.uniform(0.5, 1.5, size=len(values))


def searched(matrix, wanted, num_products):
    matrix = jnp.asarray(matrix)
    return np.asarray(conjugate_gradients(lambda v: matrix @ v, jnp.asarray(wanted), num_products))


def best_in_krylov_space(matrix, wanted, size):
    """argmin xᵀAx/2 − bᵀx over combinations of b, Ab, …, A^{k−1}b; of as many as the dimension, A⁻¹b."""
    if size >= len(wanted):
        return np.linalg.solve(matrix, wanted)
    basis = np.zeros((len(wanted), 0))
    for _ in range(size):
        new = wanted if basis.shape[1] == 0 else matrix @ basis[:, -1]
        basis = np.linalg.qr(np.column_stack([basis, new]))[0]
    return basis @ np.linalg.solve(basis.T @ matrix @ basis, basis.T @ wanted)


@pytest.mark.parametrize("num_products", [0, 1, 2, 3, 4, 5])
def test_conjugate_gradients_are_the_best_of_a_krylov_space(num_products):
    """With as many products as there are dimensions the space is everything. Rounding is 1e-16; the condition of 1e3
    multiplies it, and so does directions' loss of conjugacy: 1e-10 of the answer.
    """
    matrix, wanted = rotated(np.geomspace(1e-2, 1e1, 5))
    best = best_in_krylov_space(matrix, wanted, num_products)
    found = searched(matrix, wanted, num_products)
    np.testing.assert_allclose(found, best, rtol=0, atol=1e-10 * np.linalg.norm(np.linalg.solve(matrix, wanted)))


INDEFINITE = [
    ([4.0, 2.0, 1.0, -1.0], 1),
    ([4.0, 2.0, 1.0, -0.1], 2),
    ([1.0, -2.0, -3.0, -4.0], 0),
    ([-1.0, -1.0, -1.0, -1.0], 0),
    ([0.0, 0.0, 0.0, 0.0], 0),
]


@pytest.mark.parametrize(("values", "last"), INDEFINITE)
def test_they_stop_for_good_where_nothing_bends_downwards(values, last):
    """With A diagonal and b = 1; `last` is the number of products before vᵀAv ≤ 0."""
    matrix, wanted = np.diag(values), np.ones(4)
    best = best_in_krylov_space(matrix, wanted, last)
    for num_products in range(last, 10):
        np.testing.assert_allclose(searched(matrix, wanted, num_products), best, rtol=1e-13)


def test_nothing_wanted_is_nothing_found_and_an_answer_found_is_kept():
    """Also long after the answer: where nothing is missing, nothing is divided by it."""
    matrix, wanted = rotated(np.geomspace(1.0, 3.0, 4))
    np.testing.assert_array_equal(searched(matrix, 0 * wanted, 5), 0)
    np.testing.assert_allclose(searched(matrix, wanted, 400), np.linalg.solve(matrix, wanted), rtol=1e-13)
    np.testing.assert_array_equal(searched(2 * np.eye(4), np.ones(4), 5), 0.5)  # exact after one product


def test_rounding_is_not_followed_where_the_matrix_is_flat():
    """Rank 3 of 5, b in its range: after the answer what is missing is rounding, in which A hardly bends at all."""
    for seed in range(3):
        matrix, _ = rotated([0.1, 0.5, 3.0, 0.0, 0.0], seed)
        wanted = matrix @ np.arange(1.0, 6.0)
        answer = np.linalg.pinv(matrix, rcond=1e-10) @ wanted
        for num_products in (3, 8, 20):
            np.testing.assert_allclose(searched(matrix, wanted, num_products), answer, atol=1e-11)


@pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev])
def test_the_derivative_is_that_of_a_solve_and_finite_where_there_is_nothing_to_solve(jacobian):
    """Which densities of flows are made of: ∂x/∂b = A⁻¹ with all products, to rounding, and 0 where x is 0 around."""
    matrix, wanted = rotated(np.geomspace(1.0, 3.0, 4))
    by = jacobian(lambda matrix, wanted: conjugate_gradients(lambda v: matrix @ v, wanted, 4), argnums=1)
    np.testing.assert_allclose(by(jnp.asarray(matrix), jnp.asarray(wanted)), np.linalg.inv(matrix), atol=1e-12)
    for nothing in (0 * matrix, -matrix):
        np.testing.assert_array_equal(by(jnp.asarray(nothing), jnp.asarray(wanted)), 0)
    assert np.all(np.isfinite(by(jnp.asarray(matrix), jnp.asarray(0 * wanted))))


def linear_posterior():
    """Two outputs, four weights of each, inputs of different sizes."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(12, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.3], [0.0, 0.0, 2.0]])
    y = x @ generator.normal(size=(3, 2)) + 1.0 + NOISE * generator.normal(size=(12, 2))
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(NOISE), ws.priors.Normal(PRIOR_SCALE))
    return model.condition(ws.Batch(x, y))


def classes_posterior(num_rows=10):
    """Two tanh units between three inputs and three classes."""
    x = np.random.default_rng(1).normal(size=(num_rows, 3))
    y = np.argmax(np.column_stack([x[:, 0], np.sin(3 * x[:, 1]), x[:, 2] ** 2 - 0.5]), axis=1)
    network = ws.networks.MLP(hidden=(2,), activation="tanh")
    model = ws.Model(network, ws.likelihoods.Categorical(NUM_CLASSES), ws.priors.Normal(PRIOR_SCALE))
    return model.condition(ws.Batch(x, y))


def target_of(posterior, labels=None):
    """A source whose weights have scales of their own, or the same where labels are."""
    layout = PriorSource.of(posterior).layout
    labels = np.arange(layout.size) if labels is None else labels
    return Target(posterior, WhitenedSource(scale=jnp.asarray(0.5 + 0.25 * (labels % 7)), layout=layout))


def gradient_for_a_row(target, z):
    posterior = target.posterior
    mean = lambda z: jnp.mean(posterior.pointwise_log_likelihood(posterior.constrain(target.source.position(z))))
    return jax.grad(mean)(z)


def stepped(target, z, num_products):
    return newton_step(target, z, gradient_for_a_row(target, z), num_products)


LINEAR = {
    "whole": lambda: target_of(linear_posterior()),
    "tempered": lambda: target_of(linear_posterior().tempered(likelihood=3.0, prior=0.4)),
    "fewer rows": lambda: Revised(rows=5).seen(target_of(linear_posterior())),
    "both": lambda: Revised(rows=5).seen(target_of(linear_posterior().tempered(likelihood=0.2, prior=2.0))),
}


@pytest.mark.parametrize("target", LINEAR.values(), ids=LINEAR)
def test_of_a_linear_network_one_step_ends_at_the_mode(target):
    """Which is known: (β XᵀX/σ² + γ/s²)⁻¹ β XᵀY/σ², from anywhere. With twice as many products as weights
    rounding is 1e-16 times the condition, which is below 1e2; 1e-12 leaves a factor of a hundred to sums.
    """
    target = target()
    posterior, z = target.posterior, 3.0 * target.source.sample(KEY)
    there = z + stepped(target, z, 16)
    np.testing.assert_allclose(jax.grad(target.log_density)(there), 0, atol=1e-12 * _steepness(target, z))
    x, y = np.column_stack([posterior.x, np.ones(posterior.num_points)]), np.asarray(posterior.y)
    power = float(posterior.likelihood_power) / NOISE**2
    precision = power * x.T @ x + float(posterior.prior_power) / PRIOR_SCALE**2 * np.eye(4)
    mode = np.linalg.solve(precision, power * x.T @ y)
    layer = target.source.position(there).network["layer0"]
    np.testing.assert_allclose(np.vstack([layer["weight"], layer["bias"]]), mode, atol=1e-12 * np.linalg.norm(z))


def _steepness(target, z):
    """That of the gradient at z, which is what rounding is relative to."""
    return float(jnp.linalg.norm(jax.grad(target.log_density)(z)))


def curvature_by_hand(target, z, rows=slice(None)):
    """Jᵀ(diag(p) − ppᵀ)J for one of the rows on average, and what the prior adds."""
    posterior, source = target.posterior, target.source
    outputs = lambda z: posterior.model.network.apply(source.position(z).network, posterior.x[rows])
    jacobian, p = np.asarray(jax.jacobian(outputs)(z)), np.asarray(jax.nn.softmax(outputs(z), axis=1))
    inner = p[:, :, None] * np.eye(NUM_CLASSES) - p[:, :, None] * p[:, None, :]
    weight = posterior.prior_power / (posterior.num_points * posterior.likelihood_power)
    prior = np.diag((source.scale / PRIOR_SCALE) ** 2) * float(weight)
    return np.einsum("nci,ncd,ndj->ij", jacobian, inner, jacobian) / len(p) + prior


def gradient_by_hand(target, z):
    """∇ log p(D, θ(z)) over the number of rows that count."""
    return np.asarray(jax.grad(target.log_density)(z)) / (
        target.posterior.num_points * float(target.posterior.likelihood_power)
    )


@pytest.mark.parametrize("power", [1.0, 0.3])
@pytest.mark.parametrize("num_products", [2, 40])
def test_the_curvature_is_that_of_gauss_and_newton(num_products, power):
    """Also of a network that is not linear, where the second derivatives of its outputs do not count. There are 17
    weights, so that 40 products are enough for A⁻¹b in spite of rounding.
    """
    target = target_of(classes_posterior().tempered(likelihood=power, prior=1.5))
    z = target.source.sample(KEY)
    wanted = best_in_krylov_space(curvature_by_hand(target, z), gradient_by_hand(target, z), num_products)
    np.testing.assert_allclose(stepped(target, z, num_products), wanted, rtol=0, atol=1e-10 * np.linalg.norm(wanted))


@pytest.mark.parametrize(("most", "every"), [(3, 4), (4, 3), (5, 2), (9, 2), (10, 1)])
def test_of_many_rows_some_tell_the_curvature_and_all_the_gradient(most, every, monkeypatch):
    """At most so many rows of ten, evenly spaced: each second one, third one, …"""
    monkeypatch.setattr(newton, "_MOST_ROWS", most)
    target = target_of(classes_posterior(num_rows=10))
    z = target.source.sample(KEY)
    curvature = curvature_by_hand(target, z, slice(None, None, every))
    wanted = np.linalg.solve(curvature, gradient_by_hand(target, z))
    np.testing.assert_allclose(stepped(target, z, 40), wanted, rtol=0, atol=1e-10 * np.linalg.norm(wanted))


def test_the_noise_counts_with_the_outputs():
    """y ~ N(wx, σ²) with σ inferred: with r = y − wx, −∂² log p by (f, σ) is [[1/σ², 2r/σ³], [2r/σ³, 3r²/σ⁴ − 1/σ²]].

    Around small noise this bends downwards everywhere, and two products are enough for two weights.
    """
    posterior = inferred_noise().posterior
    target = Target(posterior, PriorSource.of(posterior))
    z = jnp.asarray([0.4, -1.5])
    parameters = lambda z: posterior.constrain(target.source.position(z))
    weight, noise = (float(jnp.ravel(leaf)[0]) for leaf in jax.tree.leaves(parameters(z)))
    slope = float(jax.jacobian(lambda z: jnp.ravel(jax.tree.leaves(parameters(z))[1])[0])(z)[1])
    x, y = np.asarray(posterior.x)[:, 0], np.ravel(posterior.y)
    r = y - weight * x
    mixed, own = np.mean(2 * r * x / noise**3) * slope, np.mean(3 * r**2 / noise**4 - noise**-2) * slope**2
    likelihood = np.array([[np.mean(x**2) / noise**2, mixed], [mixed, own]])
    prior = jax.hessian(lambda z: posterior.log_prior(target.source.position(z)))(z)
    curvature = likelihood - np.asarray(prior) / len(x)
    assert np.all(np.linalg.eigvalsh(curvature) > 0.1)
    wanted = np.linalg.solve(curvature, gradient_by_hand(target, z))
    np.testing.assert_allclose(stepped(target, z, 2), wanted, rtol=1e-10)


@pytest.mark.parametrize("num_products", [1, 3])
def test_it_moves_as_the_network_does(num_products):
    """Under permutations and signs of tanh units, which take each weight to one of the same scale."""
    posterior = classes_posterior()
    symmetry = of_function(posterior)
    target = target_of(posterior, orbits(symmetry))
    layout, z, element = target.source.layout, target.source.sample(KEY), symmetry.random(jax.random.key(3))
    moved = lambda vector: layout.flatten(symmetry.apply(layout.unflatten(vector), element))
    assert not np.allclose(np.abs(moved(z)), np.abs(z)) and not np.allclose(np.sort(moved(z)), np.sort(z))
    step = stepped(target, z, num_products)
    np.testing.assert_allclose(stepped(target, moved(z), num_products), moved(step), rtol=0, atol=1e-12)
    assert np.linalg.norm(step) > 0.1
