"""Pruning curves against predictions computed by hand: linear models with weights of different spread."""

import jax
import numpy as np
import pytest
from scipy import special, stats
from tests.geometry.scrambled import draws_at

import weightscape as ws
from weightscape.core import InputError
from weightscape.evaluate.pruning import SHARES, pruning_curve, pruning_text
from weightscape.geometry.pruning_scores import ByMagnitude
from weightscape.geometry.weight_moments import flat_positions
from weightscape.inference import Diagonal, Gaussian


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def draws_of(likelihood, num_outputs: int, y: np.ndarray) -> tuple[ws.Posterior, ws.Draws]:
    """Five inputs, whose weights vary the more the later they come and are the larger the later they come."""
    x = np.random.default_rng(0).normal(size=(len(y), 5))
    model = ws.Model(ws.networks.MLP(hidden=(), bias=False), likelihood, ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(x, y))
    size = 5 * num_outputs
    noise = np.random.default_rng(1).normal(size=(2, 10, size))
    noise = noise / noise.std(axis=(0, 1))  # so that the spreads are in order exactly
    return posterior, draws_at(posterior, np.geomspace(0.5, 2.0, size) + np.geomspace(0.05, 0.5, size) * noise)


def test_numbers_are_scored_as_by_hand():
    generator = np.random.default_rng(2)
    _, draws = draws_of(ws.likelihoods.Gaussian(0.4), 1, generator.normal(size=6))
    test = ws.Batch(generator.normal(size=(7, 5)), generator.normal(size=7))
    rows = pruning_curve(jax.random.key(0), draws, test, shares=(1.0, 0.6, 0.2))
    weights, x, y = flat_positions(draws), np.asarray(test.x), np.asarray(test.y)
    for row, kept in zip(rows, (5, 3, 1), strict=True):
        assert row.num_kept == kept and row.keep == kept / 5
        pruned = weights * (np.arange(5) < kept)
        outputs = pruned @ x.T
        np.testing.assert_allclose(row.samples["rmse"], np.sqrt(np.mean((outputs.mean(axis=0) - y) ** 2)), rtol=1e-9)
        each = stats.norm.logpdf(y, outputs, 0.4)
        density = special.logsumexp(each, axis=0) - np.log(20)
        np.testing.assert_allclose(row.samples["nll"], -density.mean(), rtol=1e-9)
        lone = pruned.mean(axis=0) @ x.T
        np.testing.assert_allclose(row.mean_network["nll"], -stats.norm.logpdf(y, lone, 0.4).mean(), rtol=1e-9)
    (by_size,) = pruning_curve(jax.random.key(0), draws, test, by=ByMagnitude(), shares=(0.2,))
    last = (weights * (np.arange(5) == 4)).mean(axis=0) @ x.T
    np.testing.assert_allclose(by_size.mean_network["rmse"], np.sqrt(np.mean((last - y) ** 2)), rtol=1e-9)


def test_classes_are_scored_by_accuracy_and_text_has_every_share():
    generator = np.random.default_rng(3)
    y = np.array([0, 1, 2, 0, 1, 2])
    _, draws = draws_of(ws.likelihoods.Categorical(3), 3, y)
    test = ws.Batch(generator.normal(size=(9, 5)), generator.integers(0, 3, size=9))
    rows = pruning_curve(jax.random.key(0), draws, test)
    assert [row.keep for row in rows] == list(SHARES) and [row.num_kept for row in rows][-3:] == [2, 1, 1]
    weights = flat_positions(draws) * (np.arange(15) < 8)
    outputs = np.einsum("pi,dic->dpc", np.asarray(test.x), weights.reshape(20, 5, 3))
    probabilities = special.softmax(outputs, axis=2).mean(axis=0)
    half = rows[SHARES.index(0.5)]
    assert half.num_kept == 8
    assert half.samples["accuracy"] == np.mean(probabilities.argmax(axis=1) == np.asarray(test.y))
    text = pruning_text(rows)
    assert len(text.splitlines()) == 14 and "| 5 % kept " in text and "accuracy of samples" in text


def test_a_gaussian_gives_draws_and_its_own_mean():
    generator = np.random.default_rng(4)
    posterior, draws = draws_of(ws.likelihoods.Gaussian(0.4), 1, generator.normal(size=6))
    position = jax.tree.map(lambda leaf: leaf[0, 0], draws.positions())
    gaussian = Gaussian.over(posterior, position, Diagonal(np.array([0.3, 0.1, 0.2, 0.5, 0.4])))
    test = ws.Batch(generator.normal(size=(7, 5)), generator.normal(size=7))
    (row,) = pruning_curve(jax.random.key(0), gaussian, test, shares=(0.6,), num_draws=50)
    kept = np.array([True, True, True, False, False])
    x, y = np.asarray(test.x), np.asarray(test.y)
    lone = np.where(kept, gaussian.location, 0) @ x.T
    np.testing.assert_allclose(row.mean_network["rmse"], np.sqrt(np.mean((lone - y) ** 2)), rtol=1e-9)
    outputs = (flat_positions(gaussian.sample(jax.random.key(0), 50)) * kept) @ x.T
    np.testing.assert_allclose(row.samples["rmse"], np.sqrt(np.mean((outputs.mean(axis=0) - y) ** 2)), rtol=1e-9)
    with pytest.raises(InputError, match="at least one"):
        pruning_curve(jax.random.key(0), gaussian, test, shares=())
