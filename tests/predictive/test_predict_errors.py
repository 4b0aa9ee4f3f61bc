"""What `predict` and `Predictive` refuse, and how they say it."""

import numpy as np
import pytest

import weightscape as ws


@pytest.fixture
def draws():
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(scale=0.5), ws.priors.Normal())
    posterior = model.condition(ws.Batch(np.zeros((4, 2)), np.zeros(4)))
    network = {"layer0": {"weight": np.ones((1, 3, 2, 1), "f4"), "bias": np.zeros((1, 3, 1), "f4")}}
    params = ws.Parameters(network, {}, ())
    return ws.Draws(params, np.zeros((1, 3), "f4"), posterior.model, None, posterior.example)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(2), r"must have shape \(point, 2\), got \(2,\)"),
        (np.zeros((5, 3)), r"must have shape \(point, 2\), got \(5, 3\)"),
        (np.zeros((5, 2, 1)), r"must have shape \(point, 2\), got \(5, 2, 1\)"),
        (np.zeros((0, 2)), "must hold at least one point"),
        ([[0.0, np.nan]], r"must be finite, got 1 non-finite entries, the first at index \(0, 1\)"),
        (np.array([["a", "b"]]), "must hold numbers"),
    ],
)
def test_inputs_that_do_not_fit(x, message, draws):
    with pytest.raises((ValueError, TypeError), match=f"`x` of predict {message}"):
        ws.predict(draws, x)


def test_plain_lists_and_whole_numbers_are_inputs(draws):
    np.testing.assert_allclose(ws.predict(draws, [[1, 2], [3, 4]]).mean, [3.0, 7.0])


def test_memory_must_be_a_count(draws):
    with pytest.raises(ValueError, match="`memory` of predict must be at least 1"):
        ws.predict(draws, np.zeros((1, 2)), memory=0)


def test_draws_with_broken_outputs_are_named(draws):
    broken = draws.map_leaves(lambda leaf: leaf.copy())
    broken.params.network["layer0"]["bias"][0, 1] = np.nan
    with pytest.raises(ValueError, match="must be finite at points 0 to 0, got 1 draws that are not"):
        ws.predict(broken, np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, 1.0], r"`y` must have shape \(3,\), got \(2,\)"),
        (np.zeros((3, 1)), r"`y` must have shape \(3,\), got \(3, 1\)"),
        ([0.0, np.nan, 1.0], "`y` must be finite"),
        (np.array(["a", "b", "c"]), "`y` must hold numbers"),
    ],
)
def test_targets_that_do_not_fit(y, message, draws):
    predictive = ws.predict(draws, np.zeros((3, 2)))
    with pytest.raises((ValueError, TypeError), match=message):
        predictive.log_density(y)


@pytest.mark.parametrize(
    ("y", "message"),
    [([0, 2], r"Classes must lie in 0\.\.1, got 0\.\.2"), ([0.0, 1.0], "must be one integer for each point")],
)
def test_labels_that_do_not_fit(y, message, table_draws, points):
    draws = table_draws(np.zeros((1, 2, 2)), ws.likelihoods.Categorical(num_classes=2), y=[0])
    with pytest.raises(ValueError, match=message):
        ws.predict(draws, points(2)).log_density(y)


def test_whole_numbers_are_targets_of_a_regression(draws):
    predictive = ws.predict(draws, np.zeros((2, 2)))
    np.testing.assert_array_equal(predictive.log_density([0, 1]), predictive.log_density([0.0, 1.0]))
