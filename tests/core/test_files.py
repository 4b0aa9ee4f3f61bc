"""Files are whole or absent."""

import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.core.files import map_arrays, read_json, write_arrays, write_atomically, write_json


def test_arrays_survive_to_the_bit_and_are_mapped(tmp_path):
    arrays = {
        "matrix": np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32),
        "scalar": np.array(1.5),
        "empty": np.zeros((0, 3)),
        "flags": np.array([True, False]),
        "counts": np.arange(3, dtype=np.int32),
        "transposed": np.arange(6.0).reshape(2, 3).T,
    }
    write_arrays(tmp_path / "a.safetensors", arrays)
    mapped = map_arrays(tmp_path / "a.safetensors")
    assert sorted(mapped) == sorted(arrays)
    for name, array in arrays.items():
        assert mapped[name].dtype == array.dtype and mapped[name].shape == array.shape
        assert np.array_equal(mapped[name], array)
    assert isinstance(mapped["matrix"], np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        mapped["matrix"][0] = 0


@pytest.mark.parametrize("cut", [0, 4, 20, -1])
def test_truncated_arrays_are_named(tmp_path, cut):
    path = tmp_path / "a.safetensors"
    write_arrays(path, {"x": np.arange(100.0)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match="must be a whole safetensors file"):
        map_arrays(path)


def test_a_writer_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "folder" / "a.json"
    write_json(path, {"old": 1})

    def fails(part):
        part.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"a.json` could not be written: No space left on device. Free space"):
        write_atomically(path, fails)
    assert read_json(path) == {"old": 1}
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_new_files_have_ordinary_permissions(tmp_path):
    write_json(tmp_path / "a.json", 1)
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
