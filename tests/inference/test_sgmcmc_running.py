"""Stochastic-gradient methods as runs: bits, compilation, interruption, chains that fail, settings."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError, InputTypeError, Silent
from weightscape.inference import METHODS, Constant
from weightscape.inference.sgmcmc.minibatches import Minibatches
from weightscape.inference.sgmcmc.nose_hoover import NoseHoover

LENGTHS = {"num_chains": 2, "num_draws": 40, "num_warmup": 24, "thin": 3}
METHODS_HERE = {
    "ula": ws.ULA(**LENGTHS, step_size=1e-4, preconditioner=ws.RMSprop(keep_adapting=True)),
    "sgld": ws.SGLD(**LENGTHS, step_size=ws.Cyclical(1e-4, 12, draws_per_cycle=2), batch_size=8),
    "sghmc": ws.SGHMC(**LENGTHS, step_size=1e-3, batch_size=8, gradient_noise=ws.HalfBatchNoise()),
    "sgnht": ws.SGNHT(**LENGTHS, step_size=1e-3, batch_size=8, preconditioner=ws.RMSprop()),
}


class Impatient(Silent):
    """Interrupts a phase at its second chunk, as Ctrl-C does."""

    def __init__(self, phase):
        self.phase = phase

    def start(self, label, total):
        self.label, self.num_chunks = label, 0

    def advance(self, done, facts):
        self.num_chunks += 1
        if self.label == self.phase and self.num_chunks == 2:
            raise KeyboardInterrupt


QUICK = ("sghmc",)
EACH = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in METHODS_HERE]


@pytest.mark.parametrize("name", EACH)
def test_an_interrupted_run_goes_on_in_the_same_bits(name, tmp_path):
    posterior, method = linear().posterior, METHODS_HERE[name]
    assert METHODS[name] is type(method)
    whole = method.run(jax.random.key(0), posterior)
    again = method.run(jax.random.key(0), posterior)
    other = method.run(jax.random.key(1), posterior)
    for phase in ("warm-up", "sampling"):
        with pytest.raises(KeyboardInterrupt):
            method.run(jax.random.key(0), posterior, store=tmp_path / phase, progress=Impatient(phase))
        resumed = method.run(jax.random.key(0), posterior, store=tmp_path / phase, resume=True)
        assert resumed.num_draws == 40
        jax.tree.map(np.testing.assert_array_equal, resumed.sampled(), whole.sampled())
    jax.tree.map(np.testing.assert_array_equal, again.sampled(), whole.sampled())
    assert not np.array_equal(other.log_density, whole.log_density)
    # The noted log density is the target's, of all points, at the draw.
    exact = jax.vmap(jax.vmap(posterior.log_density))(whole.positions())
    np.testing.assert_allclose(whole.log_density, exact, rtol=1e-4)


def test_no_number_recompiles():
    traces = []

    def apply(params, x):
        traces.append(None)
        return x @ params

    network = ws.networks.Function(lambda key, x: jnp.zeros((x.shape[1], 1)), apply)

    def run(seed, method):
        model = ws.Model(network, ws.likelihoods.Gaussian(0.3 + seed), ws.priors.Normal(1.0 + seed))
        batch = ws.Batch(np.random.default_rng(seed).normal(size=(20, 3)), np.linspace(-1, 1, 20))
        posterior, before = model.condition(batch), len(traces)
        method.run(jax.random.key(seed), posterior)
        return len(traces) - before

    first = ws.SGHMC(
        **LENGTHS,
        step_size=ws.Cyclical(1e-4, 12, explore=0.1),
        batch_size=4,
        gradient_noise=3.0,
        preconditioner=ws.RMSprop(),
    )
    second = dataclasses.replace(
        first,
        num_draws=35,
        num_warmup=40,
        step_size=ws.Cyclical(2e-4, 20, explore=0.2),
        friction=3.0,
        gradient_noise=5.0,
        temperature=0.5,
        preconditioner=ws.RMSprop(decay=0.9, floor=1e-3),
    )
    compiled, shapes_only = run(0, first), run(1, second)
    # What is left is `eval_shape` for the buffer's size: a gradient estimate and a log density in either phase.
    assert compiled > 8
    assert shapes_only <= 2 * 3


def test_the_log_density_of_all_points_is_computed_for_kept_draws_only():
    sizes = []

    def apply(params, x):
        jax.debug.callback(lambda: sizes.append(len(x)))
        return x @ params

    network = ws.networks.Function(lambda key, x: jnp.zeros((x.shape[1], 1)), apply)
    model = ws.Model(network, ws.likelihoods.Gaussian(0.3), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.random.default_rng(0).normal(size=(20, 3)), np.linspace(-1, 1, 20)))
    sizes.clear()
    ws.SGLD(num_chains=1, num_draws=5, num_warmup=10, thin=4, batch_size=2, step_size=1e-5).run(
        jax.random.key(0), posterior
    )
    jax.effects_barrier()
    assert sizes.count(2) == 10 + 5 * 4
    assert sizes.count(20) == 5 + 1  # one more where the chain starts


def test_chains_that_blow_up_are_named():
    posterior = linear().posterior
    start = ws.SGHMC(**LENGTHS, step_size=1e-3).run(jax.random.key(0), posterior)
    method = ws.ULA(**LENGTHS, step_size=0.1)  # hλ is 130, and 4 is the most
    with pytest.raises(InputError, match="At least one chain must move and be finite"):
        method.run(jax.random.key(0), posterior, init=start)
    draws = method.run(jax.random.key(0), posterior, init=start, keep_all=True)
    assert not np.any(np.isfinite(draws.log_density[:, -1])) and not np.any(draws.info["is_accepted"][:, -1])
    assert [reason for _, reason in draws.health.flagged] == ["its log density is not finite"] * 2


def test_a_placed_chain_is_at_rest_and_keeps_its_tuning():
    posterior = linear().posterior
    sampler = NoseHoover(posterior, Minibatches(None), Constant(1e-3), ws.RMSprop(), jnp.asarray(2.0))
    start = posterior.start_position(jax.random.key(0))
    state, _ = sampler.adapt(jax.random.key(1), sampler.init(start), jnp.asarray(0))
    placed = sampler.place(state, start)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(placed.momentum))
    assert placed.thermostat == state.thermostat and placed.preconditioner is state.preconditioner
    jax.tree.map(np.testing.assert_array_equal, sampler.position(placed), start)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ws.ULA(num_draws=0), "`num_draws` of ULA must be at least 1, got 0"),
        (lambda: ws.SGLD(batch_size=0), "`batch_size` of SGLD must be at least 1, got 0"),
        (lambda: ws.SGHMC(friction=0.0), "`friction` of SGHMC must be positive"),
        (lambda: ws.SGNHT(temperature=-1.0), "`temperature` of SGNHT must be positive"),
        (lambda: ws.SGHMC(gradient_noise=-1.0), "`gradient_variance` of KnownNoise must be finite and not negative"),
        (lambda: ws.SGHMC(gradient_noise=ws.HalfBatchNoise(), batch_size=5), "must have an even `batch_size`"),
        (lambda: ws.SGLD(preconditioner=ws.RMSprop(), num_warmup=0), "must be positive where RMSprop learns in it"),
        (lambda: ws.RMSprop(decay=1.0), "`decay` of RMSprop must lie strictly between 0 and 1"),
        (
            lambda: ws.SGLD(batch_size=41).run(jax.random.key(0), linear().posterior),
            "`batch_size` of SGLD must be at most the number of points, 40, got 41. Pass a smaller",
        ),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_discrete_weights_and_other_preconditioners_are_refused(unchecked):
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(1.0), ws.priors.signs())
    posterior = model.condition(ws.Batch(np.ones((8, 1)), np.ones(8)))
    for method in METHODS_HERE.values():
        with pytest.raises(InputError, match="got discrete weights"):
            method.run(jax.random.key(0), posterior)
    with pytest.raises(InputTypeError, match="`preconditioner` of SGLD must be a Preconditioner, got float. Pass"):
        ws.SGLD(preconditioner=1.0)
