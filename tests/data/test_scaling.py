import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from weightscape.core.checks import InputError
from weightscape.core.config import decode, encode
from weightscape.data import Scaling

CASES = {
    "table, one target": ((40, 3), (40,)),
    "table, two targets": ((40, 3), (40, 2)),
    "images": ((40, 4, 4, 2), (40,)),
}


def _problem(name):
    generator = np.random.default_rng(1)
    x_shape, y_shape = CASES[name]
    return 5.0 + 3.0 * generator.standard_normal(x_shape), -2.0 + 7.0 * generator.standard_normal(y_shape)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_scaled_data_are_standard_and_come_back(name, x64):
    with jax.enable_x64(x64):
        x, y = (jnp.asarray(array) for array in _problem(name))
        scaling = Scaling.fit(x, y, "regression")
        inputs, targets = scaling.inputs(x), scaling.targets(y)
        axes = 0 if x.ndim == 2 else None
        rounding = 100 * jnp.finfo(x.dtype).eps
        np.testing.assert_allclose(inputs.mean(axes), 0.0, atol=rounding)
        np.testing.assert_allclose(inputs.std(axes), 1.0, rtol=rounding)
        np.testing.assert_allclose(targets.std(0), 1.0, rtol=rounding)
        np.testing.assert_allclose(scaling.unscale_mean(targets), y, rtol=rounding, atol=10 * rounding)
        np.testing.assert_allclose(scaling.unscale_std(targets.std(0)), y.std(0), rtol=rounding)
        assert inputs.dtype == targets.dtype == x.dtype


def test_unscaling_meets_the_last_axis_of_stacked_predictions():
    scaling = Scaling(np.zeros(1), np.ones(1), np.array([1.0, 2.0]), np.array([10.0, 100.0]))
    stacked = jnp.ones((4, 5, 3, 2))
    np.testing.assert_array_equal(scaling.unscale_mean(stacked)[1, 2, 0], [11.0, 102.0])
    np.testing.assert_array_equal(scaling.unscale_std(stacked)[3, 4, 2], [10.0, 100.0])


def test_the_jacobian_turns_scaled_densities_into_original_ones():
    _, y = _problem("table, two targets")
    scaling = Scaling.fit(np.ones((40, 1)) * np.arange(40)[:, None], y, "regression")
    assert scaling.y_mean is not None
    assert scaling.y_scale is not None
    scaled = norm.logpdf(scaling.targets(jnp.asarray(y))).sum(1) - scaling.log_target_scale()
    original = norm.logpdf(jnp.asarray(y), scaling.y_mean[None], scaling.y_scale[None]).sum(1)
    np.testing.assert_allclose(scaled, original, rtol=1e-5)


def test_labels_are_left_alone():
    scaling = Scaling.fit(np.arange(6.0).reshape(3, 2), np.array([0, 1, 2]), "classification")
    labels = jnp.array([2, 0, 1])
    assert scaling.targets(labels) is labels
    assert scaling.unscale_mean(jnp.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert float(scaling.log_target_scale()) == 0.0


def test_constant_columns_are_found_by_their_range():
    # Rounding gives 0.1 repeated a standard deviation of about 1e-17, not zero.
    x = np.column_stack([np.full(1000, 0.1), np.arange(1000.0)])
    assert np.std(x[:, 0]) > 0
    scaling = Scaling.fit(x, np.arange(1000), "classification")
    assert float(scaling.x_scale[0]) == 1.0
    np.testing.assert_array_equal(scaling.inputs(jnp.asarray(x))[:, 0], 0.0)


def test_very_small_values_are_scaled():
    with jax.enable_x64(True):
        scaling = Scaling.fit(1e-200 * np.arange(10.0)[:, None], np.arange(10), "classification")
        np.testing.assert_allclose(scaling.x_scale, 1e-200 * np.std(np.arange(10.0)))


def test_what_floats_cannot_resolve_is_an_error():
    x = np.column_stack([np.arange(5.0), 1e9 + np.arange(5.0)])
    with pytest.raises(InputError, match=r"rounding of float32, got scale 1.41 around 1e\+09 in column 1\."):
        Scaling.fit(x, np.arange(5), "classification")
    with jax.enable_x64(True):
        Scaling.fit(x, np.arange(5), "classification")


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(4, 2.5), "the constant 2.5."),
        (np.array([[1.0, 3.0], [2.0, 3.0]]), "the constant 3.0 in output 1."),
    ],
)
def test_a_constant_target_is_an_error(y, words):
    with pytest.raises(InputError) as caught:
        Scaling.fit(np.arange(float(len(y)))[:, None], y, "regression")
    assert words in str(caught.value)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_stored_and_read_back(task):
    x, y = _problem("table, one target")
    scaling = Scaling.fit(x, y, task)
    stored = encode(scaling)
    back = decode(json.loads(json.dumps(stored.tree)), stored.arrays)
    assert jax.tree.structure(back) == jax.tree.structure(scaling)
    for left, right in zip(jax.tree.leaves(back), jax.tree.leaves(scaling), strict=True):
        np.testing.assert_array_equal(left, right)
