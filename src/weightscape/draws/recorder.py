"""The recorder: where a run puts its draws as it makes them, in memory or on disk.

On disk a chunk is written when a twentieth of the run's time has passed since the last one, or when it has grown
large: a kill costs at most a twentieth of the work, memory stays bounded, and a long run makes few files. Where a state
is so large that writing it takes long, it is written less often, so that at most a tenth of the time goes into it.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import Tree
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.draws.draws import Draws
from weightscape.draws.header import Header, encode_header
from weightscape.draws.health import Health, examine_chains
from weightscape.draws.sampled import Sampled, to_arrays
from weightscape.draws.store import Checkpoint, Store, read_notes
from weightscape.posterior import Position, Posterior

_WRITE_SHARE = 0.05
_WORK_PER_WRITE = 9.0
_MOST_BYTES = 64 * 2**20


class Place(NamedTuple):
    """Where a run is: `done` outputs into `phase`, and the state of all chains."""

    phase: str
    done: int
    state: Tree


class Examination(NamedTuple):
    """What to do about chains that cannot be used: leave them out, raise (`strict`), or keep them (`keep_all`)."""

    strict: bool = False
    keep_all: bool = False


class Recorder:
    """Collects chunks of draws, and turns them into `Draws` at the end.

    - `store`: a folder that takes the draws and the state of the chains; None keeps draws in memory.
    - `identity`: which run this is, so that it can be continued.  `resume`: whether to continue one.

    Used as a context, it writes what it holds when the run is interrupted.
    """

    def __init__(
        self,
        posterior: Posterior,
        store: str | os.PathLike | None = None,
        identity: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
    ):
        remedy = "Pass `store=folder`, the one that the run was begun with."
        require(store is not None or not resume, "A run to resume must have a store", "none", remedy)
        self._posterior = posterior
        self._header = Header.of(posterior)
        self._store = _open(store, self._header, identity or {}, resume=resume)
        self._began = time.monotonic()
        self._written = self._began
        self._write_seconds = 0.0
        self._pending: list[Sampled] = []
        self._place: Place | None = None
        self.checkpoint: Checkpoint | None = None if self._store is None else self._store.checkpoint()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            self._write()

    @property
    def seconds(self) -> float:
        """The time that the run has taken, earlier parts included."""
        return time.monotonic() - self._began + (self.checkpoint.seconds if self.checkpoint else 0.0)

    def resumed(self, init: Callable[[Position], Any], num_chains: int) -> Place | None:
        """Where a stored run goes on, with the state that `init` makes at a position for each chain; None at first."""
        if self.checkpoint is None:
            return None
        phase, done, _, leaves = self.checkpoint
        like = jax.eval_shape(lambda key: init(self._posterior.start_position(key)), jax.random.key(0))
        wanted = [((num_chains, *leaf.shape), leaf.dtype) for leaf in jax.tree.leaves(like)]
        found = [(leaf.shape, leaf.dtype) for leaf in leaves]
        remedy = "The folder is damaged or was written by another version; run again."
        require(found == wanted, f"The stored state must hold {wanted}", found, remedy)
        return Place(phase, done, jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(leaf) for leaf in leaves]))

    def has(self, num_draws: int) -> bool:
        """Whether a complete run of at least so many draws is there already."""
        if self._store is None or self.checkpoint is None:
            return False
        return self._store.is_complete and self.checkpoint.done >= num_draws

    def add(self, chunk: Sampled | None, place: Place | None = None) -> None:
        """Keep a chunk with leading axes (chain, draw), if there is one, and where the run is after it."""
        if chunk is not None:
            self._pending.append(chunk)
        self._place = place
        if self._store is not None and self._is_due():
            self._write()

    def finish(self, facts: Mapping[str, Any], examination: Examination | None, *, complete: bool = True) -> Draws:
        """All draws of the run; where chains are examined, without those that cannot be used."""
        if self._store is None:
            joined = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *self._pending)
            health = _examine(joined.log_density, joined.info, examination)
            known = Facts(**facts, complete=complete)
            draws = Draws(joined.params, joined.log_density, *self._header, joined.info, health=health, facts=known)
            return draws[list(health.kept)] if health.left_out else draws
        self._write()
        return self._finish_stored(self._store, facts, examination, complete=complete)

    def reload(self, examination: Examination | None) -> Draws:
        """The draws of the complete run that is there, examined as asked for now."""
        assert self._store is not None
        return self._finish_stored(self._store, self._store.facts, examination, complete=True)

    def _finish_stored(
        self, store: Store, facts: Mapping[str, Any], examination: Examination | None, *, complete: bool
    ) -> Draws:
        health = _examine(*read_notes(store.folder), examination)
        store.finish({**facts, "health": health}, complete=complete)
        return Draws.load(store.folder, self._header.model.network)

    def _is_due(self) -> bool:
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(self._pending))
        # Of this session's time: a run that is killed soon after each start still goes on.
        now = time.monotonic()
        wait = max(_WRITE_SHARE * (now - self._began), _WORK_PER_WRITE * self._write_seconds)
        return size > _MOST_BYTES or now - self._written > wait

    def _write(self) -> None:
        if self._store is None or (not self._pending and self._place is None):
            return
        began, arrays = time.monotonic(), None
        if self._pending:
            arrays = to_arrays(jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *self._pending))
        self._store.append(arrays, self._place and self._checkpoint(self._place))
        self._pending, self._place, self._written = [], None, time.monotonic()
        self._write_seconds = self._written - began

    def _checkpoint(self, place: Place) -> Checkpoint:
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(place.state)]
        return Checkpoint(place.phase, place.done, self.seconds, leaves)


def _open(path: str | os.PathLike | None, header: Header, identity: Mapping[str, Any], *, resume: bool) -> Store | None:
    if path is None:
        return None
    encoded = encode_header(header)
    known = json.loads(json.dumps({**identity, "model": encoded.tree}))  # as it reads once it was stored
    found = Store.reopen(path, known) if resume else None
    return found or Store.create(path, encoded, known)


def _examine(log_density: np.ndarray, info: Mapping[str, np.ndarray], examination: Examination | None) -> Health:
    if examination is None:
        return Health(len(log_density))
    return examine_chains(log_density, info, **examination._asdict())
