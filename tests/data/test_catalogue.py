import numpy as np
import pytest

from weightscape.core.checks import InputError
from weightscape.data import describe, load, load_test, names, uci

SMALL = [row for row in describe() if row.source in ("made here", "scikit-learn")]
UCI = [row for row in describe() if row.name in uci.BENCHMARKS]


def _inputs(data):
    return " × ".join(str(size) for size in data.train.x.shape[1:])


@pytest.mark.parametrize("row", SMALL, ids=lambda row: row.name)
def test_descriptions_are_true(row):
    data = load(row.name)
    assert (data.name, data.task) == (row.name, row.task)
    assert (len(data.train) + len(data.test), _inputs(data)) == (row.rows, row.inputs)
    assert len(data.inputs) == data.train.x.shape[1]
    if data.task == "classification":
        assert set(np.asarray(data.train.y)) == set(range(len(data.classes or ())))


@pytest.mark.parametrize("row", UCI, ids=lambda row: row.name)
def test_uci_descriptions_are_true(local_data, row):
    data = load(row.name, split=1)
    assert (data.name, data.task) == (row.name, row.task)
    assert (len(data.train) + len(data.test), _inputs(data)) == (row.rows, row.inputs)
    np.testing.assert_allclose(data.train.scaling.inputs(data.train.x).mean(0), 0.0, atol=2e-3)


def test_uci_splits_are_the_files(local_data):
    with np.load(local_data / "uci" / "yacht.npz") as file:
        expected = file["y"][file["test_idx"][3]]
    np.testing.assert_allclose(load("yacht", split=3).test.y, expected, rtol=1e-6)
    with pytest.raises(InputError, match=r"`split` of yacht must be below 20, got 20\."):
        load("yacht", split=20)


def test_the_constant_columns_of_naval_have_scale_one(local_data):
    scale = np.asarray(load("naval").train.scaling.x_scale)
    assert np.flatnonzero(scale == 1.0).tolist() == [8, 11]


def test_signals_are_loaded(local_data):
    assert load("mnist1d", num_train=10).train.x.shape == (10, 40)


def test_classes_keep_the_numbers_of_the_source():
    data = load("breast_cancer", seed=2)
    assert data.classes == ("malignant", "benign")
    assert 0.6 < float(np.mean(np.asarray(data.train.y))) < 0.65  # 357 of 569 are benign


def test_bundled_splits_are_fixed_by_their_seed():
    np.testing.assert_array_equal(load("iris", seed=1).test.x, load("iris", seed=1).test.x)
    assert not np.array_equal(load("iris", seed=1).test.x, load("iris", seed=2).test.x)


def test_bundled_splits_keep_the_class_proportions():
    for seed in range(3):
        assert np.bincount(load("iris", seed=seed).test.y).tolist() == [10, 10, 10]


def test_options_reach_the_loader():
    assert len(load("iris", test_fraction=0.5).test) == 75
    assert load("linear_gaussian", n=7, d=2).train.x.shape == (7, 2)


def test_unknown_names_and_options_list_the_known_ones():
    with pytest.raises(InputError, match=r"got 'irs'. Did you mean 'iris'\? Known: boston, breast_cancer"):
        load("irs")
    with pytest.raises(InputError, match=r"An option of 'iris' must be a known name, got 'sed'.*Known: seed, test_fr"):
        load("iris", sed=1)
    with pytest.raises(InputError, match=r"An option of 'yacht' .* Known: directory, split"):
        load("yacht", fold=3)


def test_test_parts_come_without_scaling(local_data):
    batch = load_test("iris")
    np.testing.assert_array_equal(batch.x, load("iris").test.x)
    assert batch.scaling is None
    assert load_test("notmnist", num_test=3, flatten=True).x.shape == (3, 784)
    with pytest.raises(InputError, match=r"Use `load_test\('notmnist'\)`\."):
        load("notmnist")
    with pytest.raises(InputError, match=r"Known: .*notmnist"):
        load_test("nomnist")


def test_names_are_what_load_knows():
    assert set(names()) == {row.name for row in describe()} - {"notmnist"}
