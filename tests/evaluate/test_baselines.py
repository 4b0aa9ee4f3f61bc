"""Baselines against scikit-learn's own predictions, a Gaussian process by hand, and a cross-validation by hand."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

import weightscape as ws
from weightscape.evaluate import BoostedTrees, GaussianProcess
from weightscape.evaluate.baseline import array_bytes

TREES = {"max_iter": 8, "learning_rate": 0.3, "min_samples_leaf": 3, "early_stopping": False, "random_state": 1}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Small trees take ten times as long with two."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def numbers():
    """Forty rows of a wave in two inputs, in units far from 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2)) * [1.0, 30.0] + [5.0, 0.0]
    y = 200 + 40 * np.sin(x[:, 0]) + x[:, 1] + 4 * rng.normal(size=50)
    return ws.data.from_arrays(x, y)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(75, 2))
    return ws.data.from_arrays(x, np.digitize(x[:, 0] + 0.3 * rng.normal(size=75), [-0.5, 0.5]), "classification")


def scaled(dataset):
    scaling = dataset.train.scaling
    rows = [np.asarray(scaling.inputs(batch.x), np.float64) for batch in (dataset.train, dataset.test)]
    return *rows, np.asarray(scaling.targets(dataset.train.y), np.float64)


def test_the_process_of_numbers_is_the_one_in_the_book(numbers, monkeypatch):
    """Rasmussen and Williams, equations 2.23 and 2.24, with the kernel that the fit has found."""
    found = {}
    monkeypatch.setattr(
        "weightscape.evaluate.gaussian_process.array_bytes", lambda model: found.update(model=model) or 7
    )
    fitted = GaussianProcess().fit(numbers.train, None, seed=0)
    assert fitted.num_bytes == 7 and fitted.notes == ()
    kernel = found["model"].kernel_
    size, length, noise = kernel.k1.k1.constant_value, kernel.k1.k2.length_scale, kernel.k2.noise_level
    x, new, y = scaled(numbers)
    centre, width = y.mean(), y.std()
    k = lambda a, b: size * np.exp(-np.sum((a[:, None] - b[None]) ** 2, axis=2) / (2 * length**2))
    across, inverse = k(new, x), np.linalg.inv(k(x, x) + noise * np.eye(len(x)))
    mean = centre + width * across @ inverse @ ((y - centre) / width)
    doubt = width * np.sqrt(size - np.einsum("ij,jk,ik->i", across, inverse, across))
    units = numbers.train.scaling
    predictive = fitted.predict(numbers.test.x)
    to_units = lambda values: values * float(units.y_scale)
    np.testing.assert_allclose(predictive.mean, to_units(mean) + float(units.y_mean), rtol=1e-5)
    np.testing.assert_allclose(predictive.epistemic_std, to_units(doubt), rtol=2e-3)
    np.testing.assert_allclose(predictive.aleatoric_std, to_units(width * np.sqrt(noise)), rtol=1e-5)
    assert 2 < float(predictive.aleatoric_std[0]) < 8  # the noise is 4


def test_targets_without_a_scaling_are_predicted_in_their_own_units(numbers):
    x, new, _ = scaled(numbers)
    plain = GaussianProcess().fit(ws.Batch(x, numbers.train.y), None, seed=0).predict(new)
    predictive = GaussianProcess().fit(numbers.train, None, seed=0).predict(numbers.test.x)
    for name in ("mean", "epistemic_std", "aleatoric_std"):
        np.testing.assert_allclose(getattr(plain, name), getattr(predictive, name), rtol=5e-3)


def test_the_process_of_classes_is_scikit_learns(classes):
    x, new, _ = scaled(classes)
    kernel = ConstantKernel(1.0) * RBF(np.sqrt(2))
    other = GaussianProcessClassifier(kernel, warm_start=True).fit(x, np.asarray(classes.train.y))
    predictive = GaussianProcess().fit(classes.train, 3, seed=0).predict(classes.test.x)
    np.testing.assert_allclose(predictive.probabilities, other.predict_proba(new), atol=1e-4)


def test_few_rows_are_said_and_classes_that_are_not_among_them_are_impossible(classes):
    order = np.argsort(np.asarray(classes.train.y), kind="stable")
    first_two = ws.Batch(classes.train.x[order[:30]], classes.train.y[order[:30]], classes.train.scaling)
    fitted = GaussianProcess(most_rows=20).fit(first_two, 3, seed=0)
    assert fitted.notes[0] == "20 of 30 training rows", fitted.notes
    probabilities = np.asarray(fitted.predict(classes.test.x).probabilities)
    assert set(np.asarray(first_two.y).tolist()) == {0, 1} and np.all(probabilities[:, 2] == 0)


def test_trees_of_numbers_have_the_noise_of_a_cross_validation(numbers):
    x, new, y = scaled(numbers)
    baseline = BoostedTrees(num_rounds=8, learning_rate=0.3, least_rows=3, num_folds=4)
    predictive = baseline.fit(numbers.train, None, seed=1).predict(numbers.test.x)
    units = numbers.train.scaling
    mean = HistGradientBoostingRegressor(**TREES).fit(x, y).predict(new)
    np.testing.assert_allclose(predictive.mean, mean * float(units.y_scale) + float(units.y_mean), rtol=1e-5)
    squares = []
    for kept, left_out in KFold(4, shuffle=True, random_state=1).split(x):
        found = HistGradientBoostingRegressor(**TREES).fit(x[kept], y[kept]).predict(x[left_out])
        squares.extend((found - y[left_out]) ** 2)
    noise = np.sqrt(np.mean(squares)) * float(units.y_scale)
    np.testing.assert_allclose(predictive.aleatoric_std, np.full(len(new), noise), rtol=1e-5)
    assert np.all(np.asarray(predictive.epistemic_std) == 0)


def test_trees_of_classes_are_scikit_learns(classes):
    x, new, _ = scaled(classes)
    other = HistGradientBoostingClassifier(**TREES).fit(x, np.asarray(classes.train.y))
    fitted = BoostedTrees(num_rounds=8, learning_rate=0.3, least_rows=3).fit(classes.train, 3, seed=1)
    np.testing.assert_allclose(fitted.predict(classes.test.x).probabilities, other.predict_proba(new), atol=1e-6)
    nodes = sum(tree.nodes.nbytes for trees in other._predictors for tree in trees)
    assert nodes < fitted.num_bytes < nodes + 100_000  # and the edges of the bins


def test_bytes_are_those_of_arrays_wherever_they_hang_and_each_once():
    class Thing:
        def __init__(self):
            self.mine = np.zeros(3)
            self.more = {"a": [self.mine, np.zeros(2, np.float32)], "me": self, "name": "x"}

    assert array_bytes(Thing()) == 3 * 8 + 2 * 4


def test_vectors_and_senseless_settings_are_refused(numbers):
    vectors = ws.Batch(np.zeros((4, 1)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="A baseline must have one number as its target, got shape \\(4, 2\\)"):
        GaussianProcess().fit(vectors, None, seed=0)
    with pytest.raises(ValueError, match="`most_rows` of GaussianProcess must be at least 2"):
        GaussianProcess(most_rows=1)
    with pytest.raises(ValueError, match="`learning_rate` of BoostedTrees must be positive"):
        BoostedTrees(learning_rate=0.0)
