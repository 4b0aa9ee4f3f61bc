"""What a method notes of each draw, and how it is named on disk."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.posterior import Parameters


class Sampled(NamedTuple):
    """One draw, or many on leading axes: parameters, log p(D, θ), notes, and densities where they are known."""

    params: Parameters
    log_density: Any
    info: dict[str, Any]
    log_weights: Any = None
    log_proposal: Any = None


def to_arrays(sampled: Sampled) -> dict[str, np.ndarray]:
    """All arrays by name, such as `params/network/layer0/weight`."""
    return {name: np.asarray(leaf) for name, leaf in tree.named_leaves(sampled._asdict()).items()}


def from_arrays(arrays: Mapping[str, np.ndarray], params_like: Parameters) -> Sampled:
    """The inverse of `to_arrays`; the parameters' structure comes from the model."""
    names = list(tree.named_leaves({"params": params_like}))
    stored = [name for name in arrays if name.startswith("params/")]
    remedy = "The draws belong to another network; pass the right one to `load(path, network=...)`."
    require(sorted(names) == sorted(stored), f"Stored parameters must be {sorted(names)}", sorted(stored), remedy)
    for name, like in tree.named_leaves({"params": params_like}).items():
        asked = f"Stored parameter {name} must end with shape {like.shape}"
        require(arrays[name].shape[2:] == like.shape, asked, arrays[name].shape[2:], remedy)
    require("log_density" in arrays, "Stored draws must hold `log_density`", sorted(arrays), "The folder is damaged.")
    params = jax.tree.unflatten(jax.tree.structure(params_like), [arrays[name] for name in names])
    info = {name.removeprefix("info/"): array for name, array in arrays.items() if name.startswith("info/")}
    return Sampled(params, arrays["log_density"], info, arrays.get("log_weights"), arrays.get("log_proposal"))
