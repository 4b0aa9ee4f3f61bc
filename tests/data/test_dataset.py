import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from weightscape.core.checks import InputError
from weightscape.data import Dataset, Scaling, from_arrays
from weightscape.data.split import split_rows


def _arrays(num_rows=50):
    generator = np.random.default_rng(0)
    return generator.standard_normal((num_rows, 3)), generator.standard_normal(num_rows)


def test_parts_are_disjoint_and_whole_and_in_original_units():
    x, y = _arrays()
    data = from_arrays(x, y)
    together = np.concatenate([data.train.x, data.test.x])
    assert (len(data.train), len(data.test)) == (40, 10)
    np.testing.assert_allclose(np.sort(together, axis=0), np.sort(x, axis=0), rtol=1e-6)
    rows = {tuple(row) for row in together.tolist()}
    assert len(rows) == 50


def test_rows_stay_together():
    x, _ = _arrays()
    data = from_arrays(x, x @ np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(data.test.x @ jnp.array([1.0, 2.0, 3.0]), data.test.y, rtol=1e-4, atol=1e-5)


def test_scaling_is_fitted_on_train_only():
    x, y = _arrays()
    data = from_arrays(x, y)
    alone = Scaling.fit(data.train.x, data.train.y, "regression")
    assert data.train.scaling is data.test.scaling
    np.testing.assert_allclose(data.train.scaling.x_mean, alone.x_mean, rtol=1e-5, atol=1e-6)
    assert not np.allclose(data.train.scaling.x_mean, x.mean(0), atol=1e-3)


def test_the_seed_fixes_the_split():
    x, y = _arrays()
    np.testing.assert_array_equal(from_arrays(x, y, seed=3).test.y, from_arrays(x, y, seed=3).test.y)
    assert not np.array_equal(from_arrays(x, y, seed=3).test.y, from_arrays(x, y, seed=4).test.y)


def test_unscaled_when_asked():
    assert from_arrays(*_arrays(), scale=False).train.scaling is None


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array(["dog", "cat", "emu"])[np.arange(30) % 3], ("cat", "dog", "emu")),
        (np.array([10, 2, -1])[np.arange(30) % 3], ("-1", "2", "10")),
        (np.array([1.0, 0.0, 2.0])[np.arange(30) % 3], ("0", "1", "2")),
        (np.array(["b", "a"], object)[np.arange(30) % 2], ("a", "b")),
        (np.arange(30) % 2 == 0, ("False", "True")),
    ],
)
def test_labels_are_numbered_in_sorted_order(labels, classes):
    data = from_arrays(np.arange(30.0)[:, None], labels, "classification")
    assert data.classes == classes
    original = [str(label) for label in labels[np.asarray(data.test.x[:, 0], int)]]
    named = [data.classes[code] for code in np.asarray(data.test.y)]
    assert [float(a) if a[0] in "-0123456789" else a for a in original] == [
        float(b) if b[0] in "-0123456789" else b for b in named
    ]


@pytest.mark.parametrize("test_fraction", [0.1, 0.2, 0.5, 0.8])
def test_every_class_is_in_train_and_proportions_hold(test_fraction):
    labels = np.repeat([0, 1, 2], [1, 20, 79])
    for seed in range(5):
        train, test = split_rows(100, test_fraction, seed, labels=labels)
        assert len(test) == round(100 * test_fraction)
        assert set(labels[train]) == {0, 1, 2}
        share = np.mean(labels[test] == 1)
        assert abs(share - 0.2) <= 2 / len(test)  # the counts are right up to one row at each end


@pytest.mark.parametrize(
    ("x", "y", "options", "words"),
    [
        (np.ones((2, 1)), np.ones(2), {}, "must leave at least 2 rows to train on after 1 are set aside"),
        (np.ones((9, 1)), np.ones(9), {}, "must vary in the training part, got the constant 1.0."),
        (np.ones((9, 1)), np.ones(9), {"task": "classification"}, "at least two classes, got 1 alone."),
        (np.ones((9, 1)), np.eye(9), {"task": "classification"}, "one axis, got shape (9, 9)."),
        (np.ones((3, 1)), ["a", None, "b"], {"task": "classification"}, "the first at row 1."),
        (np.ones((9, 1)), np.arange(9), {"task": "regresion"}, "Did you mean 'regression'?"),
        (np.ones((9, 1)), np.arange(9), {"test_fraction": 1.0}, "strictly between 0 and 1, got 1.0."),
        (np.ones((9, 1)), np.arange(9), {"task": "classification"}, "at least 9 rows to train on"),
        (np.array([[1.0], [np.nan], [2.0]]), np.arange(3.0), {}, "first at index (1, 0)."),
    ],
)
def test_mistakes_are_named(x, y, options, words):
    with pytest.raises(InputError) as caught:
        from_arrays(x, np.asarray(y), **options)
    assert words in str(caught.value)


def test_a_frame_lends_its_names():
    frame = pd.DataFrame({"height": np.arange(10.0), "weight": np.arange(10.0) ** 2})
    data = from_arrays(frame, np.arange(10.0))
    assert data.inputs == ("height", "weight")
    assert repr(data).splitlines() == [
        "Dataset 'arrays': regression, 8 train and 2 test rows, inputs 2",
        "  target 'y', columns height, weight",
    ]


def test_the_task_is_checked():
    data = from_arrays(*_arrays())
    with pytest.raises(InputError, match="`task` of Dataset"):
        Dataset("name", "clustering", data.train, data.test, inputs=())
