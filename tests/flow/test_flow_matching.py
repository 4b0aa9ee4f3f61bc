"""Flow matching from end to end, on a network of seven weights whose posterior has exact draws."""

import dataclasses

import diffrax
import jax
import numpy as np
import pytest
from tests.flow import tiny
from tests.flow.linear_flows import known_draws, problem, weights_of
from tests.inference.test_resume import Ending, Killed

import weightscape as ws
from weightscape.core import InputError, loop
from weightscape.draws import draw_weights, recorder
from weightscape.flow import (
    Equivariant,
    FixedSteps,
    OfTarget,
    OfVelocity,
    OptimalTransport,
    Plain,
    Principal,
    Straight,
    flow_matching,
)
from weightscape.flow.source import PriorSource, WhitenedSource
from weightscape.metanet import Sizes
from weightscape.symmetry import discover

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def trained():
    """A guided flow, in double precision."""
    with jax.enable_x64(True):
        return tiny.METHOD.run(KEY, tiny.posterior(), draws=tiny.draws())


def numbers(flow):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(flow.model) if hasattr(leaf, "shape")]


def assert_evidence(flow, prior="normal", num_draws=2000):
    """Importance weights average to the evidence, however bad the flow is, as the share of accepted draws tells it."""
    _, known, error = tiny.accepted(prior)
    found = flow.evidence(jax.random.key(21), num_draws)
    assert found.effective_sample_size > 30
    assert abs(found.value - known) < 5 * np.hypot(found.standard_error, error)
    return found


def test_training_closes_most_of_the_gap(trained):
    before = tiny.untrained(tiny.METHOD).gap(jax.random.key(1), tiny.draws())
    after = trained.gap(jax.random.key(1), tiny.draws())
    # Before training q is the prior, and J = E_p[log L] − E_prior[log L].
    target = tiny.posterior()
    positions = jax.vmap(target.sample_prior_position)(jax.random.split(jax.random.key(3), 20_000))
    prior = np.asarray(jax.jit(jax.vmap(target.log_likelihood))(positions))
    rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tiny.draws().positions())
    known = np.mean(jax.jit(jax.vmap(target.log_likelihood))(rows)) - np.mean(prior)
    # The prior's log likelihoods have a long tail, and 256 of them tell their error to a tenth or two.
    assert abs(before.value - known) < 6 * np.hypot(before.standard_error, np.std(prior) / 20_000**0.5)
    assert after.value + 5 * after.standard_error < 0.4 * before.value
    assert after.value > -5 * after.standard_error
    assert_evidence(trained)


def test_what_was_seen_is_among_the_facts(trained):
    facts = trained.facts
    assert (facts["method"], facts["complete"], facts["num_steps"]) == ("FlowMatching", True, 400)
    assert (facts["num_train"], facts["num_held_out"], facts["left_out"]) == (900, 100, 0)
    assert len(facts["losses"]) == len(facts["held_out_losses"]) == 20
    assert np.all(np.isfinite(facts["losses"])) and np.all(np.isfinite(facts["held_out_losses"]))


def assert_invariant(flow):
    """log q is the same for equivalent networks, to the rounding of some thousand products."""
    symmetry, draws = discover(tiny.posterior()), tiny.draws()[:2, :8]
    known = flow.log_densities(draws)
    assert np.std(known) > 0.1
    equivalent = [symmetry.apply(draws, symmetry.random(jax.random.key(seed))) for seed in range(5)]
    assert len({weights_of(moved).tobytes() for moved in equivalent}) > 2
    for moved in equivalent:
        np.testing.assert_allclose(flow.log_densities(moved), known, rtol=1e-9)


def test_the_learned_density_is_invariant(trained):
    assert_invariant(trained)


@pytest.mark.parametrize(
    ("guided", "sizes"),
    [
        (False, tiny.SIZES),
        pytest.param(False, tiny.DEEP, marks=pytest.mark.slow),
        pytest.param(True, tiny.DEEP, marks=pytest.mark.slow),
    ],
)
def test_any_equivariant_density_is_invariant(guided, sizes):
    method = dataclasses.replace(tiny.METHOD, architecture=Equivariant(sizes, guided=guided))
    assert_invariant(tiny.shaken(tiny.untrained(method)))


def test_a_killed_training_ends_in_the_same_bits(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 3)
    monkeypatch.setattr(recorder, "_WRITE_SHARE", -1.0)  # writes are due at once, however slow the machine is
    monkeypatch.setattr(recorder, "_WORK_PER_WRITE", 0.0)
    posterior, draws = tiny.posterior(), tiny.draws()
    with pytest.raises(Killed):
        tiny.METHOD.run(KEY, posterior, draws=draws, store=tmp_path, progress=Ending(3))
    assert list(tmp_path.glob("state-*"))
    resumed = tiny.METHOD.run(KEY, posterior, draws=draws, store=tmp_path, resume=True)
    assert resumed.facts["complete"]
    for name in ("losses", "held_out_losses"):
        assert resumed.facts[name] == trained.facts[name] and len(trained.facts[name]) == 20
    finished = tiny.METHOD.run(KEY, posterior, draws=draws, store=tmp_path, resume=True, progress=Ending(1))
    for flow in (resumed, finished):
        for ours, theirs in zip(numbers(flow), numbers(trained), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(InputError, match="must have the key"):
        tiny.METHOD.run(jax.random.key(1), posterior, draws=draws, store=tmp_path, resume=True)


def test_training_goes_on_from_a_flow(trained):
    """Steps of no length leave it where it was: 400 of 1e-12."""
    still = dataclasses.replace(tiny.METHOD, learning_rate=1e-12)
    again = still.run(jax.random.key(7), tiny.posterior(), draws=tiny.draws(), init=trained)
    for ours, theirs in zip(numbers(again), numbers(trained), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_what_cannot_be_trained_is_named(trained):
    posterior, draws = tiny.posterior(), tiny.draws()
    with pytest.raises(InputError, match="must be Independent.. where pulls are learned, got OptimalTransport"):
        ws.FlowMatching(coupling=OptimalTransport())
    with pytest.raises(InputError, match="must learn from draws, got none"):
        tiny.METHOD.run(KEY, posterior)
    plain = dataclasses.replace(tiny.METHOD, architecture=Plain(tiny.SIZES))
    with pytest.raises(InputError, match="must keep its architecture and prediction, got Equivariant"):
        plain.run(KEY, posterior, draws=draws, init=trained)
    with pytest.raises(InputError, match="must be a Flow, or None, got Draws"):
        plain.run(KEY, posterior, draws=draws, init=draws)
    for name, value in (("num_steps", 0), ("batch_size", 1), ("learning_rate", -1.0), ("held_out", 1.5)):
        with pytest.raises(InputError, match=f"`{name}` of FlowMatching"):
            dataclasses.replace(tiny.METHOD, **{name: value})


SHORT = dataclasses.replace(tiny.METHOD, num_steps=40, architecture=Plain(tiny.SIZES))
VARIANTS = {
    "plain on couplings": (
        dataclasses.replace(SHORT, prediction=OfVelocity(), coupling=OptimalTransport(), path=Straight()),
        "normal",
        WhitenedSource,
    ),
    "principal by targets": (
        # One that has not learned how a target lies beside its point leads all to one place, and few weights count:
        # it must hear the time, which blocks do, and learn for longer.
        dataclasses.replace(
            tiny.METHOD,
            num_steps=2000,
            learning_rate=5e-3,
            architecture=Principal(Sizes(width=16, num_blocks=1)),
            prediction=OfTarget(),
            solver=FixedSteps(24, diffrax.Tsit5()),
        ),
        "normal",
        WhitenedSource,
    ),
    "student by pulls": (SHORT, "student", WhitenedSource),
    "student by velocities": (dataclasses.replace(SHORT, prediction=OfVelocity()), "student", PriorSource),
}
QUICK = ("student by pulls",)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in VARIANTS]
)
def test_every_kind_of_flow_trains_and_weighs_to_the_evidence(name):
    method, prior, source = VARIANTS[name]
    flow = method.run(KEY, tiny.posterior(prior), draws=tiny.draws(prior))
    assert isinstance(flow.source, source)
    assert np.all(np.isfinite(flow.facts["held_out_losses"]))
    assert any(
        np.any(ours != new) for ours, new in zip(numbers(flow), numbers(tiny.untrained(method, prior)), strict=True)
    )
    assert_evidence(flow, prior)


def test_a_flow_that_has_learned_little_is_corrected_by_its_weights():
    """Linear regression, 40 steps: weighted moments are those of the posterior, unweighted ones are not."""
    flow = SHORT.run(KEY, problem().posterior, draws=known_draws((20, 50)))
    draws = flow.sample(jax.random.key(2), 8000)
    weights, values = draw_weights(ws.flow.weighted(draws))[0], weights_of(draws)[0]
    centred = values - problem().mean[None]
    for found, known in ((values, problem().mean), (centred[:, :, None] * centred[:, None, :], problem().covariance)):
        mean = np.tensordot(weights, found, 1)
        error = np.sqrt(np.tensordot(weights**2, (found - mean) ** 2, 1))
        assert np.all(np.abs(mean - known) < 5.5 * error)
        assert np.any(np.abs(found.mean(0) - known) > 10 * error)


def test_zero_weights_are_never_seen(monkeypatch):
    """Draws with no importance weight may be anything: the same flow comes out."""
    # Other draws are another run, with other keys, whatever their weights; here both runs have one key.
    monkeypatch.setattr(flow_matching, "key_with_draws", lambda key, draws: key)
    method = dataclasses.replace(SHORT, prediction=OfVelocity())
    log_weights = np.zeros((20, 50))
    log_weights[3:6] = -np.inf
    flows = []
    for size in (1.0, 3.0):
        grow = lambda leaf, size=size: np.concatenate([leaf[:3], size * leaf[3:6], leaf[6:]])
        given = {"log_weights": log_weights, "log_density": tiny.draws().log_density}
        draws = dataclasses.replace(tiny.draws().map_leaves(grow), **given)
        flows.append(method.run(KEY, tiny.posterior(), draws=draws))
    for one, other in zip(numbers(flows[0]), numbers(flows[1]), strict=True):
        np.testing.assert_array_equal(one, other)
