"""Small real datasets that come with scikit-learn: no network needed."""

from collections.abc import Callable
from typing import Any

from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from weightscape.data.dataset import Dataset, scaled_parts
from weightscape.data.split import split_rows


def iris(*, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """Fisher's irises: 150 flowers, 4 measurements, 3 species."""
    return _split("iris", load_iris, test_fraction, seed)


def wine(*, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """Chemical analyses of 178 wines of 3 growers, 13 inputs."""
    return _split("wine", load_wine, test_fraction, seed)


def breast_cancer(*, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """569 tumours, 30 measurements, malignant or benign."""
    return _split("breast_cancer", load_breast_cancer, test_fraction, seed)


def digits(*, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """1797 handwritten digits of 8 × 8 pixels, as 64 columns that share one scale."""
    return _split("digits", load_digits, test_fraction, seed, shared=True)


def diabetes(*, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """Disease progression of 442 patients from 10 measurements, in their original units."""
    return _split("diabetes", lambda: load_diabetes(scaled=False), test_fraction, seed)


def _split(name: str, source: Callable[[], Any], test_fraction: float, seed: int, *, shared: bool = False) -> Dataset:
    bunch = source()
    x, y = bunch.data, bunch.target
    classes = tuple(str(label) for label in bunch.target_names) if "target_names" in bunch else None
    task = "regression" if classes is None else "classification"
    train, test = split_rows(len(x), test_fraction, seed, labels=None if classes is None else y)
    parts = scaled_parts((x[train], y[train]), (x[test], y[test]), task, shared=shared)
    inputs = tuple(str(column) for column in bunch.feature_names)
    return Dataset(name, task, *parts, inputs, "progression" if classes is None else "class", classes)
