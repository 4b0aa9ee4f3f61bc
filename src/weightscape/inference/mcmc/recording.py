"""Running tuned chains and putting their draws where they belong."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Array, Key

from weightscape.core import Plan, Progress, Tree, drive
from weightscape.draws import Recorder

Step = Callable[..., Any]

WARMUP_SHARE = 0.4
"""The part of a bounded run's time that warm-up may take."""


def record_chains(
    recorder: Recorder,
    step: Step,
    keys: Key[Array, " chain"],
    state: Tree,
    plan: Plan,
    progress: Progress,
) -> None:
    """Drive `step`, whose outputs are `Sampled`, and record every chunk as it is made."""
    shown = lambda sampled: acceptance_facts(sampled.info)
    for chunk in drive(step, keys, state, plan, label="sampling", progress=progress, facts=shown):
        recorder.add(chunk.outputs)


def warm_up_chains(step: Step, keys: Key[Array, " chain"], state: Tree, plan: Plan, progress: Progress) -> Tree:
    """Drive `step`, whose outputs have an `acceptance`, and return the state it ends in."""
    shown = lambda notes: acceptance_facts(notes._asdict())
    for chunk in drive(step, keys, state, plan, label="warm-up", progress=progress, facts=shown):
        state = chunk.state
    return state


def acceptance_facts(info: Mapping[str, np.ndarray]) -> dict[str, float]:
    """What the progress bar shows of transitions: the mean acceptance, and divergences where there can be any."""
    facts = {"acceptance": float(np.mean(info["acceptance"]))}
    if "is_divergent" in info:
        facts["divergent"] = float(np.sum(info["is_divergent"]))
    return facts
