"""Files that are either whole or absent.

A file is written beside its final name, flushed to the disk and renamed, which is atomic on one file
system. Arrays are stored as safetensors: a length, a JSON header and raw bytes, so reading one can run
no code, and an array can be memory-mapped straight from the file.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
    except (OSError, SafetensorError) as error:  # the library's own type where the disk is full
        raise OSError(
            f"`{path}` could not be written: {getattr(error, 'strerror', None) or error}. Free space or choose "
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


def join_arrays(path: Path, parts: Sequence[Path]) -> None:
    """Write the arrays of several files, joined along their second axis, to one file, a slice at a time."""
    entries = [_read_entries(part) for part in parts]
    write_atomically(path, lambda part: _write_joined(part, parts, entries))


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """Named arrays of a safetensors file, memory-mapped and read-only."""
    return {name: _map_one(path, entry) for name, entry in _read_entries(path).items()}


class _Entry(NamedTuple):
    """Where an array lies in a file: bytes `start` to `end`."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def _read_entries(path: Path) -> dict[str, _Entry]:
    """What a safetensors file holds; the safetensors library checks the header and that the data are all there."""
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
        data_start = 8 + (header_size := int.from_bytes(stream.read(8), "little"))
        header = json.loads(stream.read(header_size))
    return {name: _entry(header[name], data_start) for name in names}


def _entry(described: Mapping[str, Any], data_start: int) -> _Entry:
    start, end = described["data_offsets"]
    return _Entry(described["dtype"], tuple(described["shape"]), data_start + start, data_start + end)


def _write_joined(path: Path, parts: Sequence[Path], entries: Sequence[Mapping[str, _Entry]]) -> None:
    """A safetensors file: the header's length, the JSON header, then each array row by row of its first axis."""
    first = entries[0]
    names = sorted(first, key=lambda name: (-np.dtype(_DTYPES[first[name].dtype]).itemsize, name))  # keeps alignment
    header, offset = {}, 0
    for name in names:
        rows, _, *rest = first[name].shape
        size = sum(part[name].end - part[name].start for part in entries)
        shape = [rows, sum(part[name].shape[1] for part in entries), *rest]
        header[name] = {"dtype": first[name].dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(path.open("wb"))
        sources = [stack.enter_context(part.open("rb")) for part in parts]
        out.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            for row in range(first[name].shape[0]):
                for source, part in zip(sources, entries, strict=True):
                    length = (part[name].end - part[name].start) // part[name].shape[0]
                    source.seek(part[name].start + row * length)
                    out.write(source.read(length))


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


def _map_one(path: Path, entry: _Entry) -> np.ndarray:
    asked = f"Arrays of `{path}` must be one of {', '.join(_DTYPES)}"
    require(entry.dtype in _DTYPES, asked, entry.dtype, "Store the array in another type.")
    if entry.start == entry.end:  # an empty array cannot be mapped
        return np.zeros(entry.shape, _DTYPES[entry.dtype])
    return np.memmap(path, _DTYPES[entry.dtype], "r", entry.start, entry.shape)


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
