"""Giving lost chains a new start between warm-up and sampling.

All chains run for a trial with fixed tuning; those that look lost are placed anew with a healthy chain's tuning, and
all run on for the length of a warm-up before the next trial, so that a new start is forgotten before the first draw.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from weightscape.core import Plan, PRNGKey, Progress, Tree, Walk, drive, map_chains
from weightscape.core.keys import chain_keys
from weightscape.draws import Health, examine_chains
from weightscape.inference.restarts import Restart
from weightscape.inference.sampler import Notes, Sampler

_MOST_ROUNDS = 3
_TRIAL_SHARE = 0.25
_SHORTEST_TRIAL = 20


def restart_chains(
    key: PRNGKey, sampler: Sampler, state: Tree, num_warmup: int, restart: Restart, progress: Progress
) -> Tree:
    """States in which lost chains have a new start; what still looks lost after three rounds is left as it is."""
    num_chains = len(jax.tree.leaves(state)[0])
    for i in range(_MOST_ROUNDS):
        key_trial, key_choice, key_places, key_settling = jax.random.split(jax.random.fold_in(key, i), 4)
        length = max(_SHORTEST_TRIAL, round(_TRIAL_SHARE * num_warmup))
        state, health = _try_out(chain_keys(key_trial, num_chains), sampler, state, length, progress)
        lost = [chain for chain, _ in health.flagged]
        if not lost or len(lost) == num_chains:
            break
        donors = _choose_donors(key_choice, num_chains, lost)
        moved = map_chains(_Placed(sampler, restart), chain_keys(key_places, num_chains), _take(state, donors))
        state = _replace(state, moved, jnp.isin(jnp.arange(num_chains), jnp.asarray(lost)))
        state, _ = _try_out(chain_keys(key_settling, num_chains), sampler, state, max(length, num_warmup), progress)
    return state


class _Trial(Walk):
    """Transitions of which only the log density and the notes are kept."""

    sampler: Sampler

    def step(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        return self.sampler.move(key, state, index)

    def observe(self, state: Any, notes: Notes) -> tuple[Array, Notes]:
        sampled = self.sampler.observe(state, notes)
        return sampled.log_density, sampled.info

    def rows(self) -> tuple[Array, ...]:
        return self.sampler.posterior.rows()


class _Placed(eqx.Module):
    """A donor's state at a new position."""

    sampler: Sampler
    restart: Restart

    def __call__(self, key: PRNGKey, donor: Any) -> Any:
        position = self.restart.sample(key, self.sampler.posterior, self.sampler.position(donor))
        return self.sampler.place(donor, position)


def _try_out(
    keys: Key[Array, " chain"], sampler: Sampler, state: Tree, length: int, progress: Progress
) -> tuple[Tree, Health]:
    plan, outputs = Plan(length, num_shards=sampler.posterior.num_shards), []
    for chunk in drive(_Trial(sampler), keys, state, plan, label="looking for lost chains", progress=progress):
        state = chunk.state
        outputs.append(chunk.outputs)
    log_density, info = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *outputs)
    return state, examine_chains(log_density, info, keep_all=True)


def _choose_donors(key: PRNGKey, num_chains: int, lost: list[int]) -> Int[Array, " chain"]:
    healthy = jnp.asarray([chain for chain in range(num_chains) if chain not in lost])
    return jax.random.choice(key, healthy, (num_chains,))


def _take(state: Tree, chains: Int[Array, " chain"]) -> Tree:
    return jax.tree.map(lambda leaf: leaf[chains], state)


def _replace(state: Tree, moved: Tree, is_lost: Bool[Array, " chain"]) -> Tree:
    choose = lambda old, new: jnp.where(is_lost.reshape(-1, *(1,) * (old.ndim - 1)), new, old)
    return jax.tree.map(choose, state, moved)
