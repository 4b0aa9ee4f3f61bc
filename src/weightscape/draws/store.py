"""A crash-safe store: a directory of array chunks and one manifest.

    draws.json                        what there is: format, version, header, chunks, state, whether the run is complete
    draws-0001-00000.safetensors      arrays by name, each with leading axes (chain, draw)
    state-0001-00000.safetensors      the state of all chains after the last chunk, from which a run goes on
    header-0001.safetensors           arrays that belong to the header

Every file is written atomically and the manifest last, so a process that is killed at any moment leaves a
directory that loads and can be continued, or none. The first number is a generation: a new run over an old one writes
beside it, changes the manifest in one step, and only then removes the old files.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weightscape.core.checks import InputError, require
from weightscape.core.config import Encoded
from weightscape.core.files import join_arrays, map_arrays, read_json, write_arrays, write_json

MANIFEST = "draws.json"
FORMAT = "weightscape.draws"
VERSION = 2

_FILES = ("draws-*.safetensors", "header-*.safetensors", "state-*.safetensors", ".*.safetensors.*.part")


class Stored(NamedTuple):
    """What a store holds: the header, arrays with leading axes (chain, draw), facts, and whether it was finished."""

    header: Encoded
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]
    complete: bool


class Checkpoint(NamedTuple):
    """Where a run is: `done` outputs into `phase`, after `seconds` of work; `leaves` are those of the chains' state."""

    phase: str
    done: int
    seconds: float
    leaves: Sequence[np.ndarray]


class Store:
    """Writes one generation of draws, chunk by chunk."""

    def __init__(self, folder: Path, manifest: dict[str, Any]):
        self.folder = folder
        self._manifest = manifest

    @staticmethod
    def create(path: str | os.PathLike, header: Encoded, identity: Mapping[str, Any]) -> "Store":
        """A new generation; `identity` says which run it is, for `reopen`."""
        folder = Path(path)
        require(not folder.is_file(), f"`{path}` must be a folder", "a file", "Choose another path.")
        generation = _generation(folder) + 1
        header_file = f"header-{generation:04d}.safetensors"
        write_arrays(folder / header_file, header.arrays)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "generation": generation,
            "complete": False,
            "header": header.tree,
            "header_arrays": header_file,
            "identity": dict(identity),
            "chunks": [],
            "state": None,
            "facts": {},
        }
        return Store(folder, manifest)

    @staticmethod
    def reopen(path: str | os.PathLike, identity: Mapping[str, Any]) -> "Store | None":
        """The store of a run that was begun and can be continued, or None where there is none.

        Raises where the folder holds another run.
        """
        folder = Path(path)
        if not (folder / MANIFEST).exists():
            return None
        manifest = _read_manifest(folder)
        if manifest.get("state") is None:
            return None
        for name, asked in identity.items():
            came = manifest["identity"].get(name)
            remedy = "Repeat the first command's options to continue its run, or choose another folder."
            require(came == asked, f"A run continued in `{folder}` must have the {name} {asked}", came, remedy)
        return Store(folder, manifest)

    @property
    def is_complete(self) -> bool:
        """Whether a run was finished here."""
        return self._manifest["complete"]

    @property
    def facts(self) -> dict[str, Any]:
        """What was noted when a run was finished here."""
        return self._manifest["facts"]

    def checkpoint(self) -> Checkpoint | None:
        """Where the run is, if it was begun."""
        state = self._manifest["state"]
        if state is None:
            return None
        arrays = map_arrays(_inside(self.folder, state["file"]))
        leaves = [np.array(arrays[name]) for name in sorted(arrays)]
        return Checkpoint(state["phase"], state["done"], state["seconds"], leaves)

    def append(self, arrays: Mapping[str, np.ndarray] | None, at: Checkpoint | None = None) -> None:
        """Add a chunk (if any) and where the run is; once this returns, both are safe on disk."""
        if arrays is not None:
            name = self._new_name("draws", len(self._manifest["chunks"]))
            write_arrays(self.folder / name, arrays)
            self._manifest["chunks"].append(name)
        before = self._manifest["state"]
        if at is not None:
            self._manifest["state"] = self._write_state(at)
        self._manifest["complete"] = False
        write_json(self.folder / MANIFEST, self._manifest)
        if at is not None and before is not None:
            (self.folder / before["file"]).unlink(missing_ok=True)

    def finish(self, facts: Mapping[str, Any], *, complete: bool = True) -> None:
        """Note the run's facts and whether it is complete, join its chunks, and remove what is not needed any more."""
        self._manifest |= {"complete": complete, "facts": dict(facts)}
        write_json(self.folder / MANIFEST, self._manifest)
        if complete and len(self._manifest["chunks"]) > 1:
            self._join()
        self._remove_others()

    def _join(self) -> None:
        """One file in place of many chunks, without holding them in memory; where it does not fit, they stay."""
        chunks = self._manifest["chunks"]
        name = self._new_name("draws", len(chunks))
        try:
            join_arrays(self.folder / name, [self.folder / chunk for chunk in chunks])
        except OSError:
            return
        self._manifest["chunks"] = [name]
        write_json(self.folder / MANIFEST, self._manifest)

    def _new_name(self, kind: str, at_least: int) -> str:
        """A name that is not in use: joined files keep their number, so counting alone would repeat one."""
        generation, number = self._manifest["generation"], at_least
        while (self.folder / f"{kind}-{generation:04d}-{number:05d}.safetensors").exists():
            number += 1
        return f"{kind}-{generation:04d}-{number:05d}.safetensors"

    def _write_state(self, at: Checkpoint) -> dict[str, Any]:
        name = self._new_name("state", len(self._manifest["chunks"]))
        write_arrays(self.folder / name, {f"{i:06d}": np.asarray(leaf) for i, leaf in enumerate(at.leaves)})
        return {"phase": at.phase, "done": at.done, "seconds": at.seconds, "file": name}

    def _remove_others(self) -> None:
        state = self._manifest["state"]
        current = {self._manifest["header_arrays"], *self._manifest["chunks"], *([state["file"]] if state else [])}
        for pattern in _FILES:
            for file in self.folder.glob(pattern):
                if file.name not in current:
                    file.unlink()


def read_store(path: str | os.PathLike) -> Stored:
    """Everything in a store; the arrays of a single chunk are memory-mapped, several chunks are joined."""
    folder = Path(path)
    manifest = _read_manifest(folder)
    joined = _joined(_map_chunks(folder, manifest["chunks"]))
    header_arrays = map_arrays(_inside(folder, manifest["header_arrays"]))
    return Stored(Encoded(manifest["header"], header_arrays), joined, manifest["facts"], manifest["complete"])


def read_notes(path: str | os.PathLike) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The log density and the notes of every stored draw, without the parameters."""
    folder = Path(path)
    chunks = _map_chunks(folder, _read_manifest(folder)["chunks"])
    notes = [{name: array for name, array in chunk.items() if not name.startswith("params/")} for chunk in chunks]
    joined = _joined(notes)
    info = {name.removeprefix("info/"): array for name, array in joined.items() if name.startswith("info/")}
    return joined["log_density"], info


def _map_chunks(folder: Path, names: list[str]) -> list[dict[str, np.ndarray]]:
    chunks = [map_arrays(_inside(folder, name)) for name in names]
    require(bool(chunks), f"`{folder}` must hold draws", "none", "The run stopped before its first chunk; run again.")
    for chunk, name in zip(chunks, names, strict=True):
        asked = f"Chunks of `{folder}` must hold the same arrays"
        remedy = "The folder is damaged; restore it or run again."
        require(sorted(chunk) == sorted(chunks[0]), asked, f"others in {name}", remedy)
    return chunks


def _joined(chunks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    if len(chunks) == 1:
        return chunks[0]
    return {name: np.concatenate([chunk[name] for chunk in chunks], axis=1) for name in chunks[0]}


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
    manifest = {"identity": {}, "state": None, **manifest}  # version 1 had neither
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
