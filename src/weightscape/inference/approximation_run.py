"""Runs that end in an approximation: resumed while they go on, loaded once they are over.

A run keeps its state in its store through a `Recorder`, as one that ends in draws does. At its end the approximation
takes the state's place, together with what says which run made it:

    finished = finished_approximation(key, method, posterior, around)      what this very run left earlier, if resumed
    keep_approximation(key, method, approximation, around)                 the last thing that a run does
"""

import json
import os
from pathlib import Path
from typing import Any

from weightscape.core import PRNGKey
from weightscape.core.checks import InputError
from weightscape.draws import Header, encode_header
from weightscape.draws.store import MANIFEST as STATE_MANIFEST
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_files import (
    MANIFEST,
    load_approximation,
    read_manifest,
    write_approximation,
)
from weightscape.inference.method import Circumstances, Method, run_identity
from weightscape.posterior import Posterior

STAGES = "stages"
"""The folder, within that of a run, for runs that it makes on its way."""

_STATE_FILES = (STATE_MANIFEST, "draws-*.safetensors", "header-*.safetensors", "state-*.safetensors")


def finished_approximation(key: PRNGKey, method: Method, posterior: Posterior, around: Circumstances) -> Any | None:
    """What this run has left in its store, where it is resumed and was complete; None where there is work to do.

    Raises where the folder holds another run's approximation and nothing of this run.
    """
    if around.store is None or not around.resume or not (Path(around.store) / MANIFEST).exists():
        return None
    folder = Path(around.store)
    manifest = read_manifest(folder)
    asked = _run_identity(key, method, posterior)
    if manifest["identity"] == asked:
        complete = manifest["facts"].get("complete", True)
        return load_approximation(folder, posterior) if complete else None
    if (folder / STATE_MANIFEST).exists():
        return None  # a later run was begun over that one; its recorder knows whether it is ours
    other = next(name for name in asked if manifest["identity"].get(name) != asked[name])
    raise InputError(
        f"A run continued in `{folder}` must have the {other} {asked[other]}, got {manifest['identity'].get(other)}. "
        "Repeat the first command's options to load its result, or choose another folder."
    )


def stage(store: str | os.PathLike | None, name: str) -> Path | None:
    """Where a run keeps another that it makes on its way, such as its search for a mode."""
    return None if store is None else Path(store) / STAGES / name


def keep_approximation(
    key: PRNGKey,
    method: Method,
    approximation: Approximation,
    around: Circumstances,
    asked: Posterior | None = None,
) -> None:
    """Write the run's approximation to its store, where it has one.

    - `asked`: the posterior that the run was given, where the approximation is of another (with tuned scales).

    A run whose facts say `complete=False`, cut short by a deadline, keeps its state beside it and can go on.
    """
    if around.store is None:
        return
    posterior, folder = asked or approximation.posterior, Path(around.store)
    assert posterior is not None
    write_approximation(folder, approximation, _run_identity(key, method, posterior))
    if not approximation.facts.get("complete", True):
        return
    for pattern in _STATE_FILES:
        for file in folder.glob(pattern):
            file.unlink()


def _run_identity(key: PRNGKey, method: Method, posterior: Posterior) -> dict[str, Any]:
    """Which run this is, as it reads once it was stored."""
    header = Header.of(posterior)
    return json.loads(json.dumps({**run_identity(key, method, posterior), "model": encode_header(header).tree}))
