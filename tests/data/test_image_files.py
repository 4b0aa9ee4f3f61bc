import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np
import pytest

from weightscape.core.checks import InputError
from weightscape.data import images
from weightscape.data.formats import read_cifar, read_idx, read_npz


def _idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def _bytes(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def _tar(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def _record(label, image):
    return bytes([label]) + np.ascontiguousarray(image.transpose(2, 0, 1)).tobytes()


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (300, 2, 2)])
def test_idx_files_are_read(tmp_path, shape):
    array = _bytes(shape)
    (tmp_path / "file.gz").write_bytes(gzip.compress(_idx(array)))
    np.testing.assert_array_equal(read_idx(tmp_path / "file.gz"), array)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_idx(_bytes((2, 3)))[:-1], "must hold (2, 3) values, got 5."),
        (b"\0\0\x0d\x01" + bytes(8), "must be an IDX file of bytes, got 00000d01."),
        (b"", "must be an IDX file of bytes"),
        (b"\0\0\x08\x03\0\0", "must hold"),
    ],
)
def test_damaged_idx_files_are_refused(tmp_path, content, words):
    (tmp_path / "file.gz").write_bytes(gzip.compress(content))
    with pytest.raises(InputError) as caught:
        read_idx(tmp_path / "file.gz")
    assert words in str(caught.value)


def test_cifar_records_are_read_in_order(tmp_path):
    pictures = _bytes((3, 32, 32, 3))
    members = {"b.bin": _record(7, pictures[0]) + _record(1, pictures[1]), "a.bin": _record(9, pictures[2])}
    _tar(tmp_path / "archive.tar.gz", members)
    read = read_cifar(tmp_path / "archive.tar.gz", ("b.bin", "a.bin"))
    np.testing.assert_array_equal(read.x, pictures)
    assert read.y.tolist() == [7, 1, 9]


def test_damaged_cifar_archives_are_refused(tmp_path):
    _tar(tmp_path / "archive.tar.gz", {"a.bin": bytes(3072)})
    with pytest.raises(InputError, match="must hold records of 3073 bytes, got 3072 bytes"):
        read_cifar(tmp_path / "archive.tar.gz", ("a.bin",))
    with pytest.raises(InputError, match=r"must hold one `b.bin`, got 0"):
        read_cifar(tmp_path / "archive.tar.gz", ("b.bin",))


def test_npz_files_must_be_whole_and_without_pickles(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    assert read_npz(tmp_path / "a.npz", ("x",))[0].tolist() == [1, 1, 1]
    with pytest.raises(InputError, match=r"must hold x, y, got no \['y'\]"):
        read_npz(tmp_path / "a.npz", ("x", "y"))
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-30])
    with pytest.raises(InputError, match="must be a whole npz file"):
        read_npz(tmp_path / "b.npz", ("x",))
    np.savez(tmp_path / "c.npz", x=np.array([{}], object))
    with pytest.raises(InputError, match="must be a whole npz file"):
        read_npz(tmp_path / "c.npz", ("x",))


def _local_set(directory, name, shape=(28, 28)):
    arrays = {"x_train": _bytes((6, *shape)), "x_test": _bytes((4, *shape), 1)}
    np.savez(directory / name, y_train=np.arange(6, dtype=np.uint8), y_test=np.arange(4, dtype=np.uint8), **arrays)
    return arrays


@pytest.mark.parametrize(
    ("load", "name", "shape"),
    [(images.mnist, "mnist", (28, 28)), (images.fashion_mnist, "fashion_mnist", (28, 28)),
     (images.cifar10, "cifar10", (32, 32, 3))],
)  # fmt: skip
def test_local_images_keep_their_units_and_share_one_scale(tmp_path, load, name, shape):
    arrays = _local_set(tmp_path, f"{name}.npz", shape)
    data = load(directory=tmp_path)
    channels = shape if len(shape) == 3 else (*shape, 1)
    assert data.train.x.shape == (6, *channels)
    np.testing.assert_array_equal(np.asarray(data.test.x).reshape(arrays["x_test"].shape), arrays["x_test"])
    np.testing.assert_allclose(data.train.scaling.x_mean, arrays["x_train"].mean(), rtol=1e-5)
    np.testing.assert_allclose(data.train.scaling.x_scale, arrays["x_train"].std(), rtol=1e-5)
    flat = load(directory=tmp_path, flatten=True, num_train=5, num_test=2)
    assert (flat.train.x.shape, flat.test.x.shape) == ((5, np.prod(shape)), (2, np.prod(shape)))
    np.testing.assert_array_equal(flat.train.x, arrays["x_train"][:5].reshape(5, -1))
    assert flat.train.scaling.inputs(flat.train.x).shape == flat.train.x.shape
    assert (data.name, data.task, len(data.classes)) == (name, "classification", 10)


def test_counts_beyond_the_file_are_refused(tmp_path):
    _local_set(tmp_path, "mnist.npz")
    with pytest.raises(InputError, match=r"`num_train` must be at most 6, got 7\."):
        images.mnist(directory=tmp_path, num_train=7)


def test_fetched_idx_files_make_a_dataset(monkeypatch, tmp_path, empty_cache):
    source = tmp_path / "source"
    source.mkdir()
    arrays = [
        _bytes((6, 28, 28)),
        np.arange(6, dtype=np.uint8),
        _bytes((4, 28, 28), 1),
        np.arange(4, dtype=np.uint8),
    ]
    for name, array in zip(images._IDX_FILES, arrays, strict=True):
        (source / name).write_bytes(gzip.compress(_idx(array)))
    sums = tuple(hashlib.sha256((source / name).read_bytes()).hexdigest() for name in images._IDX_FILES)
    monkeypatch.setattr(images, "_MNIST_URL", f"file://{source}/")
    monkeypatch.setattr(images, "_MNIST_SHA256", sums)
    data = images.mnist()
    np.testing.assert_array_equal(data.train.x[..., 0], arrays[0])
    np.testing.assert_array_equal(data.test.y, arrays[3])
    assert (empty_cache / "mnist" / images._IDX_FILES[0]).is_file()


def test_the_fetched_cifar_archive_makes_a_dataset(monkeypatch, tmp_path, empty_cache):
    pictures = _bytes((6, 32, 32, 3))
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    _tar(tmp_path / "c.tar.gz", {name: _record(i, pictures[i]) for i, name in enumerate(names)})
    monkeypatch.setattr(images, "_CIFAR_URL", f"file://{tmp_path}/c.tar.gz")
    monkeypatch.setattr(images, "_CIFAR_SHA256", hashlib.sha256((tmp_path / "c.tar.gz").read_bytes()).hexdigest())
    data = images.cifar10()
    np.testing.assert_array_equal(data.train.x, pictures[:5])
    np.testing.assert_array_equal(data.test.x, pictures[5:])
    assert data.train.y.tolist() == [0, 1, 2, 3, 4]


def test_real_mnist_has_its_published_statistics(local_data):
    """The mean 0.1307 and deviation 0.3081 of pixels over 255 are quoted everywhere for the 60,000 images."""
    data = images.mnist(flatten=True)
    assert (data.train.x.shape, data.test.x.shape) == ((60000, 784), (10000, 784))
    assert round(float(data.train.scaling.x_mean) / 255, 4) == 0.1307
    assert round(float(data.train.scaling.x_scale) / 255, 4) == 0.3081


def test_real_shifted_letters_are_for_testing_only(local_data):
    letters = images.notmnist(num_test=20)
    assert letters.x.shape == (20, 28, 28, 1)
    assert letters.scaling is None
