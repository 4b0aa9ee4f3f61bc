"""The midpoint gap against its closed form for a Gaussian and quadrature for two modes; variance between chains."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.geometry.scrambled import UNITS, draws_at, known

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.layout import Layout
from weightscape.geometry.unimodality import between_chains, draw_pairs, unimodality


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def one_weight() -> ws.Posterior:
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(np.ones((2, 1)), np.zeros(2)))


def three_weights() -> ws.Posterior:
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(np.ones((2, 3)), np.zeros(2)))


def test_pairs_are_disjoint_and_of_different_chains():
    for num_chains, num_draws in ((1, 11), (2, 7), (3, 5), (5, 3)):
        left, right = draw_pairs(jax.random.key(0), num_chains, num_draws, 1000)
        total = num_chains * num_draws
        assert len(left) == len(right) == total // 2
        both = np.concatenate([left, right])
        assert len(np.unique(both)) == len(both) and both.min() >= 0 and both.max() < total
        assert num_chains == 1 or np.all(left // num_draws != right // num_draws)
    first, second = (draw_pairs(jax.random.key(seed), 3, 40, 10)[0] for seed in (0, 1))
    assert len(first) == 10 and not np.array_equal(first, second)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_gaussian_has_the_gaps_of_a_quarter_chi_square(scale):
    generator, num = np.random.default_rng(4), 4000
    root = generator.normal(size=(3, 3)) * np.array([0.1, 1.0, scale])[:, None]
    draws = draws_at(three_weights(), generator.normal(size=(4, num // 2, 3)) @ root.T + 2.0)
    precision = jnp.asarray(np.linalg.inv(root @ root.T))

    def log_density(position):
        centred = Layout.of(position).flatten(position) - 2.0
        return 7.0 - 0.5 * centred @ precision @ centred

    found = unimodality(jax.random.key(0), draws, log_density, num_pairs=num)
    assert len(found.gaps) == num and found.share_of_dips == 0 and found.gaps.min() >= 0
    # d/4 = 0.75 with a standard deviation of √(d/8) for each pair.
    assert abs(found.gap - 0.75) < 5 * np.sqrt(3 / 8 / num)
    np.testing.assert_allclose(found.standard_error, np.sqrt(3 / 8 / num), rtol=0.2)
    np.testing.assert_allclose(found.relative_gap, 4 / 3 * found.gap, rtol=1e-12)
    assert stats.kstest(4 * found.gaps, stats.chi2(3).cdf).pvalue > 1e-6
    np.testing.assert_allclose(found.total_variance, np.trace(root @ root.T), rtol=0.15)
    # Four chains of 2,000 independent draws: the means of chains differ by the variance of a mean, 3/4 of 1/2000.
    assert found.between_chains < 10 * 3 / 4 / (num // 2)


def test_two_modes_have_the_gap_of_quadrature_and_dip():
    apart, spread, num = 3.0, 0.5, 3000
    generator = np.random.default_rng(5)
    numbers = spread * generator.normal(size=(2, num, 1)) + np.array([apart, -apart])[:, None, None]
    draws = draws_at(one_weight(), numbers)

    def log_mixture(value, package):
        kernels = [-0.5 * ((value - centre) / spread) ** 2 for centre in (apart, -apart)]
        return package.logaddexp(*kernels)

    found = unimodality(
        jax.random.key(1), draws, lambda p: jnp.squeeze(log_mixture(jax.tree.leaves(p)[0], jnp)), num_pairs=num
    )
    grid = np.linspace(-8, 8, 20_001)
    average = lambda values, law: np.trapezoid(values * law.pdf(grid), grid)
    middle = average(log_mixture(grid, np), stats.norm(0, spread / np.sqrt(2)))
    end = average(log_mixture(grid, np), stats.norm(apart, spread))
    assert middle - end < -10
    assert abs(found.gap - (middle - end)) < 5 * found.standard_error < 0.5
    assert found.share_of_dips > 0.99
    # Means ±a and variance s² within: a²/(a² + s²), known to some √(2/n).
    truth = apart**2 / (apart**2 + spread**2)
    assert abs(found.between_chains - truth) < 6 * (1 - truth) * 2 / np.sqrt(num) + 6e-4
    np.testing.assert_allclose(between_chains(draws[:, ::2]), truth, rtol=0.01)


def test_permuted_draws_dip_and_the_same_draws_in_one_order_do_not():
    made = known()
    layout = Layout.of(made.posterior.start_position(jax.random.key(0)))
    orders = jnp.asarray(list(itertools.permutations(range(UNITS))))
    every = jax.vmap(lambda order: eqx.tree_at(lambda e: e.permutations, made.symmetry.identity(), (order,)))(orders)

    def log_density(position):
        """Of the mixture of all 24 equivalent Gaussians."""
        moved = jax.vmap(made.symmetry.apply, in_axes=(None, 0))(position.network, every)
        rows = jax.vmap(lambda network: layout.flatten(position._replace(network=network)))(moved)
        whitened = (rows - jnp.asarray(made.mean)[None]) / jnp.asarray(made.scale)[None]
        return jax.nn.logsumexp(-0.5 * jnp.sum(whitened**2, axis=1))

    before, after = (unimodality(jax.random.key(2), d, log_density) for d in (made.scrambled, made.draws))
    # In one order the other modes are far: gaps of a Gaussian in 17 dimensions, ¼ χ².
    assert after.share_of_dips == 0 and abs(after.relative_gap - 1) < 5 * 4 / 17 * np.sqrt(17 / 8 / 100)
    # Of 100 pairs one in 24 has the same order by chance: 14 of them would be five standard deviations more.
    assert before.share_of_dips > 0.86 and before.gap + 5 * before.standard_error < 0
    assert before.total_variance > 5 * after.total_variance
    assert "of 100 pairs dip" in str(before)


def test_what_has_no_pairs_is_refused():
    draws = known().draws[:1, :3]
    with pytest.raises(InputError, match="at least four draws, got 3"):
        unimodality(jax.random.key(0), draws, lambda p: 0.0)
    assert np.isnan(between_chains(draws))
