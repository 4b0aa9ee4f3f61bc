"""The catalogue: every dataset that has a name.

A row says what a dataset is without loading it, and which function loads it; the options of `load` are the
arguments of that function.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import weightscape.data.bundled as bundled
import weightscape.data.images as images
import weightscape.data.toy as toy
import weightscape.data.uci as uci
from weightscape.core.checks import InputError, require_known
from weightscape.data.batch import Batch
from weightscape.data.dataset import Dataset


class Description(NamedTuple):
    """What a dataset is: `rows` counts train and test together, `inputs` is the shape of one row."""

    name: str
    task: str
    rows: int
    inputs: str
    source: str


class _Entry(NamedTuple):
    load: Callable[..., Dataset]
    task: str
    rows: int
    inputs: str
    source: str


_LOCAL_OR_FETCHED = "local directory or fetched"
_LOCAL = "local directory"

_CATALOGUE: dict[str, _Entry] = {
    "line": _Entry(toy.line, "regression", 101, "1", "made here"),
    "noisy_line": _Entry(toy.noisy_line, "regression", 101, "1", "made here"),
    "cubic": _Entry(toy.cubic, "regression", 201, "1", "made here"),
    "linear_gaussian": _Entry(toy.linear_gaussian, "regression", 100, "3", "made here"),
    "moons": _Entry(toy.moons, "classification", 200, "2", "made here"),
    "iris": _Entry(bundled.iris, "classification", 150, "4", "scikit-learn"),
    "wine": _Entry(bundled.wine, "classification", 178, "13", "scikit-learn"),
    "breast_cancer": _Entry(bundled.breast_cancer, "classification", 569, "30", "scikit-learn"),
    "digits": _Entry(bundled.digits, "classification", 1797, "64", "scikit-learn"),
    "diabetes": _Entry(bundled.diabetes, "regression", 442, "10", "scikit-learn"),
    "mnist": _Entry(images.mnist, "classification", 70000, "28 × 28 × 1", _LOCAL_OR_FETCHED),
    "fashion_mnist": _Entry(images.fashion_mnist, "classification", 70000, "28 × 28 × 1", _LOCAL_OR_FETCHED),
    "cifar10": _Entry(images.cifar10, "classification", 60000, "32 × 32 × 3", _LOCAL_OR_FETCHED),
    "mnist1d": _Entry(images.mnist1d, "classification", 5000, "40", _LOCAL),
} | {
    name: _Entry(
        functools.partial(uci.load_uci, name), "regression", one.num_rows, str(one.num_inputs), _LOCAL_OR_FETCHED
    )
    for name, one in uci.BENCHMARKS.items()
}

_TEST_ONLY: dict[str, Callable[..., Batch]] = {"notmnist": images.notmnist}


def load(name: str, **options: Any) -> Dataset:
    """A dataset by its name, in lower case; `names()` lists them.

    Example:
    >>> load("iris").classes
    ('setosa', 'versicolor', 'virginica')

    """
    if name in _TEST_ONLY:
        raise InputError(f"A dataset must have a training part, got {name!r}. Use `load_test({name!r})`.")
    require_known("A dataset", name, _CATALOGUE)
    loader = _CATALOGUE[name].load
    _require_options(name, loader, options)
    return loader(**options)


def load_test(name: str, **options: Any) -> Batch:
    """The test part of a dataset alone, without scaling: what a model trained elsewhere is shown.

    Takes the names of `load` and also "notmnist", which has no training part.
    """
    if name not in _TEST_ONLY:
        require_known("A dataset", name, [*_CATALOGUE, *_TEST_ONLY])
        test = load(name, **options).test
        return Batch(test.x, test.y)
    _require_options(name, _TEST_ONLY[name], options)
    return _TEST_ONLY[name](**options)


def names() -> tuple[str, ...]:
    """The names that `load` knows."""
    return tuple(_CATALOGUE)


def describe() -> tuple[Description, ...]:
    """What each dataset is, without loading any; sizes are those of the default options."""
    rows = [Description(name, *entry[1:]) for name, entry in _CATALOGUE.items()]
    return (*rows, Description("notmnist", "test only", 10000, "28 × 28 × 1", _LOCAL))


def _require_options(name: str, loader: Callable[..., object], options: dict[str, Any]) -> None:
    for option in options:
        require_known(f"An option of {name!r}", option, inspect.signature(loader).parameters)
