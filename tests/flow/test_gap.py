"""J from log weights: its value for two normals, and what its error counts."""

import numpy as np
import pytest
from tests.flow.gaussians import COVARIANCE, MEAN, log_normal
from tests.flow.linear_flows import two_way_divergence

from weightscape.core import InputError
from weightscape.flow.gap import gap_of

OTHER_MEAN = MEAN + np.array([0.3, 0.0, -0.1])
OTHER_COVARIANCE = 1.3 * COVARIANCE + 0.02 * np.eye(3)


def log_weights(x):
    """log p̃ − log q with a p̃ that is not normalised."""
    return 7.0 + log_normal(x) - log_normal(x, OTHER_MEAN, OTHER_COVARIANCE)


def test_two_normals():
    rng = np.random.default_rng(0)
    ours = rng.multivariate_normal(MEAN, COVARIANCE, size=(20, 500))
    theirs = rng.multivariate_normal(OTHER_MEAN, OTHER_COVARIANCE, size=8000)
    gap = gap_of(log_weights(ours), log_weights(theirs))
    known = two_way_divergence(MEAN, COVARIANCE, OTHER_MEAN, OTHER_COVARIANCE)
    # Twenty chains tell their own spread to 16%: seven of these errors are five and a half true ones.
    assert abs(gap.value - known) < 7 * gap.standard_error
    # Draws are independent, so the error by chains is that by draws.
    independent = np.sqrt(np.var(log_weights(ours)) / 10_000 + np.var(log_weights(theirs)) / 8000)
    assert 0.4 * independent < gap.standard_error < 1.9 * independent
    assert gap.standard_error < 0.1 * known
    np.testing.assert_allclose(gap.spread_under_posterior, np.std(log_weights(ours)))
    np.testing.assert_allclose(gap.spread_under_flow, np.std(log_weights(theirs)))


def test_draws_of_one_chain_count_as_one():
    means = np.array([1.0, 2.0, 4.0])
    fresh = np.array([0.0, 2.0])
    gap = gap_of(np.repeat(means[:, None], 100, axis=1), fresh)
    np.testing.assert_allclose(gap.value, 7 / 3 - 1)
    np.testing.assert_allclose(gap.standard_error, np.sqrt(means.var(ddof=1) / 3 + 2.0 / 2))
    lone = gap_of(means[None], fresh)
    np.testing.assert_allclose(lone.standard_error, gap.standard_error)
    assert str(gap_of(np.array([[3.0, 5.0]]), fresh)) == (
        "J = 3.00 ± 1.4 nats (spread of the log weights 1.00 under p, 1.00 under q)"
    )


@pytest.mark.parametrize(("what", "place"), [("posterior", 0), ("flow", 1)])
def test_what_is_not_finite_is_named(what, place):
    parts = [np.zeros((2, 3)), np.zeros(4)]
    parts[place].flat[1] = np.nan
    parts[place].flat[2] = -np.inf
    with pytest.raises(InputError, match=f"Log weights of the {what}'s draws must be finite, got 2 that are not"):
        gap_of(*parts)
