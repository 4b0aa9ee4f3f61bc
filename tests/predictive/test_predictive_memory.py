"""Held and recomputed outputs give the same numbers, in few compiled sizes, without loading what is mapped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.predictive.outputs import Held, Recomputed
from weightscape.predictive.plan import make_plan


def random_draws(likelihood, y, num_chains=3, num_draws=7):
    """Random weights of a small network, beside inputs of 37 points."""
    x = np.random.default_rng(0).normal(5, 2, size=(37, 2)).astype("f4")
    scaling = ws.data.Scaling.fit(x, y, likelihood.task)
    model = ws.Model(ws.networks.MLP(hidden=(5,)), likelihood, ws.priors.Normal())
    posterior = model.condition(ws.Batch(x, y, scaling))
    rng, like = np.random.default_rng(4), posterior.model.parameters_like(posterior.x)
    draw = lambda leaf: rng.normal(size=(num_chains, num_draws, *leaf.shape)).astype("f4")
    own = {name: np.exp(draw(leaf)) for name, leaf in like.likelihood.items()}
    params = ws.Parameters(jax.tree.map(draw, like.network), own, ())
    log_weights = np.random.default_rng(1).normal(size=(num_chains, num_draws)).astype("f4")
    density = np.zeros((num_chains, num_draws), "f4")
    draws = ws.Draws(params, density, posterior.model, posterior.scaling, posterior.example, log_weights=log_weights)
    return draws, x


NUMBERS = np.random.default_rng(2).normal(3, 4, size=37).astype("f4")
LABELS = np.random.default_rng(3).integers(0, 3, size=37)


def test_one_point_and_one_draw_at_a_time():
    draws, x = random_draws(ws.likelihoods.Gaussian(scale=0.5), NUMBERS)
    recomputed = ws.predict(draws, x[:5], memory=1)
    assert recomputed.mixture.outputs.plan[2:4] == (1, 1)
    np.testing.assert_allclose(recomputed.std, ws.predict(draws, x[:5]).std, rtol=1e-5)


def test_a_regression_held_and_recomputed():
    draws, x = random_draws(ws.likelihoods.Gaussian(scale=ws.priors.Gamma(2.0, 1.0)), NUMBERS)
    held, recomputed = ws.predict(draws, x), ws.predict(draws, x, memory=1600)
    assert isinstance(held.mixture.outputs, Held)
    assert isinstance(recomputed.mixture.outputs, Recomputed)
    assert held.mixture.outputs.plan.chunk_size > recomputed.mixture.outputs.plan.chunk_size > 1
    for ask in ("mean", "std", "epistemic_std", "aleatoric_std"):
        np.testing.assert_allclose(getattr(held, ask), getattr(recomputed, ask), rtol=2e-5)
    np.testing.assert_allclose(held.interval(0.9), recomputed.interval(0.9), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(held.log_density(NUMBERS), recomputed.log_density(NUMBERS), rtol=1e-4, atol=1e-5)
    samples = [predictive.sample(jax.random.key(1), 4) for predictive in (held, recomputed)]
    np.testing.assert_allclose(*samples, rtol=1e-4, atol=1e-4)


def test_a_classification_held_and_recomputed():
    draws, x = random_draws(ws.likelihoods.Categorical(num_classes=3), LABELS)
    held, recomputed = ws.predict(draws, x), ws.predict(draws, x, memory=5000)
    assert isinstance(recomputed.mixture.outputs, Recomputed)
    for ask in ("probabilities", "entropy", "expected_entropy"):
        np.testing.assert_allclose(getattr(held, ask), getattr(recomputed, ask), rtol=2e-5)
    np.testing.assert_array_equal(*(p.sample(jax.random.key(1), 4) for p in (held, recomputed)))


def test_chains_and_draws_are_flattened_in_order():
    draws, x = random_draws(ws.likelihoods.Categorical(num_classes=3), LABELS)
    draws, x = draws[:2, :3], x[:4]
    one_by_one = [ws.predict(draws[i, j], x).probabilities for i in range(2) for j in range(3)]
    weights = np.exp(draws.log_weights).ravel() / np.exp(draws.log_weights).sum()
    np.testing.assert_allclose(
        ws.predict(draws, x).probabilities, np.tensordot(weights, np.stack(one_by_one), axes=1), rtol=1e-5
    )


def test_stored_draws_are_read_where_they_lie(tmp_path):
    draws, x = random_draws(ws.likelihoods.Categorical(num_classes=3), LABELS)
    draws.save(tmp_path / "draws")
    loaded = ws.Draws.load(tmp_path / "draws")
    predictive = ws.predict(loaded, x, memory=5000)
    stored, used = jax.tree.leaves(loaded.params.network), jax.tree.leaves(predictive.mixture.outputs.params)
    assert all(np.shares_memory(first, second) for first, second in zip(stored, used, strict=True))
    np.testing.assert_array_equal(predictive.probabilities, ws.predict(draws, x, memory=5000).probabilities)


def test_new_numbers_of_points_and_draws_share_programs():
    traced = []

    def apply(params, x):
        if x.shape[0] > 1:  # the plan looks at a single point
            traced.append(x.shape)
        return x * params["slope"]

    network = ws.networks.Function(lambda key, x: {"slope": jnp.zeros(())}, apply)
    model = ws.Model(network, ws.likelihoods.Gaussian(scale=0.5), ws.priors.Normal())
    example = ws.Batch(np.zeros((1, 1)), np.zeros(1))
    for num_draws, num_points in ((40, 17), (50, 23), (64, 32)):
        params = ws.Parameters({"slope": np.ones((1, num_draws), "f4")}, {}, ())
        draws = ws.Draws(params, np.zeros((1, num_draws), "f4"), model, None, example)
        x = np.arange(num_points, dtype="f4")[:, None]
        np.testing.assert_allclose(ws.predict(draws, x).mean, x[:, 0], rtol=1e-6)
    assert len(traced) == 1


@pytest.mark.parametrize("memory", [2**12, 2**16, 2**22])
def test_plans_keep_to_their_memory(memory):
    network = ws.networks.MLP(hidden=(64,), outputs=10)
    x = np.zeros((1000, 8), "f4")
    one_draw = jax.eval_shape(network.init, jax.random.key(0), x)
    plan = make_plan(network, one_draw, x, num_draws=300, memory=memory)
    quarter = memory / 4
    assert plan.chunk_size == 1 or 4 * 10 * plan.padded_draws * plan.chunk_size <= quarter
    assert plan.batch_size == 1 or 4 * 64 * plan.batch_size * plan.chunk_size <= quarter
    assert plan.batch_size == 1 or 4 * (8 * 64 + 64 + 64 * 10 + 10) * plan.batch_size <= quarter
    assert 300 <= plan.padded_draws < 300 * 1.25
    assert plan.fits == (4 * 10 * plan.padded_draws * 1024 <= memory)
    covered = [n for points in plan.chunks for n in range(points.start, points.stop)]
    assert covered == list(range(1000))
