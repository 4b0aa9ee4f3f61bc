"""Splits by quantile against the rows themselves; scores by severity against a closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.geometry.scrambled import draws_at

import weightscape as ws
from weightscape.core import InputError, InputTypeError
from weightscape.data import Scaling, from_arrays
from weightscape.evaluate.corruptions import COLUMN_NOISE, ColumnNoise
from weightscape.evaluate.shift import shift_curve, shift_text, shifted_split

KEY = jax.random.key(3)


def numbers(num_rows: int = 101, *, scale: bool = True) -> ws.Dataset:
    """A table whose second column is 0, 1, …, in random order, and whose target tells the rows apart."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(num_rows, 3))
    x[:, 1] = generator.permutation(num_rows)
    return from_arrays(x, 1000.0 + np.arange(num_rows), scale=scale)


def rows_of(*batches: ws.Batch) -> np.ndarray:
    return np.concatenate([np.column_stack([batch.x, batch.y]) for batch in batches])


def in_order(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T)]


def test_no_row_is_lost_and_the_quantile_is_right():
    data = numbers()
    split = shifted_split(data, "x1", 0.8)
    train, test = split.data.train, split.data.test
    assert split.cut == 80.0  # the 80th of 0 … 100, which is inside
    assert (len(train), len(test), len(split.outside)) == (65, 16, 20)
    assert np.array_equal(in_order(rows_of(train, test, split.outside)), in_order(rows_of(data.train, data.test)))
    assert set(np.asarray(split.outside.x[:, 1])) == set(range(81, 101))
    assert {name: getattr(split.data, name) for name in ("task", "inputs")} == {
        "task": "regression",
        "inputs": data.inputs,
    }


def test_scaling_is_fitted_on_the_rows_to_train_on():
    split = shifted_split(numbers(), "x1", 0.7)
    train = split.data.train
    expected = Scaling.fit(np.asarray(train.x), np.asarray(train.y), "regression")
    for batch in (train, split.data.test, split.outside):
        assert batch.scaling is not None
        jax.tree.map(np.testing.assert_array_equal, batch.scaling, expected)
    plain = shifted_split(numbers(scale=False), "x1")
    assert plain.data.train.scaling is None and plain.outside.scaling is None


def test_a_scaling_stays_of_its_kind():
    data = numbers()
    inputs_alone = Scaling(0.0, 2.0)
    bare = ws.Dataset(
        "counts",
        "regression",
        ws.Batch(data.train.x, data.train.y, inputs_alone),
        ws.Batch(data.test.x, data.test.y, inputs_alone),
        inputs=data.inputs,
    )
    scaling = shifted_split(bare, 1).data.train.scaling
    assert scaling is not None and scaling.y_mean is None and scaling.x_mean.ndim == 0


def test_columns_by_number_and_directions():
    data = numbers()
    by_name, by_number, along = (shifted_split(data, by, 0.8, seed=1) for by in ("x1", 1, [0, 2.0, 0]))
    for other in (by_number, along):
        assert np.array_equal(rows_of(other.data.train, other.outside), rows_of(by_name.data.train, by_name.outside))
    assert along.cut == 160.0
    below = shifted_split(data, (0, -1, 0), 0.8)
    assert set(np.asarray(below.outside.x[:, 1])) == set(range(20))
    slanted = np.array([1.0, 0.01, -2.0])
    split = shifted_split(data, slanted, 0.5)
    values = [np.asarray(batch.x, np.float64) @ slanted for batch in (split.data.train, split.data.test, split.outside)]
    assert max(values[0].max(), values[1].max()) <= split.cut < values[2].min()
    np.testing.assert_allclose(split.cut, np.median(np.concatenate(values)), rtol=1e-12)
    assert not np.array_equal(rows_of(split.data.test), rows_of(shifted_split(data, slanted, 0.5, seed=1).data.test))


def test_classes_keep_their_proportions_and_are_all_seen():
    data = ws.data.load("iris")
    for seed in range(8):
        split = shifted_split(data, "sepal width (cm)", 0.7, test_fraction=0.25, seed=seed)
        counts = [np.bincount(np.asarray(part.y), minlength=3) for part in (split.data.train, split.data.test)]
        assert np.abs(counts[0] / 3 - counts[1]).max() <= 1
        assert split.data.classes == data.classes
    with pytest.raises(InputError, match="every class below the cut, got none of virginica"):
        shifted_split(data, "petal length (cm)", 0.5)


def test_splits_that_cannot_be():
    data = numbers()
    with pytest.raises(InputError, match="Did you mean 'x1'"):
        shifted_split(data, "x11")
    with pytest.raises(InputError, match="must be below 3, got 3"):
        shifted_split(data, 3)
    with pytest.raises(InputError, match=r"each of the 3 columns, got shape \(2,\)"):
        shifted_split(data, [1.0, 0.0])
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        shifted_split(data, "x1", 1.0)
    with pytest.raises(InputError, match="none above 0"):
        shifted_split(data, [0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="must be finite"):
        shifted_split(data, [0.0, np.nan, 0.0])
    pictures = from_arrays(np.random.default_rng(0).uniform(size=(10, 2, 2, 1)), np.arange(10.0))
    with pytest.raises(InputError, match="must be a table"):
        shifted_split(pictures, 0)


def linear_draws(weights: np.ndarray, noise: float, x: np.ndarray, y: np.ndarray) -> ws.Draws:
    network = ws.networks.MLP(hidden=(), bias=False)
    model = ws.Model(network, ws.likelihoods.Gaussian(noise), ws.priors.Normal(1.0))
    return draws_at(model.condition(ws.Batch(x[:5], y[:5])), weights[None, None])


def test_nll_rises_by_the_closed_form(x64):
    """With δ ~ N(0, v), v = s² Σ_j w_j² spread_j², the NLL rises by E[(r − δ)² − r²] / 2σ² = v / 2σ².

    The variance of a point's part is (2 v² + 4 r² v) / 4σ⁴; six standard errors are left by chance once in 10⁹.
    """
    generator = np.random.default_rng(0)
    weights, spread, noise = np.array([1.0, -0.5]), np.array([0.5, 3.0]), 0.4
    x = generator.normal(size=(2_000, 2)) * spread
    y = x @ weights + noise * generator.normal(size=len(x))
    draws = linear_draws(weights, noise, x, y)
    rows = shift_curve(KEY, draws, ws.Batch(x, y), ColumnNoise(spread=spread), (2, 3, 5))
    assert [row.severity for row in rows] == [0, 2, 3, 5]
    r_squared = np.mean((y - x @ weights) ** 2)
    clean = 0.5 * np.log(2 * np.pi * noise**2) + r_squared / (2 * noise**2)
    np.testing.assert_allclose(rows[0].scores["nll"], clean, rtol=1e-9)
    for row in rows[1:]:
        v = COLUMN_NOISE[row.severity - 1] ** 2 * np.sum((weights * spread) ** 2)
        error = np.sqrt((2 * v**2 + 4 * r_squared * v) / len(x)) / (2 * noise**2)
        assert abs(row.scores["nll"] - clean - v / (2 * noise**2)) < 6 * error
        assert 12 * error < v / (2 * noise**2)


def test_severity_raises_the_nll_of_a_fitted_model():
    data = ws.data.load("iris")
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Categorical(num_classes=3), ws.priors.Normal(1.0))
    draws = ws.MAP().run(jax.random.key(0), model.condition(data.train))
    noise = ColumnNoise(spread=data.train.scaling.x_scale)
    rows = shift_curve(KEY, draws, data.test, noise, (2, 5))
    assert rows[0].scores["nll"] < rows[1].scores["nll"] < rows[2].scores["nll"]
    assert rows[2].scores["accuracy"] < rows[0].scores["accuracy"]
    (_, lone) = shift_curve(KEY, lambda x: ws.predict(draws, x), data.test, noise, (5,))
    assert dict(lone.scores) == dict(rows[2].scores)
    lines = shift_text(rows).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["clean", "severity 2", "severity 5"]
    assert "accuracy" in lines[0] and "nll" in lines[0]


def test_curves_that_cannot_be(unchecked):
    x, y = np.ones((6, 2)), np.arange(6.0)
    draws, batch = linear_draws(np.ones(2), 1.0, x, y), ws.Batch(x, y)
    with pytest.raises(InputError, match="Did you mean 'contrast'"):
        shift_curve(KEY, draws, batch, "contrasts")
    with pytest.raises(InputTypeError, match="must be a Corruption or its name"):
        shift_curve(KEY, draws, batch, 3)
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        shift_curve(KEY, draws, batch, "column_noise", (0, 1))
    with pytest.raises(InputError, match="four axes"):
        shift_curve(KEY, draws, batch, "gaussian_blur")
    with pytest.raises(InputTypeError, match="must be Draws or a function, got int"):
        shift_curve(KEY, 3, batch, "column_noise")
    with pytest.raises(InputTypeError, match="typed random key"):
        shift_curve(jnp.zeros(2), draws, batch, "column_noise")
