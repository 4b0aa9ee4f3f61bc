"""Formats of image files: IDX, the CIFAR-10 binary records, and our own npz.

IDX is two zero bytes, a type byte (8 for unsigned bytes), the number of axes, each size as a big-endian
32-bit number, then the values. A CIFAR-10 record is a label byte and three planes of 32 × 32 bytes: red,
green, blue. Reading any of them runs no code.
"""

import gzip
import math
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from weightscape.core.checks import InputError, require

_CIFAR_RECORD = 1 + 3 * 32 * 32


class Images(NamedTuple):
    """Images as bytes, (image, height, width, channel), and the number of the class of each."""

    x: UInt8[np.ndarray, "image height width channel"]
    y: UInt8[np.ndarray, " image"]


def read_idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """The array in a gzipped IDX file of unsigned bytes."""
    with gzip.open(path, "rb") as stream:
        content = stream.read()
    starts_well = content[:3] == b"\0\0\x08" and len(content) > 3
    require(starts_well, f"`{path}` must be an IDX file of bytes", content[:4].hex(), "Fetch it again.")
    start = 4 + 4 * content[3]
    header = content[4:start].ljust(start - 4, b"\0")
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4"))
    came = len(content) - start
    require(came == math.prod(shape), f"`{path}` must hold {shape} values", came, "Fetch it again.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_cifar(path: Path, members: tuple[str, ...]) -> Images:
    """The images of these members of the CIFAR-10 binary archive, one after the other."""
    with tarfile.open(path, "r:gz") as archive:
        content = b"".join(_member(archive, path, name) for name in members)
    came = f"{len(content)} bytes"
    whole = len(content) % _CIFAR_RECORD == 0
    require(whole, f"`{path}` must hold records of {_CIFAR_RECORD} bytes", came, "Fetch it again.")
    records = np.frombuffer(content, np.uint8).reshape(-1, _CIFAR_RECORD)
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].copy())


def read_npz(path: Path, names: tuple[str, ...]) -> list[np.ndarray]:
    """The named arrays of an npz file, without pickles."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in names if name in arrays.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise InputError(f"`{path}` must be a whole npz file, got {error}. Restore the file.") from error
    missing = [name for name in names if name not in found]
    require(not missing, f"`{path}` must hold {', '.join(names)}", f"no {missing[:1]}", "Check the file.")
    return [found[name] for name in names]


def _member(archive: tarfile.TarFile, path: Path, name: str) -> bytes:
    found = [member for member in archive.getmembers() if member.isfile() and Path(member.name).name == name]
    require(len(found) == 1, f"`{path}` must hold one `{name}`", len(found), "Fetch it again.")
    stream = archive.extractfile(found[0])
    assert stream is not None
    return stream.read()
