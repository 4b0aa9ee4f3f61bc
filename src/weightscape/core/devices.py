"""Where chains run: every device takes an equal share of them.

A CPU counts as one device unless it is told otherwise before the first computation; `devices(2)` makes two
cores count as two devices, and chains that are sharded over them run side by side.
"""

import os
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from weightscape.core.checks import InputError, require, require_count

CHAIN_AXIS = "chain"
DATA_AXIS = "data"


def devices(num: int | None = None) -> list[Any]:
    """Let `num` CPU cores count as devices (default: all cores), and return the devices.

    Call it before the first computation. On an accelerator the accelerator's own devices are returned.
    """
    wanted = len(os.sched_getaffinity(0)) if num is None and hasattr(os, "sched_getaffinity") else num
    wanted = wanted or os.cpu_count() or 1
    require_count("`num` of devices", wanted)
    try:
        jax.config.update("jax_num_cpu_devices", wanted)
    except RuntimeError as error:
        have = len(jax.devices())
        if have != wanted:
            raise InputError(
                f"`devices({wanted})` must be called before the first computation, got a backend that runs "
                f"with {have}. Move the call to the top of the program."
            ) from error
    return jax.devices()


def on_host() -> AbstractContextManager[Any]:
    """A context for work of many small programs, which accelerators are slow to compile: it runs on the CPU."""
    return jax.default_device(jax.local_devices(backend="cpu")[0])


def chain_mesh(num_chains: int, num_shards: int = 1) -> Mesh:
    """A mesh of the most devices that can share `num_chains` equally, each chain's data split over `num_shards`."""
    available = jax.devices()
    remedy = f"Call `weightscape.devices({num_shards})` before the first computation, or split the data less."
    asked = f"Data split over {num_shards} devices must find as many"
    require(num_shards <= len(available), asked, len(available), remedy)
    groups = len(available) // num_shards
    count = max(n for n in range(1, min(groups, num_chains) + 1) if num_chains % n == 0)
    if num_shards == 1:
        return Mesh(np.array(available[:count]), (CHAIN_AXIS,))
    grid = np.array(available[: count * num_shards]).reshape(count, num_shards)
    return Mesh(grid, (CHAIN_AXIS, DATA_AXIS))
