"""The picture of the two uncertainties: its closed form against quadrature, and a small version of all of it."""

import numpy as np
import pytest
from experiments import two_uncertainties
from experiments.uncertainties import models
from scipy import stats


@pytest.mark.parametrize("num_points", [1, 10, 300])
def test_the_line_is_that_of_quadrature(num_points):
    """Over the slope, on a grid that a smooth integrand leaves no error to."""
    x, y = models.measurements(num_points)
    found = models.line(num_points)
    reach = 12 * found.epistemic / models.AT
    slopes = found.mean / models.AT + np.linspace(-reach, reach, 2001)
    log_density = stats.norm.logpdf(slopes, 0, models.PRIOR)
    log_density += stats.norm.logpdf(y[:, None], x * slopes, models.NOISE).sum(axis=0)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = models.AT * weights @ slopes
    variance = weights @ (models.AT * slopes - mean) ** 2
    np.testing.assert_allclose((found.mean, found.epistemic), (mean, variance**0.5), rtol=1e-9)


def test_measurements_come_in_one_order():
    (x, y), (fewer, _) = models.measurements(2000), models.measurements(10)
    np.testing.assert_array_equal(x[:10], fewer)
    np.testing.assert_array_equal(fewer[:, 0], models.LECTURE)
    noise = y - models.SLOPE * x[:, 0]
    # The standard error of a standard deviation of n normal numbers is σ/√(2n), 1.6 % here: six of them.
    assert abs(noise.std() / models.NOISE - 1) < 6 / np.sqrt(2 * len(noise))


@pytest.mark.slow
def test_a_small_picture_is_written_and_its_table_printed(tmp_path, capsys):
    two_uncertainties.main(tmp_path / "picture.png", (10, 40))
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["10", "40"]
    line, network = (np.array([float(row[i]) for row in rows]) for i in (1, 2))
    # The network has more to learn than the line, and both learn.
    assert np.all(network > line) and line[1] < line[0] and network[1] < network[0]
