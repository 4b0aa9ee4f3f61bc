"""A crash-safe store: a directory of array chunks and one manifest.

    draws.json                        what there is: format, version, header, chunks, whether the run is complete
    draws-0001-00000.safetensors      arrays by name, each with leading axes (chain, draw)
    header-0001.safetensors           arrays that belong to the header

Every file is written atomically and the manifest last, so a process that is killed at any moment leaves a
directory that loads, or none. The first number is a generation: a new run over an old one writes beside it,
changes the manifest in one step, and only then removes the old files.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weightscape.core.checks import InputError, require
from weightscape.core.config import Encoded
from weightscape.core.files import map_arrays, read_json, write_arrays, write_json

MANIFEST = "draws.json"
FORMAT = "weightscape.draws"
VERSION = 1


class Stored(NamedTuple):
    """What a store holds: the header, arrays with leading axes (chain, draw), facts, and whether it was finished."""

    header: Encoded
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]
    complete: bool


class Store:
    """Writes one generation of draws, chunk by chunk."""

    def __init__(self, path: str | os.PathLike, header: Encoded):
        self._folder = Path(path)
        require(not self._folder.is_file(), f"`{path}` must be a folder", "a file", "Choose another path.")
        generation = _generation(self._folder) + 1
        self._prefix = f"draws-{generation:04d}-"
        self._header_file = f"header-{generation:04d}.safetensors"
        self._manifest = {
            "format": FORMAT,
            "version": VERSION,
            "generation": generation,
            "complete": False,
            "header": header.tree,
            "header_arrays": self._header_file,
            "chunks": [],
            "facts": {},
        }
        write_arrays(self._folder / self._header_file, header.arrays)

    @property
    def folder(self) -> Path:
        """Where the draws are written."""
        return self._folder

    def append(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Add a chunk; once this returns, the chunk is safe on disk and the store loads."""
        name = f"{self._prefix}{len(self._manifest['chunks']):05d}.safetensors"
        write_arrays(self._folder / name, arrays)
        self._manifest["chunks"].append(name)
        write_json(self._folder / MANIFEST, self._manifest)

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Mark the run complete, note its facts, and remove files of earlier generations."""
        self._manifest |= {"complete": True, "facts": dict(facts)}
        write_json(self._folder / MANIFEST, self._manifest)
        current = {self._header_file, *self._manifest["chunks"]}
        for pattern in ("draws-*.safetensors", "header-*.safetensors"):
            for file in self._folder.glob(pattern):
                if file.name not in current:
                    file.unlink()


def read_store(path: str | os.PathLike) -> Stored:
    """Everything in a store; the arrays of a single chunk are memory-mapped, several chunks are joined."""
    folder = Path(path)
    manifest = _read_manifest(folder)
    chunks = [map_arrays(_inside(folder, name)) for name in manifest["chunks"]]
    require(bool(chunks), f"`{folder}` must hold draws", "none", "The run stopped before its first chunk; run again.")
    for chunk, name in zip(chunks, manifest["chunks"], strict=True):
        require(
            sorted(chunk) == sorted(chunks[0]),
            f"Chunks of `{folder}` must hold the same arrays",
            f"others in {name}",
            "The folder is damaged; restore it or run again.",
        )
    joined = (
        chunks[0]
        if len(chunks) == 1
        else {name: np.concatenate([chunk[name] for chunk in chunks], axis=1) for name in chunks[0]}
    )
    header_arrays = map_arrays(_inside(folder, manifest["header_arrays"]))
    return Stored(Encoded(manifest["header"], header_arrays), joined, manifest["facts"], manifest["complete"])


def _generation(folder: Path) -> int:
    """The generation of the draws that are there; a folder with a foreign manifest is not written into."""
    return _read_manifest(folder)["generation"] if (folder / MANIFEST).exists() else 0


def _read_manifest(folder: Path) -> dict[str, Any]:
    remedy = "Pass a folder that `Draws.save` or `weightscape fit` wrote."
    require(folder.is_dir(), f"`{folder}` must be a folder of draws", "nothing there", remedy)
    require((folder / MANIFEST).is_file(), f"`{folder}` must hold {MANIFEST}", "no such file", remedy)
    manifest = read_json(folder / MANIFEST)
    ours = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    require(ours, f"`{folder / MANIFEST}` must describe draws of weightscape", "another format", remedy)
    version = manifest.get("version")
    require(
        isinstance(version, int) and version <= VERSION,
        f"`{folder}` must be of version {VERSION} or older",
        f"version {version}",
        "Upgrade weightscape to read it.",
    )
    missing = {"generation", "complete", "header", "header_arrays", "chunks", "facts"} - set(manifest)
    require(not missing, f"`{folder / MANIFEST}` must be whole", f"no {', '.join(sorted(missing))}", remedy)
    return manifest


def _inside(folder: Path, name: Any) -> Path:
    if not isinstance(name, str) or Path(name).name != name:
        raise InputError(
            f"Files named in `{folder / MANIFEST}` must lie in that folder, got {name!r}. "
            "The manifest is damaged or foreign."
        )
    return folder / name
