"""Running chains: start, warm up, sample, with draws and state going to disk as they are made.

Transition i of a chain gets the key fold_in(chain key, i), with i counted through warm-up and sampling, and the whole
state of all chains is stored with the draws. So a run that was killed goes on where its last stored chunk ended, and
ends in the same bits as one that was not.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from weightscape.core import Plan, PRNGKey, Tree, drive, map_chains
from weightscape.core.keys import chain_keys
from weightscape.draws import Draws, Place, Recorder
from weightscape.inference.method import Circumstances, Method, open_recorder, settings
from weightscape.inference.restart import restart_chains
from weightscape.inference.sampler import Sampler, Sampling, WarmingUp
from weightscape.inference.start import start_positions

_WARMUP = "warm-up"
_SAMPLING = "sampling"
_WARMUP_SHARE = 0.4
"""The part of a bounded run's time that warm-up may take."""


class Schedule(NamedTuple):
    """How many chains, draws of each, transitions of warm-up, and transitions for each draw (in turn, if several)."""

    num_chains: int
    num_draws: int
    num_warmup: int
    thin: int | tuple[int, ...] = 1


def run_chains(key: PRNGKey, method: Method, sampler: Sampler, schedule: Schedule, around: Circumstances) -> Draws:
    """Draws of `sampler`, in memory or in the store; where asked, the run that is in the store goes on."""
    key_start, key_restart, key_steps = jax.random.split(key, 3)
    keys = chain_keys(key_steps, schedule.num_chains)
    with open_recorder(key, method, sampler.posterior, around) as recorder:
        if recorder.has(schedule.num_draws):
            return recorder.reload(around.examination)
        place = recorder.resumed(sampler.init, schedule.num_chains)
        if place is None:
            positions = start_positions(key_start, sampler.posterior, schedule.num_chains, around.init, around.progress)
            place = Place(_WARMUP, 0, map_chains(sampler.init, positions))
        if place.phase == _WARMUP:
            state = _warm_up(keys, sampler, schedule, place, recorder, around)
            if around.restart is not None:
                length = schedule.num_warmup
                state = restart_chains(key_restart, sampler, state, length, around.restart, around.progress)
            place = Place(_SAMPLING, 0, state)
        num_draws = _sample(keys, sampler, schedule, place, recorder, around)
    return recorder.finish(
        {**settings(method), "seconds": recorder.seconds},
        around.examination,
        complete=num_draws >= schedule.num_draws,
    )


def _warm_up(
    keys: Key[Array, " chain"],
    sampler: Sampler,
    schedule: Schedule,
    place: Place,
    recorder: Recorder,
    around: Circumstances,
) -> Tree:
    state = place.state
    plan = Plan(
        schedule.num_warmup,
        seconds=_WARMUP_SHARE * around.progress.seconds_left(),
        done=place.done,
        num_shards=sampler.posterior.num_shards,
    )
    walk = WarmingUp(sampler)
    for chunk in drive(walk, keys, state, plan, label=_WARMUP, progress=around.progress, facts=transition_facts):
        state = chunk.state
        recorder.add(None, Place(_WARMUP, chunk.done, state))
    return map_chains(sampler.settle, state)


def _sample(
    keys: Key[Array, " chain"],
    sampler: Sampler,
    schedule: Schedule,
    place: Place,
    recorder: Recorder,
    around: Circumstances,
) -> int:
    """Make the draws and return how many there are."""
    plan = Plan(
        schedule.num_draws,
        schedule.thin,
        first=schedule.num_warmup,
        seconds=around.progress.seconds_left(),
        done=place.done,
        num_shards=sampler.posterior.num_shards,
    )
    shown, done = lambda sampled: transition_facts(sampled.info), place.done
    for chunk in drive(
        Sampling(sampler), keys, place.state, plan, label=_SAMPLING, progress=around.progress, facts=shown
    ):
        done = chunk.done
        recorder.add(chunk.outputs, Place(_SAMPLING, done, chunk.state))
    return done


def transition_facts(notes: Mapping[str, np.ndarray]) -> dict[str, float]:
    """What the progress bar shows of transitions: the mean acceptance, and divergences where there can be any."""
    facts = {}
    if "acceptance" in notes:
        facts["acceptance"] = float(np.mean(notes["acceptance"]))
    if "is_divergent" in notes:
        facts["divergent"] = float(np.sum(notes["is_divergent"]))
    return facts
