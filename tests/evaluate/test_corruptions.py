"""Corruptions against their stated moments, scipy's filter, and exact changes of contrast."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from weightscape.core import InputError, InputTypeError, decode, encode
from weightscape.evaluate.corruptions import (
    BLUR,
    COLUMN_NOISE,
    CONTRAST,
    CORRUPTIONS,
    PIXEL_NOISE,
    SEVERITIES,
    ColumnNoise,
    Contrast,
    GaussianBlur,
    PixelNoise,
    at_severity,
)

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def images(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).uniform(0, 255, size=shape))


def assert_independent_normal(noise: np.ndarray, std: np.ndarray):
    """Rows of `noise` have mean 0 and covariance diag(std²), also between a row and the next, and normal tails.

    Errors of a mean, a variance, a covariance and a mean fourth power are 1, √2, 1 and √96 over √N for unit noise. Six
    of them are left by chance once in 10⁹ for each of some 200 numbers.
    """
    unit = (noise / std).reshape(len(noise) // 2, -1)
    error = 1 / np.sqrt(len(unit))
    assert np.abs(unit.mean(axis=0)).max() < 6 * error
    covariance = unit.T @ unit / len(unit)
    assert np.all(
        np.abs(covariance - np.eye(len(covariance))) < 6 * np.where(np.eye(len(covariance)), 2**0.5, 1) * error
    )
    assert abs(np.mean(unit**4) - 3) < 6 * np.sqrt(96 / unit.size)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixel_noise_is_independent_and_of_the_stated_size(severity):
    x = images(20_000, 2, 3, 1)
    noise = np.asarray(PixelNoise(severity, span=255.0).corrupted(KEY, x) - x).reshape(len(x), -1)
    assert_independent_normal(noise, np.full(6, 255 * PIXEL_NOISE[severity - 1]))


def test_the_span_is_that_of_the_pixels_where_none_is_given():
    x = images(3, 4, 4, 2) - 17.0
    span = float(x.max() - x.min())
    found, given = PixelNoise(2).corrupted(KEY, x), PixelNoise(2, span=span).corrupted(KEY, x)
    np.testing.assert_allclose(found, given, rtol=1e-12)
    flat = PixelNoise(2).corrupted(KEY, x.reshape(3, -1))
    np.testing.assert_allclose(flat, found.reshape(3, -1), rtol=1e-12)
    other = PixelNoise(2).corrupted(jax.random.key(1), x)
    assert np.all(np.asarray(other != found))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_column_noise_follows_the_spread_of_each_column(severity):
    spread = np.array([0.01, 1.0, 300.0])
    x = jnp.zeros((20_000, 3)) + jnp.array([[5.0, -1.0, 2.0]])
    noise = np.asarray(ColumnNoise(severity, spread=spread).corrupted(KEY, x) - x)
    assert_independent_normal(noise, COLUMN_NOISE[severity - 1] * spread)


def test_columns_have_their_own_spread_where_none_is_given():
    x = np.random.default_rng(1).normal(size=(50, 3)) * [[0.1, 20.0, 0.0]] + 4.0
    found = np.asarray(ColumnNoise(3).corrupted(KEY, jnp.asarray(x)))
    given = np.asarray(ColumnNoise(3, spread=(*x.std(axis=0)[:2], 1.0)).corrupted(KEY, jnp.asarray(x)))
    np.testing.assert_allclose(found[:, :2], given[:, :2], rtol=1e-10)
    assert np.all(found[:, 2] == 4.0)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("shape", [(3, 9, 7, 2), (2, 1, 2, 1)])
def test_blur_is_scipys_filter_and_keeps_the_mean(severity, shape):
    x = images(*shape)
    blurred = GaussianBlur(severity).corrupted(KEY, x)
    sigma = BLUR[severity - 1]
    expected = gaussian_filter(np.asarray(x), (0, sigma, sigma, 0), mode="reflect", truncate=4.0)
    np.testing.assert_allclose(blurred, expected, rtol=1e-12)
    np.testing.assert_allclose(blurred.mean(axis=(1, 2)), x.mean(axis=(1, 2)), rtol=1e-12)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast_keeps_the_mean_and_scales_the_spread(severity):
    x = images(4, 5, 6, 3)
    changed = Contrast(severity).corrupted(KEY, x)
    np.testing.assert_allclose(changed.mean(axis=(1, 2)), x.mean(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(changed.std(axis=(1, 2)), CONTRAST[severity - 1] * x.std(axis=(1, 2)), rtol=1e-12)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_corruption_keeps_shape_and_type_and_is_stored(name):
    corruption = at_severity(CORRUPTIONS[name](), 4)
    x = images(3, 4) if name == "column_noise" else images(3, 4, 5, 1)
    changed = corruption.corrupted(KEY, x.astype(jnp.float32))
    assert changed.shape == x.shape and changed.dtype == jnp.float32
    again = decode(json.loads(json.dumps(encode(corruption).tree)))
    assert type(again) is type(corruption) and again.severity == 4
    assert np.array_equal(again.corrupted(KEY, x), corruption.corrupted(KEY, x))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_severity_is_a_whole_number_from_one_to_five(name, unchecked):
    corruption = CORRUPTIONS[name]()
    for severity in (0, 6, -1):
        with pytest.raises(InputError, match=r"`severity` of \w+ must be at (least 1|most 5), got"):
            at_severity(corruption, severity)
    with pytest.raises(InputTypeError, match="must be a whole number, got 1.5"):
        at_severity(corruption, 1.5)


def test_settings_and_inputs_that_do_not_fit():
    for corruption in (GaussianBlur(), Contrast()):
        with pytest.raises(InputError, match=r"must have four axes, got shape \(3, 4\)"):
            corruption.corrupted(KEY, images(3, 4))
    with pytest.raises(InputError, match="must be a table"):
        ColumnNoise().corrupted(KEY, images(3, 4, 5, 1))
    with pytest.raises(InputError, match="each of the 4 columns"):
        ColumnNoise(spread=(1.0, 2.0)).corrupted(KEY, images(3, 4))
    with pytest.raises(InputError, match="`span` of PixelNoise must be positive"):
        PixelNoise(span=0.0)
    with pytest.raises(InputError, match="`spread` of ColumnNoise must be positive"):
        ColumnNoise(spread=(1.0, -1.0))
