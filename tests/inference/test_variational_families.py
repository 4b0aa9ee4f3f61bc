"""Families of one number against scipy, and the mean-field density made of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import weightscape as ws
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.draws import Header
from weightscape.inference import LogEvidence, MeanField, load_approximation
from weightscape.inference.variational.families import Family
from weightscape.inference.variational.mean_field import MeanFieldGuide

FAMILIES = {
    "normal": (ws.families.Normal(), stats.norm()),
    "logistic": (ws.families.Logistic(), stats.logistic()),
    "laplace": (ws.families.Laplace(), stats.laplace()),
    "student": (ws.families.StudentT(5.0), stats.t(5.0)),
    "student_heavy": (ws.families.StudentT(2.5), stats.t(2.5)),
}
every_family = pytest.mark.parametrize("name", FAMILIES)


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def pair(name: str) -> tuple[Family, stats.rv_continuous]:
    ours, theirs = FAMILIES[name]
    return jax.tree.map(lambda leaf: leaf.astype(float), ours), theirs


@every_family
def test_quantile_density_variance_and_entropy_are_those_of_scipy(name):
    ours, theirs = pair(name)
    u = np.concatenate([10.0 ** -np.arange(1, 17), np.linspace(0.01, 0.99, 50), 1 - 10.0 ** -np.arange(2, 12)])
    found, truth = np.asarray(ours.quantile(jnp.asarray(u))), theirs.ppf(u)
    np.testing.assert_allclose(found[:66], truth[:66], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found[66:], truth[66:], rtol=1e-5)  # 1 − u errs by 1e-16, of down to 1e-11
    z = np.linspace(-30, 30, 121)
    np.testing.assert_allclose(ours.log_density(jnp.asarray(z)), theirs.logpdf(z), rtol=1e-11)
    np.testing.assert_allclose(ours.variance(), theirs.var(), rtol=1e-12)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-10)


@every_family
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_have_the_law(name, dtype):
    ours, theirs = FAMILIES[name]
    num = 100_000
    z = np.asarray(ours.sample(jax.random.key(1), (num,), np.dtype(dtype)))
    assert z.dtype == dtype and np.all(np.isfinite(z))
    # P(√n D > 3) = 2 e^−18, three in a hundred million (Kolmogorov).
    assert np.sqrt(num) * stats.kstest(z, theirs.cdf).statistic < 3
    assert abs(np.mean(z > 0) - 0.5) < 5 * 0.5 / np.sqrt(num)


def mean_field(family: Family) -> MeanField:
    """Over a matrix and a vector leaf: six weights."""
    model = ws.Model(ws.networks.MLP(hidden=(), outputs=2), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.ones((3, 2)), np.ones((3, 2))))
    layout = Layout.of(posterior.start_position(jax.random.key(0)))
    header = Header(posterior.model, posterior.scaling, posterior.example)
    known = (header, posterior, LogEvidence(-3.0, "lower bound", 0.1), Facts(method="MeanFieldVI"))
    return MeanField(*known, jnp.linspace(-1, 1, 6), jnp.geomspace(0.1, 3.0, 6), family, layout)


@every_family
def test_mean_field_draws_and_density(name):
    ours, theirs = pair(name)
    q, num = mean_field(ours), 20_000
    draws = q.sample(jax.random.key(2), num)
    flat = np.concatenate([np.asarray(leaf)[0].reshape(num, -1) for leaf in jax.tree.leaves(draws.params)], axis=1)
    standard = (flat - np.linspace(-1, 1, 6)) / np.geomspace(0.1, 3.0, 6)
    for column in standard.T:
        assert np.sqrt(num) * stats.kstest(column, theirs.cdf).statistic < 3
    # Signs of different coordinates are independent: correlations of ±1 variables err by 1/√n.
    signs = np.sign(standard)
    assert np.abs(signs.T @ signs / num - np.eye(6)).max() < 5 / np.sqrt(num)
    truth = theirs.logpdf(standard).sum(axis=1) - np.log(np.geomspace(0.1, 3.0, 6)).sum()
    np.testing.assert_allclose(draws.log_proposal[0], truth, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(q.layout.flatten(q.variance), theirs.var() * np.geomspace(0.1, 3.0, 6) ** 2, rtol=1e-10)
    np.testing.assert_allclose(q.layout.flatten(q.mean), np.linspace(-1, 1, 6))


@every_family
def test_the_guide_says_the_same_density_twice_and_keeps_its_family(name):
    ours, theirs = pair(name)
    guide = MeanFieldGuide(jnp.linspace(-1, 1, 3), jnp.linspace(-2, 1, 3), ours)
    vector, log_q = guide.sample_and_log_density(jax.random.key(3))
    np.testing.assert_allclose(guide.log_density(vector), log_q, rtol=1e-10)
    np.testing.assert_allclose(guide.entropy(), 3 * theirs.entropy() + np.linspace(-2, 1, 3).sum(), rtol=1e-10)
    gradient = jax.grad(lambda guide: guide.log_density(vector + 1))(guide)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradient.family))
    assert np.all(gradient.location != 0)


def test_saved_and_loaded_in_the_same_bits(tmp_path):
    q = mean_field(ws.families.StudentT(4.5))
    q.save(tmp_path)
    loaded = load_approximation(tmp_path, q.posterior)
    assert isinstance(loaded, MeanField) and loaded.estimate == q.estimate and loaded.facts == q.facts
    first, second = (one.sample(jax.random.key(1), 3) for one in (q, loaded))
    assert jax.tree.all(jax.tree.map(np.array_equal, first.sampled(), second.sampled()))


@pytest.mark.parametrize("name", ["normal", "logistic", "laplace"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ends_of_the_unit_interval_are_finite_and_mirrored(name, dtype, monkeypatch):
    ends = lambda key, shape, dtype: jnp.asarray([0, 1 - np.finfo(dtype).eps], dtype)
    monkeypatch.setattr(jax.random, "uniform", ends)
    low, high = np.asarray(FAMILIES[name][0].sample(jax.random.key(0), (2,), np.dtype(dtype)))
    assert np.isfinite(low) and low < -5
    np.testing.assert_allclose(high, -low, rtol=1e-4)
