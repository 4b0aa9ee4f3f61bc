"""Fitted networks in files of one chunk each, written whole or not at all, so that a stopped fit goes on."""

import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from experiments.implicit.settings import Pictures, Settings
from experiments.implicit.siren import Fitted, fit_images, start
from jaxtyping import Float

from weightscape.core import PRNGKey, Tree
from weightscape.core.checks import require
from weightscape.core.files import map_arrays, write_arrays, write_text
from weightscape.core.layout import Layout


class Stored(NamedTuple):
    """Networks with one leading axis, in the order of the pictures, and their errors in dB."""

    params: Tree
    psnr: Float[np.ndarray, " network"]


def fit_all(key: PRNGKey, pictures: Pictures, settings: Settings, folder: Path) -> float:
    """Fit every picture that is not fitted yet; the seconds it took."""
    began = time.perf_counter()
    require_same(folder / "fitted_with.txt", str(settings._replace(reading=None)))
    for number, first in enumerate(range(0, len(pictures.images), settings.chunk_size)):
        path = _path(folder, number)
        if path.exists():
            continue
        images = jnp.asarray(pictures.images[first : first + settings.chunk_size])
        fitted = jax.block_until_ready(fit_images(jax.random.fold_in(key, number), images, settings.fitting))
        _write(path, fitted)
        seconds = time.perf_counter() - began
        print(f"{path.name}: {len(images)} networks, {np.mean(fitted.psnr):.1f} dB, {seconds:.0f} s", flush=True)
    return time.perf_counter() - began


def read_all(settings: Settings, folder: Path) -> Stored:
    """All networks that are there, up to the first missing chunk, as float32."""
    layout = Layout.of(jax.eval_shape(lambda: start(jax.random.key(0), settings.fitting)))
    chunks, number = [], 0
    while _path(folder, number).exists():
        chunks.append(map_arrays(_path(folder, number)))
        number += 1
    joined = lambda name: np.concatenate([np.asarray(chunk[name], np.float32) for chunk in chunks])
    return Stored(jax.tree.unflatten(layout.structure, map(joined, layout.paths)), joined("psnr"))


def require_same(path: Path, made_with: str) -> None:
    """Note how a folder is filled, and refuse to fill it in another way."""
    if not path.exists():
        write_text(path, made_with)
    came = path.read_text(encoding="utf-8")
    require(came == made_with, f"The folder must hold {made_with}", came, "Choose another folder.")


def _write(path: Path, fitted: Fitted) -> None:
    layout = Layout.of(fitted.params)
    leaves = map(np.asarray, jax.tree.leaves(fitted.params))
    write_arrays(path, dict(zip(layout.paths, leaves, strict=True)) | {"psnr": np.asarray(fitted.psnr)})


def _path(folder: Path, number: int) -> Path:
    return folder / "networks" / f"chunk{number:03d}.safetensors"
