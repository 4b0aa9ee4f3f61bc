import numpy as np
import pytest
from scipy.stats import multivariate_normal

from weightscape.data import toy


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("noise", "prior_scale"), [(0.5, 1.0), (2.0, 0.3)])
def test_linear_gaussian_answers_by_another_road(noise, prior_scale, bias):
    """The joint Gaussian of (w, y), conditioned; the closed form instead inverts the precision."""
    data = toy.linear_gaussian(20, 3, noise, seed=1, prior_scale=prior_scale)
    x, y = np.asarray(data.train.x, np.float64), np.asarray(data.train.y, np.float64)
    answer = toy.linear_gaussian_posterior(x, y, noise, prior_scale, bias=bias)
    design = np.column_stack([np.ones(20), x]) if bias else x
    marginal = prior_scale**2 * design @ design.T + noise**2 * np.eye(20)
    gain = prior_scale**2 * design.T @ np.linalg.inv(marginal)
    np.testing.assert_allclose(answer.log_evidence, multivariate_normal(np.zeros(20), marginal).logpdf(y), rtol=1e-9)
    np.testing.assert_allclose(answer.mean, gain @ y, rtol=1e-8)
    covariance = prior_scale**2 * (np.eye(design.shape[1]) - gain @ design)
    np.testing.assert_allclose(answer.covariance, covariance, rtol=1e-6, atol=1e-10)


def test_linear_gaussian_has_the_noise_it_says():
    data = toy.linear_gaussian(2000, 3, 0.5, seed=2, prior_scale=2.0)
    x, y = np.asarray(data.train.x, np.float64), np.asarray(data.train.y, np.float64)
    residual = y - x @ toy.linear_gaussian_posterior(x, y, 0.5, 2.0).mean
    # The standard error of a standard deviation from n values is σ / √(2n) = 0.008; four of them.
    assert abs(residual.std() - 0.5) < 0.032
    assert data.train.scaling is None


def test_cubic_has_a_gap_and_reaches_beyond():
    data = toy.cubic(2000)
    x, y = np.asarray(data.train.x[:, 0]), np.asarray(data.train.y)
    assert np.all((np.abs(x) >= 1) & (np.abs(x) <= 4))
    assert 0.45 < np.mean(x < 0) < 0.55
    assert (float(data.test.x.min()), float(data.test.x.max())) == (-6.0, 6.0)
    # Noise of scale 3 with standard error 3 / √4000 = 0.047; four of them.
    assert abs(np.std(y - x**3) - 3.0) < 0.19


def test_lines_are_three_times_the_input():
    exact, noisy = toy.line(), toy.noisy_line(2000, 0.3)
    np.testing.assert_allclose(exact.train.y, 3 * exact.train.x[:, 0], rtol=1e-6)
    assert abs(np.std(np.asarray(noisy.train.y - 3 * noisy.train.x[:, 0])) - 0.3) < 0.02
    assert (exact.name, noisy.name) == ("line", "noisy_line")


def test_moons_without_noise_lie_on_half_circles():
    data = toy.moons(100, noise=0.0)
    x, y = np.asarray(data.train.x), np.asarray(data.train.y)
    centres = np.array([[0.0, 0.0], [1.0, 0.5]])
    np.testing.assert_allclose(np.linalg.norm(x - centres[y], axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("make", [toy.linear_gaussian, toy.cubic, toy.noisy_line, toy.moons])
def test_seeds_fix_the_data(make):
    first, again, other = (make(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.train.x, again.train.x)
    assert not np.intersect1d(first.train.x, other.train.x).size
