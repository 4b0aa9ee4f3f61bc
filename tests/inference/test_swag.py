"""SWAG against moments of iterates computed apart; mixtures of Gaussians against their closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats
from scipy.special import logsumexp
from tests.known import inferred_noise, linear

import weightscape as ws
from weightscape.core import Deadline, InputError, InputTypeError, Silent, loop
from weightscape.inference import METHODS, Blocks, Diagonal, Full, Gaussian, MixtureOfGaussians, load_approximation

SHORT = {"num_steps": 20, "num_collect": 9, "every": 3, "rank": 4, "batch_size": 5, "learning_rate": 0.03}


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def flat(tree) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def dense(covariance) -> np.ndarray:
    return np.stack([np.asarray(covariance.times(row)) for row in jnp.eye(covariance.size)])


def iterates(key, posterior, position, member: int) -> np.ndarray:
    """The iterates that `SHORT` takes, by a plain loop: 20 steps of Adam with a cosine, then every third of 27."""
    member_key = jax.random.fold_in(jax.random.split(key)[1], member)
    adam = optax.scale_by_adam()
    moments, taken = adam.init(position), []
    slope = jax.jit(jax.grad(posterior.log_density_estimate))
    for index in range(47):
        points = jax.random.randint(jax.random.fold_in(member_key, index), (5,), 0, posterior.num_points)
        direction, moments = adam.update(slope(position, points), moments)
        rate = 0.03 * 0.5 * (1 + np.cos(np.pi * index / 20)) if index < 20 else 0.01
        position = jax.tree.map(lambda leaf, to, rate=rate: leaf + rate * to, position, direction)
        if index >= 20 and (index - 20) % 3 == 2:
            taken.append(flat(position))
    return np.stack(taken)


def swag_moments(taken: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """θ̄ and Σ of the paper's algorithm 1, from stored iterates."""
    variance = np.mean(taken**2, axis=0) - np.mean(taken, axis=0) ** 2
    if rank == 0:
        return taken.mean(axis=0), np.diag(variance)
    running = np.stack([taken[: i + 1].mean(axis=0) for i in range(len(taken))])
    deviations = (taken - running)[-rank:]
    return taken.mean(axis=0), 0.5 * (np.diag(variance) + deviations.T @ deviations / (rank - 1))


def points(posterior, num: int) -> ws.Draws:
    """Points to start from, each a chain of one draw."""
    positions = [posterior.sample_prior_position(jax.random.key(i)) for i in range(num)]
    params = jax.tree.map(lambda *leaves: np.stack(leaves)[:, None], *map(posterior.constrain, positions))
    log_density = np.stack([posterior.log_density(position) for position in positions])[:, None]
    return ws.Draws(params, log_density, posterior.model, posterior.scaling, posterior.example)


@pytest.mark.parametrize(("num_members", "rank"), [(3, 4), pytest.param(1, 0, marks=pytest.mark.slow)])
def test_moments_are_those_of_the_iterates(num_members, rank):
    posterior, key = inferred_noise().posterior, jax.random.key(3)
    start = points(posterior, num_members)
    made = ws.SWAG(**{**SHORT, "num_members": num_members, "rank": rank}).run(key, posterior, init=start)
    components = made.components if isinstance(made, MixtureOfGaussians) else (made,)
    assert len(components) == num_members
    for i, component in enumerate(components):
        position = jax.tree.map(lambda leaf, i=i: leaf[i, 0], start.positions())
        mean, covariance = swag_moments(iterates(key, posterior, position, i), rank)
        # Sums of nine numbers of order one, and a difference of squares in the reference: rounding of 1e-15.
        np.testing.assert_allclose(component.location, mean, atol=1e-12)
        np.testing.assert_allclose(dense(component.covariance), covariance, atol=1e-12)
        assert np.all(np.diag(covariance) > 1e-6)
    assert made.facts["num_collected"] == 9 and made.facts["complete"]


def test_draws_weigh_to_the_evidence_and_there_is_none_of_its_own():
    with jax.enable_x64(False):
        known = linear()
        method = ws.SWAG(num_steps=500, num_collect=200, every=10, batch_size=3, collecting_rate=0.5)
        made = method.run(jax.random.key(0), known.posterior)
        assert made.location.dtype == made.covariance.scale.dtype == jnp.float32
        # Wide enough to cover the posterior, so that the weights can be trusted.
        assert np.all(np.linalg.eigvalsh(dense(made.covariance) - 0.6 * known.covariance) > 0)
        evidence = made.evidence(jax.random.key(1), 4000)
        assert abs(evidence.value - known.log_evidence) < 5 * evidence.standard_error < 0.5
        assert evidence.pareto_k < 0.7
        with pytest.raises(InputError, match="a method that has one, got SWAG"):
            _ = made.log_evidence


def test_settings_are_checked(unchecked):
    with pytest.raises(InputError, match="`batch_size` of SWAG must be a number, got None. Full-batch iterates stop"):
        ws.SWAG(batch_size=None)
    with pytest.raises(InputError, match="from 2 to `num_collect` = 5, got 6"):
        ws.SWAG(num_collect=5, rank=6)
    with pytest.raises(InputError, match="from 2 to `num_collect` = 5, got 1"):
        ws.SWAG(num_collect=5, rank=1)
    with pytest.raises(InputError, match="`collecting_rate` of SWAG must be positive"):
        ws.SWAG(collecting_rate=0.0)
    assert METHODS["swag"] is ws.SWAG


def test_iterates_that_leave_or_stay_are_named():
    posterior = linear().posterior
    with pytest.raises(InputError, match=r"Every weight must vary between the iterates of SWAG, got 3"):
        ws.SWAG(**{**SHORT, "collecting_rate": 1e-300}).run(jax.random.key(0), posterior)
    explosive = ws.networks.Function(lambda key, x: jnp.ones((1, 1)), lambda params, x: x @ jnp.exp(jnp.exp(params)))
    model = ws.Model(explosive, ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
    with pytest.raises(InputError, match=r"SWAG must end at finite weights, got non-finite values in members \[0\]"):
        ws.SWAG(**{**SHORT, "learning_rate": 50.0}).run(
            jax.random.key(0), model.condition(ws.Batch(np.ones((2, 1)), 1e6 * np.ones(2)))
        )


class Killed(BaseException):
    """Ends a run at once."""


class Ending(Silent):
    """Ends the run at the given event; 0 ends it as soon as it begins to work."""

    def __init__(self, event):
        self.event, self.heard = event, 0

    def start(self, label, total):
        if self.event == 0:
            raise Killed

    def advance(self, done, facts):
        self.heard += 1
        if self.heard == self.event:
            raise Killed


def assert_same(left, right):
    assert type(left) is type(right)
    assert jax.tree.structure(left.bare()) == jax.tree.structure(right.bare())
    assert jax.tree.all(jax.tree.map(np.array_equal, left.bare(), right.bare()))


@pytest.mark.parametrize("num_members", [1, 2])
def test_killed_runs_go_on_in_the_same_bits_and_finished_ones_are_loaded(num_members, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 7)
    method = ws.SWAG(num_members=num_members, num_steps=200, num_collect=20, every=2, rank=4, batch_size=5)
    posterior, key = linear().posterior, jax.random.key(3)
    whole = method.run(key, posterior)
    for event in (1, 1, 1, 2, 1):  # in training, at its end, and while collecting
        with pytest.raises(Killed):
            method.run(key, posterior, store=tmp_path, progress=Ending(event), resume=True)
    resumed = method.run(key, posterior, store=tmp_path, resume=True)
    assert_same(resumed, whole)
    assert_same(method.run(key, posterior, store=tmp_path, progress=Ending(0), resume=True), whole)
    assert_same(load_approximation(tmp_path, posterior), whole)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["approximation-0001.safetensors", "approximation.json"]
    with pytest.raises(InputError, match="must have the key"):
        method.run(jax.random.key(4), posterior, store=tmp_path, resume=True)
    with pytest.raises(Killed):
        method.run(key, posterior, store=tmp_path, progress=Ending(0))  # not resumed: begins anew


def test_a_run_over_another_is_resumed_and_one_out_of_time_goes_on(tmp_path):
    method = ws.SWAG(num_steps=10, num_collect=30, every=2, rank=4, batch_size=5)
    posterior, key = linear().posterior, jax.random.key(3)
    method.run(jax.random.key(9), posterior, store=tmp_path)
    short = method.run(key, posterior, store=tmp_path, progress=Deadline(0.0, Silent()))
    assert short.facts["num_collected"] == 8 and not short.facts["complete"]
    resumed = method.run(key, posterior, store=tmp_path, resume=True)
    assert resumed.facts["num_collected"] == 30 and resumed.facts["complete"]
    assert_same(resumed, method.run(key, posterior))


def positive_definite(seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(3, 3)) * np.array([0.2, 1.0, 3.0])[:, None]
    return root @ root.T + 0.05 * np.eye(3)


LOCATIONS = np.array([[0.0, 1.0, -4.0], [3.0, 1.0, 2.0], [-1.0, 5.0, 2.0]])
COVARIANCES = [positive_definite(1), np.diag([0.25, 1.0, 4.0]), positive_definite(3)]


def mixture() -> MixtureOfGaussians:
    posterior = linear().posterior
    like = posterior.start_position(jax.random.key(0))
    parts = [Full.of_covariance(jnp.asarray(COVARIANCES[0])), Diagonal(np.array([0.5, 1.0, 2.0]))]
    parts.append(Full.of_covariance(jnp.asarray(COVARIANCES[2])))
    place = lambda row: jax.tree.map(lambda leaf: jnp.asarray(row.reshape(leaf.shape)), like)
    gaussians = [Gaussian.over(posterior, place(row), part) for row, part in zip(LOCATIONS, parts, strict=True)]
    return MixtureOfGaussians.of(gaussians)


def mixture_covariance() -> np.ndarray:
    deviations = LOCATIONS - LOCATIONS.mean(axis=0)
    return np.mean(COVARIANCES, axis=0) + deviations.T @ deviations / 3


def test_mixture_draws_have_its_moments():
    num, mean, covariance = 40_000, LOCATIONS.mean(axis=0), mixture_covariance()
    draws = mixture().sample(jax.random.key(5), num)
    centred = np.asarray(draws.params.network["layer0"]["weight"])[0, :, :, 0] - mean
    # Independent draws: errors from their own spread, of which there are few enough that six cover all.
    assert np.all(np.abs(centred.mean(axis=0)) < 6 * centred.std(axis=0) / np.sqrt(num))
    products = centred[:, :, None] * centred[:, None, :]
    assert np.all(np.abs(products.mean(axis=0) - covariance) < 6 * products.std(axis=0) / np.sqrt(num))
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.all(products.std(axis=0) / np.sqrt(num) < 0.02 * scale)


def test_mixture_density_and_products_are_the_closed_forms():
    made, point = mixture(), np.array([0.3, -1.0, 0.7])
    place = made.layout.unflatten
    each = [stats.multivariate_normal(m, c).logpdf(point) for m, c in zip(LOCATIONS, COVARIANCES, strict=True)]
    np.testing.assert_allclose(made.log_density(place(jnp.asarray(point))), logsumexp(each) - np.log(3), rtol=1e-10)
    np.testing.assert_allclose(flat(made.mean), LOCATIONS.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(flat(made.variance), np.diag(mixture_covariance()), rtol=1e-12)
    product = made.covariance_vector_product(place(jnp.asarray(point)))
    np.testing.assert_allclose(flat(product), mixture_covariance() @ point, rtol=1e-12)
    draws = made.sample(jax.random.key(0), 5)
    positions = draws.positions().network["layer0"]["weight"][0, :, :, 0]
    again = [made.log_density(place(position)) for position in positions]
    np.testing.assert_allclose(draws.log_proposal[0], again, rtol=1e-12)


def test_mixtures_are_saved_and_loaded_in_the_same_bits(tmp_path):
    made = mixture()
    made.save(tmp_path / "mixture")
    made.components[0].save(tmp_path / "gaussian")
    assert_same(MixtureOfGaussians.load(tmp_path / "mixture", made.posterior), made)
    with pytest.raises(InputTypeError, match="must hold a MixtureOfGaussians, got Gaussian"):
        MixtureOfGaussians.load(tmp_path / "gaussian", made.posterior)


def test_mixtures_that_do_not_fit_are_refused():
    made = mixture()
    some = Blocks((Diagonal(np.ones(2)),), (np.array([0, 2]),), 3)
    fixed = Gaussian.over(made.posterior, made.mean, some)
    with pytest.raises(InputError, match=r"must leave none of 3 weights fixed, got \[3, 2\] that vary"):
        MixtureOfGaussians.of([made.components[0], fixed])
    with pytest.raises(InputError, match="must have a component"):
        MixtureOfGaussians.of([])
