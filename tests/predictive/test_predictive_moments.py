"""The law of total variance: Var[y] = E[Var(y | θ)] + Var(E[y | θ])."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.posterior import Parameters

INFERRED = ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0))


def test_two_components_split_as_in_closed_form(table_draws, points):
    # μ = (0, 2), σ = (1, ½), w = (¼, ¾): E = 1.5, aleatoric ¼·1 + ¾·¼, epistemic ¼·1.5² + ¾·0.5².
    draws = table_draws([[[0.0]], [[2.0]]], INFERRED, own={"scale": [1.0, 0.5]}, log_weights=np.log([0.25, 0.75]) + 7)
    predictive = ws.predict(draws, points(1))
    np.testing.assert_allclose(predictive.mean, [1.5], rtol=1e-6)
    np.testing.assert_allclose(predictive.aleatoric_std, [np.sqrt(0.4375)], rtol=1e-6)
    np.testing.assert_allclose(predictive.epistemic_std, [np.sqrt(0.75)], rtol=1e-6)
    np.testing.assert_allclose(predictive.std, [np.sqrt(1.1875)], rtol=1e-6)
    np.testing.assert_allclose(predictive.variance, [1.1875], rtol=1e-6)


def test_small_spread_around_a_large_mean_keeps_its_digits(table_draws, points):
    offsets = np.random.default_rng(0).integers(-8, 9, size=1000) / 8.0  # exact in float32 at 10,000
    draws = table_draws(1e4 + offsets[:, None, None], ws.likelihoods.Gaussian(scale=0.5))
    predictive = ws.predict(draws, points(1))
    np.testing.assert_allclose(predictive.epistemic_std, [offsets.std()], rtol=1e-3)
    np.testing.assert_allclose(predictive.mean - 1e4, [offsets.mean()], atol=1e-3)


def test_equal_draws_have_no_epistemic_spread(table_draws, points):
    draws = table_draws(np.full((7, 3, 1), 0.1), ws.likelihoods.Gaussian(scale=0.5))
    predictive = ws.predict(draws, points(3))
    assert np.all(np.asarray(predictive.epistemic_std) == 0)
    np.testing.assert_allclose(predictive.std, predictive.aleatoric_std, rtol=1e-7)


def test_linear_model_with_exact_posterior_draws():
    """With θ ~ N(m, Σ) and noise σ: E[y] = x'm, and Var[y] = x'Σx + σ²."""
    rng, num_draws, noise = np.random.default_rng(1), 4000, 0.3
    mean = np.array([0.5, -1.0, 2.0])  # two slopes and a shift
    root = np.array([[0.4, 0.0, 0.0], [0.3, 0.2, 0.0], [-0.2, 0.1, 0.5]])
    theta = mean + rng.normal(size=(4, num_draws // 4, 3)) @ root.T
    x = rng.normal(size=(20, 2))
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(scale=noise), ws.priors.Normal())
    posterior = model.condition(ws.Batch(x, np.zeros(20)))
    network = {"layer0": {"weight": theta[..., :2, None].astype("f4"), "bias": theta[..., 2:].astype("f4")}}
    draws = ws.Draws(
        Parameters(network, {}, ()), np.zeros(theta.shape[:2], "f4"), posterior.model, None, posterior.example
    )
    predictive = ws.predict(draws, x)
    design = np.hstack([x, np.ones((20, 1))])
    spread = np.einsum("ni,ij,nj->n", design, root @ root.T, design)
    # Monte-Carlo errors of a mean, s/√n, and of a variance, s²√(2/n); five of each.
    np.testing.assert_array_less(np.abs(predictive.mean - design @ mean), 5 * np.sqrt(spread / num_draws))
    np.testing.assert_allclose(predictive.variance - noise**2, spread, rtol=5 * np.sqrt(2 / num_draws))
    np.testing.assert_allclose(predictive.aleatoric_std, np.full(20, noise), rtol=1e-5)


def test_heteroscedastic_vector_targets(table_draws, points):
    outputs = np.random.default_rng(2).normal(size=(5, 4, 6))  # three means, three log-scales
    predictive = ws.predict(table_draws(outputs, ws.likelihoods.HeteroscedasticGaussian(), y=[[0.0] * 3]), points(4))
    means, variances = outputs[..., :3], np.exp(2 * outputs[..., 3:])
    assert predictive.mean.shape == (4, 3)
    np.testing.assert_allclose(predictive.mean, means.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(predictive.variance, variances.mean(0) + means.var(0), rtol=1e-5)


def test_the_scaling_is_undone(table_draws, points):
    outputs = np.random.default_rng(3).normal(size=(6, 3, 2))
    scaling = ws.data.Scaling(0.0, 1.0, np.array([10.0, -5.0]), np.array([3.0, 0.1]))
    draws = table_draws(outputs, ws.likelihoods.Gaussian(scale=0.5), y=[[0.0, 0.0]], scaling=scaling)
    predictive = ws.predict(draws, points(3))
    scale, shift = np.array([3.0, 0.1]), np.array([10.0, -5.0])
    by_hand = outputs * scale + shift
    np.testing.assert_allclose(predictive.mean, by_hand.mean(0), rtol=1e-5)
    np.testing.assert_allclose(predictive.epistemic_std, by_hand.std(0), rtol=1e-5)
    np.testing.assert_allclose(predictive.aleatoric_std, np.tile(0.5 * scale, (3, 1)), rtol=1e-6)


def test_inputs_are_scaled_before_the_network_sees_them():
    x, y = np.random.default_rng(4).normal(100, 7, size=(30, 2)), np.random.default_rng(5).normal(50, 9, size=30)
    scaling = ws.data.Scaling.fit(x, y, "regression")
    model = ws.Model(ws.networks.MLP(hidden=(3,)), ws.likelihoods.Gaussian(scale=0.5), ws.priors.Normal())
    posterior = model.condition(ws.Batch(x, y, scaling))
    rng, like = np.random.default_rng(6), posterior.model.parameters_like(posterior.x)
    params = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), like)
    stacked = jax.tree.map(lambda leaf: leaf[None, None], params)
    draws = ws.Draws(stacked, jnp.zeros((1, 1)), posterior.model, posterior.scaling, posterior.example)
    outputs = posterior.model.network.apply(params.network, posterior.x)[:, 0]
    np.testing.assert_allclose(ws.predict(draws, x).mean, outputs * y.std() + y.mean(), rtol=1e-5)


@pytest.mark.parametrize("quantity", ["probabilities", "entropy", "expected_entropy", "mutual_information"])
def test_class_quantities_of_a_regression_raise(quantity, table_draws, points):
    predictive = ws.predict(table_draws([[[0.0]]], ws.likelihoods.Gaussian(scale=0.5)), points(1))
    with pytest.raises(ValueError, match=f"`{quantity}` must be asked of a classification, got a regression. Use"):
        getattr(predictive, quantity)


def test_each_entry_of_a_target_keeps_its_own_inferred_noise(table_draws, points):
    likelihood = ws.likelihoods.Gaussian(scale=ws.priors.Gamma(0.5, 1.0), num_scales=2)
    own = {"scale": [[1.0, 0.1], [3.0, 0.1], [1.0, 0.1]]}
    draws = table_draws([[[0.0, 1.0]], [[2.0, 1.0]], [[1.0, 1.0]]], likelihood, y=[[0.0, 0.0]], own=own)
    predictive = ws.predict(draws, points(1))
    np.testing.assert_allclose(predictive.aleatoric_std, [[np.sqrt(11 / 3), 0.1]], rtol=1e-6)
    np.testing.assert_allclose(predictive.epistemic_std, [[np.sqrt(2 / 3), 0.0]], rtol=1e-6, atol=1e-6)
