"""Predictives weighed on held-out points: sums, paired differences, and mixtures that beat their parts."""

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputError
from weightscape.evaluate import weigh, weighing_text
from weightscape.evaluate.weighing import weigh_log_densities
from weightscape.predictive import mix

KEY = jax.random.key(0)


@pytest.fixture
def halves(predictive_of):
    """Two predictives that each know one half of the points, targets to weigh them by, and others to judge by."""
    generator = np.random.default_rng(0)
    outputs, noise = generator.normal(size=(200, 1)), ws.likelihoods.Gaussian(scale=0.3)
    off = np.where(np.arange(200) % 2 == 0, 1.0, 0.0)[:, None]
    targets = lambda: outputs[:, 0] + 0.3 * generator.normal(size=200)
    parts = {
        "odd": predictive_of((outputs + off)[None], noise),
        "even": predictive_of((outputs + 1 - off)[None], noise),
    }
    return parts, targets(), targets()


def test_rows_hold_sums_and_paired_differences(halves):
    parts, y, _ = halves
    rows = weigh(KEY, parts, y)
    each = {name: np.asarray(part.log_density(y), np.float64) for name, part in parts.items()}
    best = max(each, key=lambda name: each[name].sum())
    assert [row.name for row in rows] == [best, next(name for name in each if name != best)]
    for row in rows:
        assert row.log_density.value == pytest.approx(each[row.name].sum())
        assert row.log_density.standard_error == pytest.approx(np.sqrt(200) * each[row.name].std(ddof=1))
        gap = each[best] - each[row.name]
        assert row.behind.value == pytest.approx(gap.sum(), abs=1e-9)
        assert row.behind.standard_error == pytest.approx(np.sqrt(200) * gap.std(ddof=1), abs=1e-9)
    assert sum(row.stacking for row in rows) == pytest.approx(1)
    text = weighing_text(rows)
    header = [cell.strip() for cell in text.splitlines()[0].strip("|").split("|")]
    assert header == ["method", "log density", "± error", "behind", "± its error", "stacking", "pseudo-BMA+"]
    assert f"| {best} " in text


def test_a_stacked_mixture_is_better_on_new_points_than_its_parts(halves):
    parts, y, new = halves
    rows = weigh(KEY, parts, y)
    assert min(row.stacking for row in rows) > 0.3  # neither is right everywhere
    mixture = mix([parts[row.name] for row in rows], [row.stacking for row in rows])
    score = lambda predictive: float(np.sum(np.asarray(predictive.log_density(new), np.float64)))
    # Of each point the right half has log(1/2) less than it would, the wrong one gains about 1/(2 · 0.09) less that.
    assert score(mixture) > max(score(part) for part in parts.values()) + 200


def test_log_densities_of_other_points_are_refused():
    with pytest.raises(InputError, match="of the same points"):
        weigh_log_densities(KEY, {"a": np.zeros(3), "b": np.zeros(4)})
    with pytest.raises(InputError, match="at least one"):
        weigh(KEY, {}, [0.0])
