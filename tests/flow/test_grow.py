"""Flows that make their own training set."""

import dataclasses

import jax
import numpy as np
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import Silent
from weightscape.core.checks import InputError
from weightscape.flow import Equivariant, FlowMatching, Growth, Plain, grow_flow, prior_draws
from weightscape.flow.grow import _chosen, _joined, _Set
from weightscape.metanet import Sizes


def posterior():
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    y = np.sin(3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=12)
    model = ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(scale=0.3), ws.priors.Normal(scale=1.5))
    return model.condition(ws.Batch(x, y.astype(np.float32)))


def method(num_steps=300):
    return FlowMatching(
        num_steps=num_steps,
        batch_size=64,
        learning_rate=3e-3,
        average=0.99,
        architecture=Equivariant(Sizes(width=16, edge_width=8, num_blocks=1, num_heads=4)),
        gap_every=0,
    )


def test_sets_to_train_on_are_the_newest_and_those_that_arrived():
    first, second, third = (prior_draws(jax.random.key(i), posterior(), 12) for i in range(3))
    together = _joined([_Set(first, False), _Set(second, True), _Set(third, False)])
    np.testing.assert_array_equal(together.log_density[0], np.r_[second.log_density[0], third.log_density[0]])


def test_too_few_starts_are_refused():
    target = posterior()
    with pytest.raises(InputError, match="at least 16 draws, got 3"):
        grow_flow(jax.random.key(0), method(), target, prior_draws(jax.random.key(1), target, 3))
    with pytest.raises(InputError, match="`num_draws` of Growth must be at least 16, got 3"):
        Growth(num_draws=3)


def test_draws_are_chosen_by_their_weights_of_which_none_decides_alone():
    draws = prior_draws(jax.random.key(0), posterior(), 100)
    odds = np.where(np.arange(100) < 20, np.log(3.0), 0.0)
    log_density = np.asarray(draws.log_density)
    even = dataclasses.replace(draws, log_proposal=log_density - odds[None])
    chosen = np.asarray(_chosen(even, 140).log_density)[0]
    times = [int(np.sum(chosen == value)) for value in log_density[0]]
    assert times == [3] * 20 + [1] * 80
    huge = dataclasses.replace(draws, log_proposal=log_density - np.where(np.arange(100) < 1, 50.0, 0.0)[None])
    chosen = np.asarray(_chosen(huge, 100).log_density)[0]
    assert np.all(chosen == log_density[0, 0])  # beside e⁵⁰ all others are nothing, even after it was cut


@pytest.fixture(scope="module")
def grown():
    plain = FlowMatching(
        num_steps=300,
        batch_size=64,
        learning_rate=1e-2,
        average=0.98,
        architecture=Plain(Sizes(width=16, num_blocks=1)),
        gap_every=0,
    )
    growth = Growth(num_rounds=2, num_draws=128, num_transitions=4, kernel=ws.HMC(num_warmup=10, num_leapfrog=8))
    return grow_flow(jax.random.key(0), plain, linear().posterior, growth=growth, progress=Silent())


def test_the_evidence_of_a_grown_flow_is_the_closed_form(grown):
    """Both its own and that of the way from the prior; within 5 standard errors, with a flow of which draws count."""
    evidence = grown.flow.evidence(jax.random.key(3), 256)  # as many as a round draws: one program
    assert evidence.is_trusted
    for found in (evidence, grown.log_evidence):
        assert abs(found.value - linear().log_evidence) < 5 * found.standard_error


def test_rounds_tell_what_they_trained_on_and_what_it_cost(grown):
    assert [each.num_draws for each in grown.rounds] == [128, 256]
    # Trajectories of 4 to 12 steps, in 10 + 4 transitions of 128 chains, and one gradient at the start.
    assert all(128 * (1 + 4 * 14) <= each.num_gradients <= 128 * (1 + 12 * 14) for each in grown.rounds)
    assert len(grown.draws) == len(grown.starts) == 128 and grown.starts.facts["num_stages"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5])
def test_a_flow_that_grows_from_the_prior_agrees_with_a_ladder(seed):
    target = posterior()
    growth = Growth(kernel=ws.HMC(num_warmup=10, num_leapfrog=16))
    grown = grow_flow(jax.random.key(seed), method(1200), target, growth=growth, progress=Silent())
    assert grown.rounds[-1].gap.value < 8
    rungs = ws.ParallelTempering(num_draws=2000).run(jax.random.key(2), target, progress=Silent())
    truth, evidence = ws.ladder_evidence(rungs), grown.flow.evidence(jax.random.key(3), 2000)
    assert abs(evidence.value - truth.value) < 4 * np.hypot(evidence.standard_error, truth.standard_error)
    assert grown.log_evidence is not None
    error = np.hypot(grown.log_evidence.standard_error, truth.standard_error)
    assert abs(grown.log_evidence.value - truth.value) < 4 * error
