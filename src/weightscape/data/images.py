"""Images: MNIST, Fashion-MNIST, CIFAR-10, and two local sets, notMNIST and MNIST-1D.

Pixels keep their units, 0 to 255, as floats of shape (image, height, width, channel); all pixels share one
mean and scale, taken from the training part. A local directory holds `mnist.npz` and so on, with the arrays
x_train, y_train, x_test, y_test; without one, the original files are fetched. notMNIST and MNIST-1D have no
source in a format that runs no code, so they are read from the local directory only.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from weightscape.core.checks import require, require_count
from weightscape.data.batch import Batch
from weightscape.data.dataset import Dataset, scaled_parts
from weightscape.data.fetch import Progress, fetch, local_file, require_local_file
from weightscape.data.formats import read_cifar, read_idx, read_npz

DIGITS = tuple("0123456789")
GARMENTS = (
    "T-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_MNIST_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_MNIST_SHA256 = (
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
)
_FASHION_URL = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"
_FASHION_SHA256 = (
    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
)
_CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_CIFAR_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"


class Parts(NamedTuple):
    """Raw arrays of a training and a test part."""

    x_train: Shaped[np.ndarray, "train ..."]
    y_train: Shaped[np.ndarray, " train"]
    x_test: Shaped[np.ndarray, "test ..."]
    y_test: Shaped[np.ndarray, " test"]


def mnist(
    *,
    flatten: bool = False,
    num_train: int | None = None,
    num_test: int | None = None,
    directory: str | Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Handwritten digits, 28 × 28 (LeCun, Cortes and Burges).

    Arguments:
        flatten: pixels as one row of columns, for networks that take tables.
        num_train: take the first so many training images; None takes all.
        num_test: likewise for test images.
        directory: where `mnist.npz` lies; None looks in WEIGHTSCAPE_DATA, then fetches.
        progress: called with bytes so far and in all while fetching.

    """
    local = local_file("mnist.npz", directory)
    parts = _local(local) if local else _fetched_idx("mnist", _MNIST_URL, _MNIST_SHA256, progress)
    return _assemble("mnist", _first(parts, num_train, num_test), DIGITS, flatten=flatten)


def fashion_mnist(
    *,
    flatten: bool = False,
    num_train: int | None = None,
    num_test: int | None = None,
    directory: str | Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Pictures of garments, 28 × 28 (Xiao, Rasul and Vollgraf 2017); options as `mnist`."""
    local = local_file("fashion_mnist.npz", directory)
    parts = _local(local) if local else _fetched_idx("fashion_mnist", _FASHION_URL, _FASHION_SHA256, progress)
    return _assemble("fashion_mnist", _first(parts, num_train, num_test), GARMENTS, flatten=flatten)


def cifar10(
    *,
    flatten: bool = False,
    num_train: int | None = None,
    num_test: int | None = None,
    directory: str | Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Colour photographs, 32 × 32 (Krizhevsky 2009); options as `mnist`, the local file is `cifar10.npz`."""
    local = local_file("cifar10.npz", directory)
    parts = _local(local) if local else _fetched_cifar(progress)
    return _assemble("cifar10", _first(parts, num_train, num_test), THINGS, flatten=flatten)


def mnist1d(
    *, num_train: int | None = None, num_test: int | None = None, directory: str | Path | None = None
) -> Dataset:
    """Digits as signals of 40 numbers (Greydanus and Kobak 2020), from the local file `mnist1d.npz`."""
    parts = _local(require_local_file("mnist1d.npz", directory))
    return _assemble("mnist1d", _first(parts, num_train, num_test), DIGITS, flatten=True)


def notmnist(*, flatten: bool = False, num_test: int | None = None, directory: str | Path | None = None) -> Batch:
    """Letters A to J, 28 × 28 (Bulatov 2011), from the local file `notmnist_10k.npz`.

    For tests out of distribution only, so a batch without training part or scaling.
    """
    path = require_local_file("notmnist_10k.npz", directory)
    x, y = read_npz(path, ("x_test", "y_test"))
    return Batch(_shaped(_taken(x, num_test, "num_test"), flatten=flatten), _taken(y, num_test, "num_test"))


def _local(path: Path) -> Parts:
    return Parts(*read_npz(path, Parts._fields))


def _fetched_idx(name: str, url: str, sums: tuple[str, ...], progress: Progress | None) -> Parts:
    files = [
        fetch(url + file, sha256, f"{name}/{file}", progress=progress)
        for file, sha256 in zip(_IDX_FILES, sums, strict=True)
    ]
    return Parts(*[read_idx(file) for file in files])


def _fetched_cifar(progress: Progress | None) -> Parts:
    path = fetch(_CIFAR_URL, _CIFAR_SHA256, "cifar10/cifar-10-binary.tar.gz", progress=progress)
    train = read_cifar(path, tuple(f"data_batch_{i}.bin" for i in range(1, 6)))
    return Parts(*train, *read_cifar(path, ("test_batch.bin",)))


def _first(parts: Parts, num_train: int | None, num_test: int | None) -> Parts:
    train = [_taken(array, num_train, "num_train") for array in parts[:2]]
    return Parts(*train, *[_taken(array, num_test, "num_test") for array in parts[2:]])


def _taken(array: np.ndarray, count: int | None, name: str) -> np.ndarray:
    if count is None:
        return array
    require_count(f"`{name}`", count)
    require(count <= len(array), f"`{name}` must be at most {len(array)}", count, "Pass a smaller number.")
    return array[:count]


def _assemble(name: str, parts: Parts, classes: tuple[str, ...], *, flatten: bool) -> Dataset:
    train = _shaped(parts.x_train, flatten=flatten), parts.y_train
    test = _shaped(parts.x_test, flatten=flatten), parts.y_test
    batches = scaled_parts(train, test, "classification", shared=True)
    return Dataset(name, "classification", *batches, inputs=(), target="class", classes=classes)


def _shaped(x: np.ndarray, *, flatten: bool) -> np.ndarray:
    if flatten:
        return x.reshape(len(x), -1)
    return x[..., None] if x.ndim == 3 else x
