"""Draws: sets of parameters, however they were made.

Draws are all that crosses from making weights to using them: they carry their model, their scaling and one example
point, so that predictions need nothing else. Leaves have leading axes (chain, draw).
"""

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Shaped

from weightscape.core import tree
from weightscape.core.checks import require, require_count
from weightscape.core.facts import Facts
from weightscape.data import Batch, Scaling
from weightscape.draws.arviz import to_tree
from weightscape.draws.header import Header, decode_header, encode_header
from weightscape.draws.health import Health, decode_health
from weightscape.draws.sampled import Sampled, from_arrays, to_arrays
from weightscape.draws.store import Store, read_store
from weightscape.networks import Network
from weightscape.posterior import Joint, Parameters, Position

Host = np.ndarray | jax.Array
"""An array on the host (perhaps memory-mapped) or on a device."""


class Draws(eqx.Module):
    """Parameters with leading axes (chain, draw), and what is known about them.

    - `params`: `Parameters(network, likelihood, prior)`.
    - `log_density`: the target's log p(D, θ) of each draw, as a density over positions.
    - `model`, `scaling`, `example`: what predictions need.
    - `info`: what the method noted of each draw (acceptance, energy, …), and what you note (`with_info`).
    - `log_weights`: unnormalised log importance weights, where the draws are corrected.
    - `log_proposal`: the log density that the draws came from, where it is known.
    - `health`: which chains were left out and why.  `facts`: the method, its settings, its time.
    """

    params: Parameters
    log_density: Float[Host, "chain draw"]
    model: Joint
    scaling: Scaling | None
    example: Batch
    info: dict[str, Shaped[Host, "chain draw"]] = eqx.field(default_factory=dict)
    log_weights: Float[Host, "chain draw"] | None = None
    log_proposal: Float[Host, "chain draw"] | None = None
    health: Health = eqx.field(static=True, default=Health(0))
    facts: Facts = eqx.field(static=True, default_factory=Facts)

    def __check_init__(self):
        shape = np.shape(self.log_density)
        for name, leaf in tree.named_leaves(self.params).items():
            asked = f"Leaf {name} of Draws must start with (chain, draw) = {shape}"
            require(np.shape(leaf)[:2] == shape, asked, np.shape(leaf), "Give every leaf both leading axes.")

    @property
    def num_chains(self) -> int:
        """How many chains there are."""
        return self.log_density.shape[0]

    @property
    def num_draws(self) -> int:
        """How many draws each chain has."""
        return self.log_density.shape[1]

    def __len__(self) -> int:
        """All draws of all chains."""
        return self.num_chains * self.num_draws

    def __getitem__(self, where: Any) -> "Draws":
        """`draws[chains]` or `draws[chains, draws]`, with slices, indices or lists of them; both axes stay."""
        chains, kept = where if isinstance(where, tuple) else (where, slice(None))
        return self.map_leaves(lambda leaf: leaf[_axis_index(chains)][:, _axis_index(kept)])

    def thin(self, every: int) -> "Draws":
        """Every `every`-th draw of each chain."""
        require_count("`every` of thin", every)
        return self[:, ::every]

    def flat(self) -> Sampled:
        """Everything sampled with chains and draws on one leading axis, chain by chain."""
        return jax.tree.map(lambda leaf: leaf.reshape(len(self), *leaf.shape[2:]), self.sampled())

    def sampled(self) -> Sampled:
        """All arrays that have leading axes (chain, draw)."""
        return Sampled(self.params, self.log_density, self.info, self.log_weights, self.log_proposal)

    def positions(self) -> Position:
        """The unconstrained positions of all draws, with leading axes (chain, draw)."""
        return _positions(self.model, jax.tree.map(jnp.asarray, self.params))

    def batches(self, num_draws: int) -> Iterator["Draws"]:
        """Stretches of at most `num_draws` draws of every chain, for draws that do not fit in memory."""
        require_count("`num_draws` of batches", num_draws)
        for start in range(0, self.num_draws, num_draws):
            yield self[:, start : start + num_draws]

    def merge(self, others: Sequence["Draws"]) -> "Draws":
        """These draws and others of the same model and length, side by side as more chains."""
        mine = sorted(to_arrays(self.sampled()))
        for other in others:
            same = other.num_draws == self.num_draws and sorted(to_arrays(other.sampled())) == mine
            came = f"{other.num_draws} draws of {sorted(to_arrays(other.sampled()))}"
            require(same, f"Merged Draws must have {self.num_draws} draws of {mine}", came, "Thin or slice them first.")
        everyone = (self, *others)
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(draws.sampled() for draws in everyone))
        return self._with(joined, Health(sum(draws.health.num_chains for draws in everyone)))

    def with_info(self, **values: ArrayLike) -> "Draws":
        """The same draws with more in `info`: one value for all of them, or an array (chain, draw).

        Merged draws keep it: `zeros.with_info(digit=0).merge([ones.with_info(digit=1)])`.
        """
        shape = np.shape(self.log_density)
        for name, value in values.items():
            asked = f"`{name}` of with_info must be one value or have the shape (chain, draw) = {shape}"
            require(np.shape(value) in ((), shape), asked, np.shape(value), "Repeat what a run has for all its draws.")
        noted = {name: np.array(np.broadcast_to(np.asarray(value), shape)) for name, value in values.items()}
        return dataclasses.replace(self, info={**self.info, **noted})

    def map_leaves(self, function: Callable[[Any], Any]) -> "Draws":
        """The same draws with `function` applied to every array that has leading axes (chain, draw)."""
        return self._with(jax.tree.map(function, self.sampled()), self.health)

    def save(self, path: str | os.PathLike) -> None:
        """Write a directory that `Draws.load` reads; what was there is replaced in one step."""
        store = Store.create(path, encode_header(Header(self.model, self.scaling, self.example)), {})
        store.append(to_arrays(self.sampled()))
        store.finish({**self.facts, "health": self.health})

    @staticmethod
    def load(path: str | os.PathLike, network: Network | None = None) -> "Draws":
        """Read what `save` or a run wrote, memory-mapped; chains that are not healthy are left out.

        - `network`: needed only where the stored network is not one that the library knows.
        """
        stored = read_store(path)
        header = decode_header(stored.header, network)
        sampled = from_arrays(stored.arrays, header.model.parameters_like(header.standardised_example()))
        facts = {**stored.facts, "complete": stored.complete}
        health = decode_health(facts.pop("health", None), len(sampled.log_density))
        draws = Draws(
            sampled.params,
            sampled.log_density,
            *header,
            sampled.info,
            sampled.log_weights,
            sampled.log_proposal,
            health,
            Facts(**facts),
        )
        # A run stores every chain; draws that were saved later hold the healthy ones only.
        unfiltered = health.left_out and draws.num_chains == health.num_chains
        return draws[list(health.kept)] if unfiltered else draws

    def to_arviz(self, x: ArrayLike | list | None = None) -> Any:
        """An ArviZ DataTree: `posterior` with the functions at the probes `x`, `sample_stats`, `constant_data`.

        - `x`: inputs in original units; the example's where None. Weights of weighted draws are only noted.
        """
        return to_tree(self.sampled(), Header(self.model, self.scaling, self.example), x)

    def _with(self, sampled: Sampled, health: Health) -> "Draws":
        return Draws(
            sampled.params,
            sampled.log_density,
            self.model,
            self.scaling,
            self.example,
            sampled.info,
            sampled.log_weights,
            sampled.log_proposal,
            health,
            self.facts,
        )


@eqx.filter_jit
def _positions(model: Joint, params: Parameters) -> Position:
    return jax.vmap(jax.vmap(model.unplace))(params)


def _axis_index(where: Any) -> Any:
    """An index that keeps its axis: 3 becomes 3:4."""
    if isinstance(where, (int, np.integer)):
        return slice(int(where), int(where) + 1 or None)
    if isinstance(where, list) and where and where == list(range(where[0], where[-1] + 1)):
        return slice(where[0], where[-1] + 1)  # a slice of a memory map is a view, a list makes a copy
    return where
