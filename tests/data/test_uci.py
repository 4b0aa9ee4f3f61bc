"""The UCI benchmarks are put together from text files and checked by the arrays they give."""

import hashlib

import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.data import load, uci

MADE_UP = {
    "X": np.array([[1.5, -2.0], [0.1, 3e-5], [7.0, 0.3], [2.0, 1.0]]),
    "y": np.array([10.0, 20.0, 1e-3, 40.0]),
    "train_idx": np.array([[0, 1, 3], [1, 2, 3]]),
    "test_idx": np.array([[2], [0]]),
}


def digest(arrays):
    parts = [arrays["X"].astype("<f8"), arrays["y"].astype("<f8")]
    parts += [arrays["train_idx"].astype("<i8"), arrays["test_idx"].astype("<i8")]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def write_source(folder, arrays):
    """The published form: the target in the middle, indices beside it, all as text."""
    folder.mkdir(parents=True)
    table = np.column_stack([arrays["X"][:, 0], arrays["y"], arrays["X"][:, 1:]])
    rows = "\n".join(" ".join(repr(float(value)) for value in row) for row in table)
    (folder / "data.txt").write_text(rows + "\r\n")
    columns = [0, *range(2, table.shape[1])]
    np.savetxt(folder / "index_features.txt", columns)
    np.savetxt(folder / "index_target.txt", [1])
    for part in ("train", "test"):
        for i, chosen in enumerate(arrays[f"{part}_idx"]):
            np.savetxt(folder / f"index_{part}_{i}.txt", chosen)


@pytest.fixture
def made_up(monkeypatch, tmp_path, empty_cache):
    write_source(tmp_path / "source" / "folder" / "data", MADE_UP)
    benchmark = uci.Benchmark(4, 2, "folder", digest(MADE_UP), num_splits=2)
    monkeypatch.setitem(uci.BENCHMARKS, "made_up", benchmark)
    return (tmp_path / "source").as_uri()


def test_text_files_become_checked_arrays_once(made_up, tmp_path):
    path = uci.fetch_uci("made_up", made_up)
    with np.load(path) as stored:
        for name, array in MADE_UP.items():
            assert np.array_equal(stored[name], array)
    assert uci.fetch_uci("made_up", "file:///nowhere") == path  # from the cache
    data = uci.load_uci("made_up", split=1)
    np.testing.assert_allclose(data.test.y, [10.0])
    np.testing.assert_allclose(data.train.x, MADE_UP["X"][[1, 2, 3]], rtol=1e-6)


def test_a_changed_source_is_refused_and_leaves_nothing(made_up, tmp_path, empty_cache):
    data = tmp_path / "source" / "folder" / "data" / "data.txt"
    data.write_text(data.read_text().replace("20.0", "20.1"))
    with pytest.raises(InputError, match="The arrays of made_up must have SHA-256"):
        uci.fetch_uci("made_up", made_up)
    assert not list(empty_cache.rglob("*.npz"))


def test_no_network_says_what_to_do(made_up):
    with pytest.raises(InputError, match="must be reachable, got .* Set WEIGHTSCAPE_DATA"):
        uci.fetch_uci("made_up", "file:///nowhere")


@pytest.mark.parametrize("name", uci.BENCHMARKS)
def test_local_files_have_the_checksums(local_data, name):
    with np.load(local_data / "uci" / f"{name}.npz") as file:
        arrays = {array: file[array] for array in MADE_UP}
    assert digest(arrays) == uci.BENCHMARKS[name].sha256
    assert len(arrays["train_idx"]) == uci.BENCHMARKS[name].num_splits


def test_splits_are_bounded(local_data):
    with pytest.raises(InputError, match="`split` of protein must be below 5, got 5"):
        load("protein", split=5)
