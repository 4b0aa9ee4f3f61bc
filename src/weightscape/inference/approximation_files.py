"""Approximations on disk: one folder, written atomically, with no code in it.

    approximation.json                    format, version, header, the approximation as data, which run made it
    approximation-0001.safetensors        all arrays

As with draws the data are not stored: pass the posterior when loading, and draws know their log p(D, θ) again.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weightscape.core.checks import InputError, require
from weightscape.core.config import Encoded, decode, encode
from weightscape.core.facts import Facts
from weightscape.core.files import map_arrays, read_json, write_arrays, write_json
from weightscape.draws import Header, decode_header, encode_header
from weightscape.networks import Network
from weightscape.posterior import Posterior

MANIFEST = "approximation.json"
FORMAT = "weightscape.approximation"
VERSION = 1

Rebuild = Callable[[dict[str, Any], Header, Posterior | None], Any]
KINDS: dict[str, tuple[type, Callable[[Any], dict[str, Any]], Rebuild]] = {}
"""By name: the class, what of it is stored, and how it is made again."""


def storable(name: str, kind: type, stored: Callable[[Any], dict[str, Any]], rebuild: Rebuild) -> None:
    """Make a class of approximations storable under `name`.

    - `stored`: its own parts as a dict that `core.config.encode` can write.
    - `rebuild(parts, header, posterior)`: the approximation from those parts.
    """
    KINDS[name] = (kind, stored, rebuild)


def write_approximation(path: str | os.PathLike, approximation: Any, identity: Mapping[str, Any] | None = None) -> None:
    """Write an approximation; `identity` says which run made it."""
    folder = Path(path)
    require(not folder.is_file(), f"`{path}` must be a folder", "a file", "Choose another path.")
    name = next((name for name, (kind, _, _) in KINDS.items() if type(approximation) is kind), None)
    if name is None:
        raise InputError(
            f"Stored approximations must be one of {', '.join(KINDS)}, got {type(approximation).__name__}."
        )
    parts = encode({**KINDS[name][1](approximation), "estimate": approximation.estimate})
    header = encode_header(approximation.header)
    file = f"approximation-{_generation(folder) + 1:04d}.safetensors"
    arrays = {
        f"{where}/{key}": array
        for where, part in (("parts", parts), ("header", header))
        for key, array in part.arrays.items()
    }
    write_arrays(folder / file, arrays)
    manifest = {"format": FORMAT, "version": VERSION, "kind": name, "arrays": file, "identity": dict(identity or {})}
    write_json(
        folder / MANIFEST, {**manifest, "header": header.tree, "parts": parts.tree, "facts": dict(approximation.facts)}
    )
    for old in folder.glob("approximation-*.safetensors"):
        if old.name != file:
            old.unlink()


def load_approximation(
    path: str | os.PathLike, posterior: Posterior | None = None, *, network: Network | None = None
) -> Any:
    """Read what `save` wrote.

    - `posterior`: the target; without it draws do not know their log p(D, θ).
    - `network`: needed only where the stored network is not one that the library knows.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    arrays = map_arrays(folder / manifest["arrays"])
    within = lambda where: {
        key.removeprefix(f"{where}/"): a for key, a in arrays.items() if key.startswith(f"{where}/")
    }
    try:
        if posterior is not None and network is None:
            network = posterior.model.network
        header = decode_header(Encoded(manifest["header"], within("header")), network)
        parts = decode(manifest["parts"], within("parts"))
        if posterior is not None:  # the stored scales, which may have been tuned
            posterior = dataclasses.replace(posterior, model=header.model)
        made = KINDS[manifest["kind"]][2]({**parts, "facts": Facts(**manifest["facts"])}, header, posterior)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"`{folder / MANIFEST}` must be whole, got {error}. Restore the folder or run again."
        ) from error
    return made


def read_manifest(folder: Path) -> dict[str, Any]:
    """The JSON of a stored approximation, checked."""
    require((folder / MANIFEST).is_file(), f"`{folder}` must hold {MANIFEST}", "no such file", "Pass a saved folder.")
    manifest = read_json(folder / MANIFEST)
    ours = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    require(ours, f"`{folder / MANIFEST}` must be an approximation of weightscape", "another format", "Check the path.")
    version = manifest.get("version")
    known = isinstance(version, int) and version <= VERSION
    require(known, f"`{folder}` must be of version {VERSION} or older", version, "Upgrade weightscape to read it.")
    require(manifest["kind"] in KINDS, "A stored approximation must be of a known kind", manifest["kind"], "Upgrade.")
    return manifest


def _generation(folder: Path) -> int:
    numbers = [int(file.stem.rpartition("-")[2]) for file in folder.glob("approximation-*.safetensors")]
    return max(numbers, default=0)
