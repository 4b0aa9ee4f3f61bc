"""A flow after a sampler is the flow that the two make one after the other, and is resumed with both."""

import diffrax
import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import Deadline, Silent
from weightscape.flow.after import FlowAfter, _first_part, small_flow
from weightscape.metanet import Sizes

SAMPLER = ws.HMC(num_chains=3, num_draws=10, num_warmup=20, num_leapfrog=3)
FLOW = ws.FlowMatching(
    num_steps=20,
    batch_size=8,
    architecture=ws.flow.Plain(Sizes(width=8, num_blocks=1)),
    prediction=ws.flow.OfVelocity(),
    solver=ws.flow.FixedSteps(2, diffrax.Heun()),
    gap_every=0,
)


@pytest.fixture(scope="module")
def posterior():
    data = ws.data.load("noisy_line")
    return ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(0.2), ws.priors.Normal(1.0)).condition(
        data.train
    )


def numbers(flow):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(flow.model) if hasattr(leaf, "shape")])


def test_it_is_the_flow_of_the_samplers_draws_and_kept_with_them(posterior, tmp_path):
    key = jax.random.key(3)
    both = FlowAfter(SAMPLER, FLOW).run(key, posterior, store=tmp_path, keep_all=True)
    key_sampler, _, key_flow = jax.random.split(key, 3)
    draws = SAMPLER.run(key_sampler, posterior, keep_all=True)
    apart = FLOW.run(key_flow, posterior, draws=draws)
    np.testing.assert_array_equal(numbers(both), numbers(apart))
    kept = ws.Draws.load(tmp_path / "stages" / "draws")
    np.testing.assert_array_equal(kept.log_density, draws.log_density)
    again = FlowAfter(SAMPLER, FLOW).run(key, posterior, store=tmp_path, resume=True, keep_all=True)
    np.testing.assert_array_equal(numbers(again), numbers(both))
    np.testing.assert_array_equal(numbers(ws.Flow.load(tmp_path, posterior)), numbers(both))


def test_chains_may_take_a_part_of_the_time_only():
    assert _first_part(Silent()).seconds_left() == float("inf")
    assert 0 < _first_part(Deadline(100.0, Silent())).seconds_left() <= 40.0


@pytest.mark.parametrize("width", [6, 16])
def test_a_small_flow_has_the_sizes_that_are_asked_for(width):
    sizes = small_flow(30, width, 3).architecture.sizes
    assert (sizes.width, sizes.num_blocks, sizes.width % sizes.num_heads) == (width, 3, 0)
    assert small_flow(30).num_steps == 30
