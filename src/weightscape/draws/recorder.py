"""The recorder: where a run puts its draws as it makes them, in memory or on disk."""

import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from weightscape.core.facts import Facts
from weightscape.draws.draws import Draws
from weightscape.draws.header import Header, encode_header
from weightscape.draws.health import Health, examine_chains
from weightscape.draws.sampled import Sampled, to_arrays
from weightscape.draws.store import Store
from weightscape.posterior import Posterior


class Recorder:
    """Collects chunks of draws, and turns them into `Draws` at the end.

    - `store`: a folder; each chunk is on disk when `add` returns. None keeps everything in memory.
    """

    def __init__(self, posterior: Posterior, store: str | os.PathLike | None):
        self._header = Header(posterior.model, posterior.scaling, posterior.example)
        self._store = None if store is None else Store(store, encode_header(self._header))
        self._chunks: list[Sampled] = []

    def add(self, chunk: Sampled) -> None:
        """Keep a chunk with leading axes (chain, draw)."""
        if self._store is not None:
            self._store.append(to_arrays(chunk))
        self._chunks.append(chunk if self._store is None else chunk._replace(params=None))

    def finish(self, facts: Mapping[str, Any], *, examine: bool) -> Draws:
        """All draws of the run; with `examine`, without the chains that did not move or are not finite."""
        notes = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *self._chunks)
        health = Health(len(notes.log_density))
        if examine:
            health = examine_chains(notes.log_density, notes.info["is_accepted"])
        if self._store is not None:
            self._store.finish({**facts, "health": health})
            return Draws.load(self._store.folder, self._header.model.network)
        draws = Draws(
            notes.params,
            notes.log_density,
            *self._header,
            notes.info,
            health=health,
            facts=Facts(**facts, complete=True),
        )
        return draws[list(health.kept)] if health.left_out else draws
