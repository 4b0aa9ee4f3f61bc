"""Landings: weights are exact for any pull and any step size, down and back, and vary less with more levels."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow.linear_flows import known_draws, problem, weights_of
from tests.flow.test_diffusion import diffusion, log_weights

from weightscape.core.checks import InputError
from weightscape.flow import Diffusion, Landing, tuned_landing

pytestmark = pytest.mark.usefixtures("x64")


def landed(*, share=0.6, num_steps=6, **landing):
    """A pull that is too weak, to a time where much is still to be said; its steps are long enough to be refused."""
    settings = {"time": 0.6, "num_levels": 4, "num_leapfrog": 2, "step_size": 1.6} | landing
    return dataclasses.replace(diffusion(num_steps=num_steps, share=share, damping=0.5), landing=Landing(**settings))


def acceptances(made, num_draws=2000):
    one = lambda key: made.landed(key, made.walked(key)[0]).acceptance
    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(9), num_draws)))


def test_weighted_draws_that_have_landed_have_the_moments_and_the_evidence_of_the_posterior():
    made = landed()
    assert 0.3 < acceptances(made).mean() < 0.95
    draws, found = made.sample(jax.random.key(1), 20_000), made.evidence(jax.random.key(1), 20_000)
    assert abs(found.value - problem().log_evidence) < 5 * found.standard_error < 0.25
    normed = np.exp(log_weights(draws) - log_weights(draws).max())
    normed /= normed.sum()
    centred = weights_of(draws).reshape(-1, 3) - problem().mean
    errors = lambda values: np.sqrt(normed**2 @ (values - normed @ values) ** 2)
    assert np.all(np.abs(normed @ centred) < 5.5 * errors(centred))
    products = (centred[:, :, None] * centred[:, None, :]).reshape(-1, 9)
    assert np.all(np.abs(normed @ products - problem().covariance.ravel()) < 5.5 * errors(products))


def test_ways_down_and_back_have_the_weights_of_each_other_reversed():
    """E_B[1 / (1 + w / p(D))] = E_F[w / (w + p(D))], Bennett's identity, whose terms are bounded on both sides."""
    made = landed(share=0.8)
    down = log_weights(made.sample(jax.random.key(1), 20_000)) - problem().log_evidence
    back = np.ravel(made.log_weights(known_draws((1, 20_000)))) - problem().log_evidence
    ours, theirs = 1 / (1 + np.exp(-down)), 1 / (1 + np.exp(back))
    error = np.hypot(ours.std(), theirs.std()) / ours.size**0.5
    assert abs(ours.mean() - theirs.mean()) < 5 * error < 0.02


def test_j_of_a_landing_falls_with_the_number_of_levels_as_one_over_it():
    """With the right pull in many steps the rest of J is the landing's."""
    made = [landed(share=1.0, num_steps=400, time=0.4, num_levels=n, step_size=0.3, num_leapfrog=4) for n in (8, 32)]
    gaps = [each.gap(jax.random.key(4), known_draws((4, 1000)), num_draws=4000) for each in made]
    slack = 5 * np.hypot(gaps[0].standard_error, 4 * gaps[1].standard_error) / (4 * gaps[1].value)
    assert gaps[1].value > 4 * gaps[1].standard_error
    assert abs(gaps[0].value / (4 * gaps[1].value) - 1) < 0.4 + slack


def test_steps_are_tuned_to_the_wanted_acceptance_from_both_sides():
    for step_size in (0.05, 2.5):
        tuned = tuned_landing(jax.random.key(2), landed(step_size=step_size))
        assert tuned.landing is not None
        assert abs(acceptances(tuned).mean() - 0.8) < 0.1


def test_what_a_landing_cannot_do_is_named():
    made = landed()
    with pytest.raises(InputError, match="`push` must be asked of a Diffusion without a landing"):
        made.push(jnp.zeros(18))
    with pytest.raises(InputError, match="A landing must know the data"):
        Diffusion(dataclasses.replace(made.flow, posterior=None), landing=Landing())
    with pytest.raises(InputError, match="`tuned_landing` must be given a Diffusion with a landing"):
        tuned_landing(jax.random.key(0), diffusion())
    with pytest.raises(InputError, match="`time` of Landing must lie between 0 and 1, got 1.0"):
        Landing(time=1.0)
    assert made.facts["landing"]["num_levels"] == 4
