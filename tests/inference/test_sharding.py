"""Data split over devices: the same density and gradient, the same run, to rounding."""

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputError, Plan, Silent, Walk, drive, loop
from weightscape.core.devices import chain_mesh
from weightscape.core.keys import chain_keys


class Slope(Walk):
    """Steps along the gradient; outputs say which devices hold which rows."""

    posterior: ws.Posterior

    def step(self, key, state, index):
        value, gradient = jax.value_and_grad(self.posterior.log_density)(state)
        return jax.tree.map(lambda p, g: p + 1e-3 * g, state, gradient), {"value": value, "gradient": gradient}

    def observe(self, state, notes):
        return notes

    def rows(self):
        return self.posterior.rows()


@pytest.fixture
def posterior():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(24, 3))
    model = ws.Model(ws.networks.MLP(hidden=(5,)), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(x, np.sin(x[:, 0])))


def slopes(posterior, num_chains, num_shards):
    positions = jax.vmap(posterior.start_position)(chain_keys(jax.random.key(1), num_chains))
    plan = Plan(5, num_shards=num_shards)
    chunks = drive(
        Slope(posterior), chain_keys(jax.random.key(2), num_chains), positions, plan, label="", progress=Silent()
    )
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *(chunk.outputs for chunk in chunks))


@pytest.mark.parametrize("num_chains", [1, 3])
def test_density_and_gradient_agree_to_rounding(x64, posterior, num_chains):
    whole, split = (slopes(posterior, num_chains, shards) for shards in (1, 2))
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(split), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_rows_are_split_and_the_rest_is_not(posterior):
    placed = loop._replicate(Slope(posterior), chain_mesh(1, 2))
    assert len(placed.posterior.x.sharding.device_set) == 2
    assert placed.posterior.x.addressable_shards[0].data.shape == (12, 3)
    assert placed.posterior.likelihood_power.is_fully_replicated


@pytest.mark.slow
def test_a_run_agrees_with_the_unsplit_one(x64, posterior):
    method = ws.HMC(num_chains=2, num_draws=20, num_warmup=20, num_leapfrog=5, step_size=0.01)
    whole, split = (method.run(jax.random.key(0), target) for target in (posterior, posterior.sharded(2)))
    np.testing.assert_allclose(whole.log_density, split.log_density, rtol=1e-6)


def test_what_cannot_be_split_is_refused(posterior):
    with pytest.raises(InputError, match="must have a multiple of 5 rows, got 24"):
        posterior.sharded(5)
    with pytest.raises(
        InputError, match=r"split over 3 devices must find as many, got 2. Call `weightscape.devices\(3\)`"
    ):
        ws.HMC(num_chains=1, num_draws=1).run(jax.random.key(0), posterior.sharded(3))
