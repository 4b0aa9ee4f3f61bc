"""Files that are either whole or absent.

A file is written beside its final name, flushed to the disk and renamed, which is atomic on one file
system. Arrays are stored as safetensors: a length, a JSON header and raw bytes, so reading one can run
no code, and an array can be memory-mapped straight from the file.
"""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from weightscape.core.checks import InputError, require


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, then put it in place of `path` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        _flush(part)
        part.chmod(0o666 & ~_umask())
        os.replace(part, path)
    except OSError as error:
        raise OSError(
            f"`{path}` could not be written: {error.strerror or error}. Free space or choose "
            "another folder; what was there before is untouched."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    _flush(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write JSON atomically, readable by people."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON, or say in one line that the file is damaged."""
    require(path.is_file(), f"`{path}` must be a file", "nothing there", "Check the path.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(
            f"`{path}` must hold JSON, got {error}. The file is damaged or foreign; restore it or run again."
        ) from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to one safetensors file, atomically."""
    solid = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
    write_atomically(path, lambda part: save_file(solid, part))


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """Named arrays of a safetensors file, memory-mapped and read-only.

    The safetensors library checks the header and that the data are all there; the arrays are then
    mapped without a copy.
    """
    require(path.is_file(), f"`{path}` must be a file", "nothing there", "Restore it or run again.")
    try:
        with safe_open(path, framework="numpy") as opened:
            names = list(opened.keys())
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"`{path}` must be a whole safetensors file, got {error}. It is truncated or "
            "damaged; restore it or run again."
        ) from error
    with path.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(header_size))
    return {name: _map_one(path, header[name], 8 + header_size) for name in names}


_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
}


def _map_one(path: Path, entry: Mapping[str, Any], data_start: int) -> np.ndarray:
    known = ", ".join(_DTYPES)
    require(
        entry["dtype"] in _DTYPES,
        f"Arrays of `{path}` must be one of {known}",
        entry["dtype"],
        "Store the array in another type.",
    )
    start, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if start == end:  # an empty array cannot be mapped
        return np.zeros(shape, _DTYPES[entry["dtype"]])
    return np.memmap(path, _DTYPES[entry["dtype"]], "r", data_start + start, shape)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
