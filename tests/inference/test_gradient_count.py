"""Gradients that methods take, against sums by hand and against what HMC notes of its own transitions."""

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.inference import METHODS
from weightscape.inference.chains import Schedule
from weightscape.inference.gradient_count import _COUNTS, num_gradients, num_transitions


@pytest.mark.parametrize(
    ("method", "count"),
    [
        (ws.HMC(num_chains=3, num_draws=20, num_warmup=7, thin=2, num_leapfrog=5), 3 * (7 + 40) * 5),
        (ws.HMC(trajectory=1.0), None),
        (ws.MALA(num_chains=2, num_draws=10, num_warmup=30, thin=4), 2 * 70),
        (ws.MCLMC(num_chains=2, num_draws=10, num_warmup=30, thin=4), 2 * 2 * 70),
        (ws.MAP(num_steps=50), 50),
        (ws.DeepEnsemble(num_members=4, num_steps=50, batch_size=25), 4 * 50 / 4),
        (ws.Population(num_runs=5, num_steps=40, num_draws=3, every=2, last_rate=1e-3), 5 * (40 + 6)),
        (ws.MeanFieldVI(num_steps=30, num_samples=6), 180),
        (ws.SGHMC(num_chains=2, num_draws=10, num_warmup=30, thin=4, batch_size=10), 2 * 70 / 10),
        (ws.NUTS(), None),
        (ws.Laplace(), None),
        (ws.flow.FlowAfter(), None),
    ],
)
def test_settings_say_how_many(method, count):
    assert num_gradients(method, 100) == count


def test_gaps_that_differ_come_in_turn():
    assert num_transitions(Schedule(2, 5, 10, (7, 1, 1))) == 2 * (10 + (7 + 1 + 1) + (7 + 1))


def test_every_method_is_counted_or_known_to_have_no_number():
    without = {ws.NUTS, ws.Laplace, ws.SWAG, ws.NeuralLinear, ws.ParallelTempering}
    assert set(METHODS.values()) - set(_COUNTS) == without


def test_hmc_notes_as_many_steps():
    data = ws.data.load("noisy_line")
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(0.3), ws.priors.Normal())
    method = ws.HMC(num_chains=2, num_draws=50, num_warmup=0, num_leapfrog=6, jitter=0.0, step_size=0.02)
    draws = method.run(jax.random.key(0), model.condition(data.train))
    assert np.sum(draws.info["num_leapfrog"]) == num_gradients(method, 60)
