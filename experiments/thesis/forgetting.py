"""Networks that flows draw in steps that forget, beside those of the same flows without noise."""

import itertools
from typing import Any

import jax
from experiments.thesis.settings import EQUIVARIANT
from experiments.thesis.stage import ONE_STEP, SEEDS, Stage, briefly_trained, long_revised

import weightscape as ws
from weightscape.flow import ForgetfulSteps

FORGETTINGS = (1.0, 10.0, 30.0)
QUICK = 24
"""Steps for a third of the price: as many velocities as FixedSteps takes by default are 72."""

MORE = (2, 3)
"""Revisions of a velocity, of a flow that was trained with one."""

_BLIND = f"euclidean-{EQUIVARIANT}"


def forgetting(stage: Stage) -> dict[str, Any]:
    """Of short trainings of fields that do not see the data, and that see them once, for two keys of each."""
    found = {}
    for seed in SEEDS:
        blind = briefly_trained(stage, "blind", seed, {}, configuration=_BLIND)
        found |= _drawn(stage, blind, f"without the data, key {seed}")
        found |= _drawn(stage, briefly_trained(stage, "factors-1", seed, ONE_STEP), f"1 revision, key {seed}")
    return found


def forgetting_long(stage: Stage) -> dict[str, Any]:
    """Of the long training of a field that sees the data."""
    return _drawn(stage, long_revised(stage), "long")


def forgetting_often(stage: Stage) -> dict[str, Any]:
    """Of the long training, revised more often than in it, with noise."""
    found, flow = {}, long_revised(stage)
    for count, each in itertools.product(MORE, FORGETTINGS[1:]):
        often = flow.with_revisions(count).with_solver(ForgetfulSteps(forgetting=each))
        found[f"long, {count} revisions, forgetting {each:g}"] = stage.judged(often)
    return found


def _drawn(stage: Stage, flow: ws.PopulationFlow, name: str) -> dict[str, Any]:
    """The judgement of a flow's networks, as they are and with noise."""
    steps = {f"forgetting {each:g}": ForgetfulSteps(forgetting=each) for each in FORGETTINGS}
    steps[f"forgetting {FORGETTINGS[-1]:g} in {QUICK} steps"] = ForgetfulSteps(QUICK, forgetting=FORGETTINGS[-1])
    found = {f"{name}, no noise": stage.judged(flow)}
    found |= {f"{name}, {how}": stage.judged(flow.with_solver(each)) for how, each in steps.items()}
    jax.clear_caches()  # a process may map only so many programs
    return found
