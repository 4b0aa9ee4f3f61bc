"""Shrinkage of a single weight by quadrature, against closed forms and Tweedie's formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.laws import PRIORS

from weightscape.core import InputError, InputTypeError
from weightscape.priors import Horseshoe, Laplace, Normal, StudentT, shrinkage, soft_threshold

OBSERVED = np.array([-30.0, -4.0, -0.3, 0.0, 1.0, 12.0, 80.0])
SINGLE = ["normal", "laplace", "student_t", "scale_mixture"]


def test_a_normal_prior_shrinks_in_proportion(x64):
    found = shrinkage(Normal(2.0), jnp.asarray(OBSERVED), 1.5)
    kept = 4 / (4 + 2.25)
    np.testing.assert_allclose(found.mean, kept * OBSERVED, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.std, 1.5 * np.sqrt(kept), rtol=1e-10)
    np.testing.assert_allclose(found.log_evidence, stats.norm.logpdf(OBSERVED, scale=2.5), rtol=1e-10)


def laplace_moments(y, scale, noise):
    """The posterior under Laplace(b) is a normal N(y ± s²/b, s²) on each side of zero, cut off there."""
    log_mass, first, second = [], [], []
    for side in (-1, 1):
        centre = y - side * noise**2 / scale
        # ∫ over one side of N(y; θ, s²) exp(−|θ|/b): the square completed, then the normal's mass on that side.
        log_mass.append(-side * y / scale + stats.norm.logcdf(side * centre / noise))
        cut = stats.truncnorm(*sorted((-centre / noise, side * np.inf)), loc=centre, scale=noise)
        first.append(cut.mean())
        second.append(cut.var() + cut.mean() ** 2)
    share = np.exp(log_mass - np.logaddexp(*log_mass))
    mean = share @ first
    return mean, np.sqrt(share @ second - mean**2)


def test_a_laplace_prior_mixes_two_cut_normals(x64):
    points = np.array([-6.0, -1.0, 0.0, 0.4, 3.0, 9.0])
    found = shrinkage(Laplace(0.5), jnp.asarray(points), 0.8)
    expected = np.array([laplace_moments(y, 0.5, 0.8) for y in points])
    np.testing.assert_allclose(found.mean, expected[:, 0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.std, expected[:, 1], rtol=1e-6)


@pytest.mark.parametrize("name", SINGLE)
def test_tweedies_formula(name, x64):
    noise, y = 0.7, jnp.asarray([-6.0, -0.5, 0.2, 2.0, 9.0])
    log_evidence = lambda one: shrinkage(PRIORS[name], one[None], noise).log_evidence[0]
    mean = shrinkage(PRIORS[name], y, noise).mean
    np.testing.assert_allclose(mean, y + noise**2 * jax.vmap(jax.grad(log_evidence))(y), rtol=1e-8, atol=1e-9)


def test_heavy_tails_let_an_outlier_go(x64):
    y = jnp.asarray([20.0, 40.0, 80.0])
    pull = lambda prior: np.asarray(y - shrinkage(prior, y, 1.0).mean)
    # p(y) falls as the prior does, y^−(ν+1) up to a factor 1 + O(1/y²): Tweedie's pull is (ν+1)/y.
    np.testing.assert_allclose(pull(StudentT(3.0)) * y, 4.0, rtol=10 / 20.0**2)
    np.testing.assert_allclose(pull(Laplace(0.5)), 2.0, rtol=1e-8)
    np.testing.assert_allclose(pull(Normal(1.0)), y / 2, rtol=1e-8)


def test_the_mode_is_sparse_and_the_posterior_is_not(x64):
    y, scale, noise = np.linspace(-3.0, 3.0, 13), 0.5, 0.8
    theta = np.linspace(-4.0, 4.0, 8001)
    log_joint = -0.5 * ((y[:, None] - theta) / noise) ** 2 - np.abs(theta) / scale
    modes = np.asarray(soft_threshold(jnp.asarray(y), scale, noise))
    np.testing.assert_allclose(modes, theta[log_joint.argmax(axis=1)], atol=1e-3)
    small = np.abs(y) <= noise**2 / scale
    assert np.all(modes[small] == 0) and np.all(modes[~small] != 0)
    found = shrinkage(Laplace(scale), jnp.asarray(y), noise)
    assert np.all(np.abs(found.mean[y != 0]) > 0.04) and np.all(found.std > 0.3)


def test_what_it_refuses(unchecked):
    with pytest.raises(InputTypeError, match="must be a density of a single weight, got Horseshoe"):
        shrinkage(Horseshoe(), jnp.ones(1), 1.0)
    with pytest.raises(InputError, match="`noise` of shrinkage must be positive"):
        shrinkage(Normal(), jnp.ones(1), 0.0)
