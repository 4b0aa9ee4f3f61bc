"""Step sizes, and draws exactly where they belong."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError, InputTypeError, decode, encode
from weightscape.inference.sgmcmc.schedules import Constant

SHORT = ws.SGLD(num_chains=2, num_draws=7, num_warmup=24, batch_size=8, step_size=ws.Cyclical(1e-4, 12))


def sizes(schedule, num_steps):
    return np.asarray(jax.vmap(schedule.size)(jnp.arange(num_steps)))


def noises(schedule, num_steps):
    return np.asarray(jax.vmap(schedule.noise)(jnp.arange(num_steps)))


def test_constant_and_polynomial_sizes():
    assert np.all(sizes(Constant(0.3), 5) == np.float32(0.3)) and np.all(noises(Constant(0.3), 5) == 1)
    decay = ws.PolynomialDecay(0.5, offset=4.0, power=0.75)
    a = 0.5 * 4**0.75  # a (b + i)^−γ
    np.testing.assert_allclose(sizes(decay, 50), a * (4 + np.arange(50)) ** -0.75, rtol=1e-5)
    assert sizes(decay, 1)[0] == 0.5
    assert Constant(1.0).gaps(7) == decay.gaps(7) == (7,)


def test_cyclical_sizes_fall_as_a_cosine_and_start_again():
    schedule = ws.Cyclical(0.2, 10, explore=0.45)
    one_cycle = 0.1 * (1 + np.cos(np.pi * np.arange(10) / 10))
    np.testing.assert_allclose(sizes(schedule, 30), np.tile(one_cycle, 3), rtol=1e-5)
    np.testing.assert_array_equal(noises(schedule, 30), np.tile([0] * 5 + [1] * 5, 3))
    assert schedule.gaps(4) == (10,)
    assert ws.Cyclical(0.2, 10, draws_per_cycle=3).gaps(2) == (6, 2, 2)


def test_warm_restarts_grow_and_then_stay():
    schedule = ws.WarmRestarts(0.2, 3, factor=2, num_growing=2, explore=0.5)
    cycle = lambda length: 0.1 * (1 + np.cos(np.pi * np.arange(length) / length))
    np.testing.assert_allclose(
        sizes(schedule, 45), np.concatenate([cycle(3), cycle(6), cycle(12), cycle(12), cycle(12)]), rtol=1e-5
    )
    np.testing.assert_array_equal(noises(schedule, 21)[:9], [0, 0, 1, 0, 0, 0, 1, 1, 1])
    assert schedule.gaps(5) == (12,)
    constant = ws.WarmRestarts(0.2, 10, num_growing=0, draws_per_cycle=2)
    np.testing.assert_allclose(sizes(constant, 25), sizes(ws.Cyclical(0.2, 10), 25), rtol=1e-6)
    assert constant.gaps(3) == (7, 3)


@pytest.mark.parametrize(
    ("schedule", "num_warmup", "places"),
    [
        (ws.Cyclical(1e-4, 12), 24, [11] * 7),
        (ws.Cyclical(1e-4, 12, draws_per_cycle=3, explore=0.4), 24, [5, 8, 11, 5, 8, 11, 5]),
        (ws.WarmRestarts(1e-4, 3, factor=2, num_growing=2, draws_per_cycle=2), 21, [8, 11, 8, 11, 8, 11, 8]),
    ],
    ids=["one", "three", "growing"],
)
def test_draws_are_made_at_the_ends_of_cycles(schedule, num_warmup, places):
    method = dataclasses.replace(SHORT, step_size=schedule, num_warmup=num_warmup, thin=3)
    draws = method.run(jax.random.key(0), linear().posterior)
    expected = 0.5e-4 * (1 + np.cos(np.pi * np.array(places) / 12))
    np.testing.assert_allclose(draws.info["step_size"], np.tile(expected, (2, 1)), rtol=1e-4)
    np.testing.assert_allclose(draws.info["step_size"].min(), sizes(schedule, 200).min(), rtol=1e-4)
    assert np.all(draws.info["noise"] == 1)


def test_exploring_parts_climb_without_noise():
    # Without noise chains from one start stay together as long as their batches are the whole data.
    posterior = linear().posterior
    cycles = ws.Cyclical(1e-4, 40, explore=0.5)
    point = ws.MAP(num_steps=3).run(jax.random.key(1), posterior)
    run = lambda explore: ws.SGHMC(
        num_chains=2,
        num_draws=1,
        num_warmup=0,
        step_size=dataclasses.replace(cycles, explore=explore),
    ).run(jax.random.key(2), posterior, init=point)
    apart = lambda draws: float(np.ptp(np.asarray(draws.log_density)))
    assert apart(run(0.97)) < 0.2 * apart(run(0.0))


def test_numbers_are_leaves_and_survive_storage():
    for schedule in (ws.Cyclical(0.1, 10, explore=0.5), ws.WarmRestarts(0.1, 4), ws.PolynomialDecay(0.1)):
        assert len(jax.tree.leaves(schedule)) >= 3
        again = decode(encode(schedule).tree)
        assert type(again) is type(schedule)
        np.testing.assert_array_equal(sizes(again, 40), sizes(schedule, 40))
    method = ws.SGHMC(step_size=ws.Cyclical(0.1, 10), num_warmup=50, preconditioner=ws.RMSprop(), batch_size=4)
    assert jax.tree.structure(decode(encode(method).tree)) == jax.tree.structure(method)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ws.SGLD(step_size=-1.0), "`step_size` of Constant must be positive"),
        (lambda: ws.PolynomialDecay(0.1, power=1.5), "`power` of PolynomialDecay must be at most 1, got 1.5"),
        (lambda: ws.Cyclical(0.1, 0), "`cycle_length` of Cyclical must be at least 1"),
        (lambda: ws.Cyclical(0.1, 10, explore=1.0), "`explore` of Cyclical must be at least 0 and below 1"),
        (lambda: ws.WarmRestarts(0.1, 5, factor=0), "`factor` of WarmRestarts must be at least 1"),
        (
            lambda: ws.SGLD(step_size=ws.Cyclical(0.1, 30), num_warmup=100),
            "`num_warmup` of SGLD must be whole cycles of 30 transitions, got 100. Pass 90.",
        ),
        (
            lambda: ws.SGHMC(step_size=ws.WarmRestarts(0.1, 10, num_growing=2), num_warmup=50),
            "of SGHMC must be 30 transitions of growing cycles and whole cycles of 40, got 50. Pass 30.",
        ),
        (
            lambda: ws.SGLD(step_size=ws.Cyclical(0.1, 50, draws_per_cycle=4, explore=0.5), num_warmup=50),
            "must come after its exploring part, got 4 draws after 20, 30, 40, … of 50 transitions. Lower",
        ),
    ],
)
def test_errors_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_lengths_are_whole_numbers(unchecked):
    with pytest.raises(InputTypeError, match="`cycle_length` of Cyclical must be a whole number"):
        ws.Cyclical(0.1, 2.5)
