"""The estimators against closed forms and sums by hand, inside scikit-learn's tools, and through pickle and back."""

import pickle

import jax
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import weightscape as ws
from weightscape.sklearn import BNNClassifier, BNNRegressor
from weightscape.sklearn.fit import fitted_scaling

QUICK = ws.DeepEnsemble(num_members=2, num_steps=60, learning_rate=0.1)


def flowers(num_rows=60):
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:num_rows]
    return X[rows], np.array(["setosa", "versicolor", "virginica"])[y[rows]]


@pytest.fixture(scope="module")
def classifier():
    return BNNClassifier(QUICK, hidden=(5,), random_state=3).fit(*flowers())


def test_probabilities_are_those_of_the_draws(classifier):
    X = flowers()[0][:7]
    params, scaling = classifier.draws_.params.network, classifier.draws_.scaling
    wide = lambda array: np.asarray(array, np.float64)
    x = (X - wide(scaling.x_mean)) / wide(scaling.x_scale)
    by_hand = []
    for chain in range(2):
        weight, bias, last, shift = (
            wide(params[layer][leaf][chain, 0]) for layer in ("layer0", "layer1") for leaf in ("weight", "bias")
        )
        by_hand.append(softmax(np.tanh(x @ weight + bias) @ last + shift, axis=1))
    np.testing.assert_allclose(classifier.predict_proba(X), np.mean(by_hand, axis=0), rtol=1e-9)


def test_predictive_is_that_of_the_library(classifier):
    X = flowers()[0][:7]
    library = ws.predict(classifier.draws_, X)
    np.testing.assert_array_equal(classifier.predictive(X).mutual_information, library.mutual_information)
    # Logits of size 10, summed over five units in single precision: errors below 100 roundings.
    np.testing.assert_allclose(classifier.predict_proba(X), library.probabilities, atol=100 * 6e-8)


def test_labels_are_those_that_were_given(classifier):
    X, y = flowers()
    assert classifier.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert classifier.predict(X).tolist() == classifier.classes_[classifier.predict_proba(X).argmax(axis=1)].tolist()
    assert classifier.score(X, y) > 0.9
    assert classifier.n_features_in_ == 4
    assert len(classifier.draws_) == 2 and classifier.approximation_ is None
    assert classifier.posterior_.num_points == 60 and classifier.model_.network.outputs == 3


def linear_problem():
    """Rows of a linear model in odd units, with targets of two very different sizes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 2)) * [3.0, 0.01] + [50.0, -2.0]
    y = np.stack([500 + 40 * X[:, 0] + 9 * rng.normal(size=12), 0.1 * X[:, 1] + 0.003 * rng.normal(size=12)], axis=1)
    return X, y, rng.normal(size=(6, 2)) * [3.0, 0.01] + [50.0, -2.0]


def closed_form(X, y, new, *, noise, prior_scale):
    """Mean and standard deviation of a new y under Bayesian linear regression on standardised data."""
    x_mean, x_std, y_mean, y_std = X.mean(0), X.std(0), y.mean(), y.std()
    design, wanted = (np.column_stack([(rows - x_mean) / x_std, np.ones(len(rows))]) for rows in (X, new))
    precision = design.T @ design / (noise / y_std) ** 2 + np.eye(3) / prior_scale**2
    covariance = np.linalg.inv(precision)
    mean = wanted @ covariance @ design.T @ ((y - y_mean) / y_std) / (noise / y_std) ** 2
    variance = np.einsum("ni,ij,nj->n", wanted, covariance, wanted) + (noise / y_std) ** 2
    return y_mean + y_std * mean, y_std * np.sqrt(variance)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_a_linear_model_hold_what_they_say(level):
    X, targets, new = linear_problem()
    y = targets[:, 0]
    laplace = ws.Laplace(mode=ws.MAP(num_steps=100, learning_rate=0.1))
    regressor = BNNRegressor(laplace, noise=9.0, hidden=(), prior_scale=0.7, random_state=0).fit(X, y)
    mean, std = closed_form(X, y, new, noise=9.0, prior_scale=0.7)
    found = regressor.predict(new, return_std=True)
    np.testing.assert_allclose(found, (mean, std), rtol=1e-6)  # L-BFGS stops at gradients of about 1e-7
    lower, upper = regressor.predict_interval(new, level)
    held = norm.cdf(upper, mean, std) - norm.cdf(lower, mean, std)
    np.testing.assert_allclose(held, level, atol=1e-5)
    np.testing.assert_allclose(norm.cdf(lower, mean, std), (1 - level) / 2, atol=1e-5)


def test_several_targets_each_with_its_units():
    X, y, new = linear_problem()
    hmc = ws.HMC(num_chains=4, num_draws=400, num_warmup=200, num_leapfrog=8)
    regressor = BNNRegressor(hmc, noise=np.array([9.0, 0.003]), hidden=(), random_state=0).fit(X, y)
    mean, std = regressor.predict(new, return_std=True)
    lower, upper = regressor.predict_interval(new, 0.8)
    for i, noise in enumerate((9.0, 0.003)):
        known_mean, known_std = closed_form(X, y[:, i], new, noise=noise, prior_scale=1.0)
        # 1,600 draws, at worst ten to an independent one: six errors of a mean are 6/√160 of a spread, of a
        # spread 6/√320; a quantile at 10 % errs by 2.4 times as much as a mean.
        assert np.all(np.abs(mean[:, i] - known_mean) < 6 / np.sqrt(160) * known_std)
        np.testing.assert_allclose(std[:, i], known_std, rtol=6 / np.sqrt(320))
        held = norm.cdf(upper[:, i], known_mean, known_std) - norm.cdf(lower[:, i], known_mean, known_std)
        np.testing.assert_allclose(held, 0.8, atol=2 * 6 * np.sqrt(0.1 * 0.9 / 160))


def test_a_pipeline_is_searched_and_validated():
    X, y = flowers()
    pipeline = make_pipeline(MinMaxScaler(), BNNClassifier(QUICK, hidden=(5,), random_state=0))
    slower = ws.DeepEnsemble(num_members=2, num_steps=60, learning_rate=1e-6)
    grid = {"bnnclassifier__prior_scale": [1e-3, 1.0], "bnnclassifier__method": [QUICK, slower]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_log_loss", error_score="raise").fit(X, y)
    assert search.best_params_["bnnclassifier__prior_scale"] == 1.0
    assert float(search.best_params_["bnnclassifier__method"].learning_rate) == pytest.approx(0.1)
    scored = cross_val_score(search.best_estimator_, X, y, cv=2)
    assert scored.shape == (2,) and scored.min() > 0.8


def test_pickled_and_back(classifier):
    again = pickle.loads(pickle.dumps(classifier))
    X = flowers()[0]
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(again.draws_.log_density, classifier.draws_.log_density)
    position = jax.tree.map(lambda leaf: leaf[0, 0], classifier.draws_.positions())
    assert float(again.posterior_.log_density(position)) == float(classifier.posterior_.log_density(position))
    assert again.draws_.facts == classifier.draws_.facts and again.draws_.health == classifier.draws_.health
    assert vars(pickle.loads(pickle.dumps(clone(classifier)))).keys() == vars(clone(classifier)).keys()


def test_a_density_is_pickled_too():
    X, y = flowers(30)
    laplace = ws.Laplace(mode=ws.MAP(num_steps=60), polish=20, tuning=ws.EvidenceTuning())
    first = BNNClassifier(laplace, hidden=(2,), random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))
    assert again.approximation_.log_evidence == first.approximation_.log_evidence
    tuned, found = (jax.tree.leaves(fitted.approximation_.posterior.model.prior) for fitted in (first, again))
    np.testing.assert_array_equal(found, tuned)
    assert np.max(np.abs(np.array(tuned) - 1.0)) > 0.01
    one_by_one = np.concatenate([first.predict_proba(X[i : i + 1]) for i in range(3)])
    np.testing.assert_allclose(first.predict_proba(X)[:3], one_by_one, rtol=1e-9)


def test_a_network_without_a_name_is_refused_before_it_is_pickled():
    X, y = flowers()
    fitted = BNNClassifier(QUICK, hidden=(5,), activation=nameless, random_state=0).fit(X, y)
    with pytest.raises(ws.InputError, match="must be made of registered parts"):
        pickle.dumps(fitted)


def nameless(x):
    return jax.numpy.arctan(x)


def test_the_random_state_decides(classifier):
    X, y = flowers()
    probabilities = classifier.predict_proba(X)
    np.testing.assert_array_equal(clone(classifier).fit(X, y).predict_proba(X), probabilities)
    other = clone(classifier).set_params(random_state=4).fit(X, y)
    assert np.max(np.abs(other.predict_proba(X) - probabilities)) > 1e-4
    moving = clone(classifier).set_params(random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(moving.fit(X, y).predict_proba(X), probabilities)
    assert np.max(np.abs(moving.fit(X, y).predict_proba(X) - probabilities)) > 1e-4


def test_what_is_constant_has_scale_one():
    scaling = fitted_scaling(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([2.0, 2.0]), "regression")
    np.testing.assert_allclose([*scaling.x_mean, *scaling.x_scale], [2.0, 5.0, 1.0, 1.0])
    assert (float(scaling.y_mean), float(scaling.y_scale)) == (2.0, 1.0)
    varied = np.array([[2.0, 7.0], [6.0, 7.0]])
    scaling = fitted_scaling(varied, varied, "regression")
    np.testing.assert_allclose([*scaling.y_mean, *scaling.y_scale], [4.0, 7.0, 2.0, 1.0])
    assert fitted_scaling(varied, np.array([0, 1]), "classification").y_mean is None


FAULTS = [
    ({"method": "hcm"}, ValueError, "`method` must be a known name, got 'hcm'. Did you mean 'hmc'?"),
    ({"method": 3}, TypeError, "`method` must be a Method or its name, got int."),
    ({"noise": -1.0}, ValueError, "`noise` of BNNRegressor must be positive and finite, got -1.0."),
    ({"activation": "tan"}, ValueError, "Did you mean 'tanh'?"),
    ({"hidden": (0,)}, ValueError, "`hidden` of MLP"),
    ({"prior_scale": 0.0}, ValueError, "must be positive"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("settings", "kind", "message"), FAULTS)
def test_a_fault_is_said_in_one_line(settings, kind, message):
    X, y, _ = linear_problem()
    with pytest.raises(kind) as caught:
        BNNRegressor(**settings).fit(X, y)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_faults_in_data_are_named(classifier):
    X, y = flowers()
    with pytest.raises(ValueError, match="two classes or more, got 1 class, setosa"):
        BNNClassifier().fit(X, np.full(len(X), "setosa"))
    with pytest.raises(ValueError, match="contains NaN"):
        BNNClassifier().fit(np.where(X > 5, np.nan, X), y)
    with pytest.raises(ValueError, match="X has 3 features, but BNNClassifier is expecting 4"):
        classifier.predict(X[:, :3])
    for ask in (BNNClassifier().predict, BNNClassifier().predictive, BNNRegressor().predict_interval):
        with pytest.raises(NotFittedError):
            ask(X)


def test_a_level_beyond_one_is_refused():
    X, y, new = linear_problem()
    regressor = BNNRegressor("map", noise=0.5, hidden=(), scale=False, random_state=0)
    regressor.set_params(method=ws.MAP(num_steps=10)).fit(X - X.mean(0), y[:, 1])
    with pytest.raises(ValueError, match="`level` of predict_interval must lie strictly between 0 and 1"):
        regressor.predict_interval(new, 1.5)
    assert regressor.draws_.scaling is None
    assert float(regressor.model_.likelihood.scale) == 0.5
