"""Populations: every run is Adam's own, iterates come where they should, and runs are held out whole."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError

pytestmark = pytest.mark.usefixtures("x64")
NUM_STEPS, EVERY = 30, 4


def weights(draws):
    return np.asarray(draws.params.network["layer0"]["weight"])[..., 0]


def adam_by_hand(start, num_draws):
    """Iterates of one run by optax's own schedule and gradients in closed form."""
    problem = linear()
    precision = np.linalg.inv(problem.covariance)
    rates = lambda count: jnp.where(count < NUM_STEPS, 0.05 * (1 + jnp.cos(jnp.pi * count / NUM_STEPS)), 3e-2)
    optimiser = optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(rates))
    place, memory, taken = jnp.asarray(start), optimiser.init(jnp.asarray(start)), []
    for i in range(NUM_STEPS + EVERY * num_draws):
        update, memory = optimiser.update(jnp.asarray(precision @ (problem.mean - np.asarray(place))), memory)
        place = place + update
        if i >= NUM_STEPS and (i + 1 - NUM_STEPS) % EVERY == 0:
            taken.append(place)
    return np.asarray(taken)


def test_runs_are_adams_and_iterates_come_at_the_last_rate():
    posterior, num_draws = linear().posterior, 3
    starts = ws.DeepEnsemble(num_members=2, num_steps=1, learning_rate=1e-9).run(jax.random.key(0), posterior)
    method = ws.Population(
        num_runs=2, num_draws=num_draws, every=EVERY, last_rate=3e-2, num_steps=NUM_STEPS, learning_rate=0.1
    )
    draws = method.run(jax.random.key(1), posterior, init=starts)
    assert (draws.num_chains, draws.num_draws, draws.facts["method"]) == (2, num_draws, "Population")
    for run in range(2):
        # 42 steps of 1e-16, and the starts to the rounding of one step of 1e-9.
        np.testing.assert_allclose(weights(draws)[run], adam_by_hand(weights(starts)[run, 0], num_draws), rtol=1e-9)
    rows = jax.tree.map(lambda leaf: leaf[0], draws.positions())
    np.testing.assert_allclose(draws.log_density[0], jax.vmap(posterior.log_density)(rows), rtol=1e-12)


def test_one_network_of_each_run_is_where_its_training_ends():
    problem = linear()
    draws = ws.Population(num_runs=3, num_steps=3000, learning_rate=0.05).run(jax.random.key(0), problem.posterior)
    deviations = (weights(draws)[:, 0] - problem.mean) / np.sqrt(np.diag(problem.covariance))
    assert draws.num_draws == 1 and np.abs(deviations).max() < 1e-3


def test_runs_that_share_batches_take_the_same_points_at_each_step():
    """From one start they are one run, also after training. With points of their own they part by some of the steps'
    lengths, which are 0.1; and where each step takes all points there is nothing to share.
    """
    posterior = linear().posterior
    start = ws.DeepEnsemble(num_members=1, num_steps=1).run(jax.random.key(0), posterior)

    def trained(batch_size, *, share_batches):
        options = {"batch_size": batch_size, "share_batches": share_batches}
        method = ws.Population(
            num_runs=2, num_draws=3, every=EVERY, last_rate=3e-2, num_steps=NUM_STEPS, learning_rate=0.1, **options
        )
        return weights(method.run(jax.random.key(1), posterior, init=start.merge([start])))

    first, second = trained(8, share_batches=True)
    np.testing.assert_array_equal(first, second)
    first, second = trained(8, share_batches=False)
    assert np.all(np.max(np.abs(first - second), axis=-1) > 0.05)
    np.testing.assert_array_equal(trained(None, share_batches=True), trained(None, share_batches=False))


def test_shared_points_are_other_ones_at_each_step():
    """So that runs end at the mean. They remember a hundred batches or more of 8 points out of 40, which tell it with
    an error of √(40 / 800) = 0.22 deviations; three are allowed. The same 8 at all steps miss it by √(40 / 8) = 2.2.
    """
    problem = linear()
    method = ws.Population(num_runs=2, num_steps=2000, batch_size=8, share_batches=True)
    for seed in range(3):
        draws = method.run(jax.random.key(seed), problem.posterior)
        deviations = (weights(draws)[:, 0] - problem.mean) / np.sqrt(np.diag(problem.covariance))
        assert np.abs(deviations).max() < 0.66


@pytest.mark.slow
def test_without_a_prior_power_weights_do_not_decay():
    problem = linear()
    draws = ws.Population(num_runs=1, num_steps=3000).run(jax.random.key(0), problem.posterior.tempered(prior=0.0))
    least_squares = np.linalg.lstsq(problem.x, problem.y)[0]
    np.testing.assert_allclose(weights(draws)[0, 0], least_squares, atol=1e-4)
    assert np.abs(least_squares - problem.mean).max() > 1e-3


def test_runs_are_held_out_whole():
    method = ws.Population(num_runs=10, num_draws=2, every=3, last_rate=1e-2, num_steps=5)
    draws = method.run(jax.random.key(0), linear().posterior)
    train, held_out = ws.split_runs(draws, held_out=0.3)
    assert (train.num_chains, held_out.num_chains, train.num_draws) == (7, 3, 2)
    both = np.concatenate([weights(train), weights(held_out)])
    np.testing.assert_array_equal(both, weights(draws))
    assert ws.split_runs(draws, held_out=0.01).held_out.num_chains == 1
    assert ws.split_runs(draws, held_out=0.99).train.num_chains == 1
    with pytest.raises(InputError, match="must have at least 2 runs, got 1"):
        ws.split_runs(draws[:1])


def test_settings_are_checked():
    with pytest.raises(InputError, match="`last_rate` of Population must be above 0 where a run gives several, got 0"):
        ws.Population(num_draws=2)
    with pytest.raises(InputError, match="`last_rate` of Population must be 0 or above where a run gives one, got -1"):
        ws.Population(last_rate=-1.0)
    for name in ("num_runs", "num_draws", "every", "num_steps"):
        with pytest.raises(InputError, match="of Population must be at least 1"):
            ws.Population(**{"last_rate": 1.0, name: 0})
