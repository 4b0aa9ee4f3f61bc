"""How good a flow is: its evidence, its distance to held-out draws, its predictions beside those of the chains."""

import math
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from weightscape.core import PRNGKey
from weightscape.core.numbers import number
from weightscape.data import Dataset
from weightscape.draws import Draws, examine_chains
from weightscape.evaluate import agreement, total_variation
from weightscape.flow import Diffusion, Flow, Gap, Landing, tuned_landing
from weightscape.flow.gap import gap_of
from weightscape.inference import Approximation, Evidence, importance_evidence
from weightscape.posterior import Position
from weightscape.predictive import Predictive, predict

_NUM_TIMED = 32
_NUM_PATH_STEPS = 64
_LANDING_TIME = 0.5
"""The best of 0.5, 0.65 and 0.8 for a small flow on iris; the rest of the way is annealed."""


class Measured(NamedTuple):
    """A flow and what is known of it.

    - `diffusion`: the flow gone with noise and landed, whose weights are cheap and even.  `draws`: of it, with their
      log density and log q.
    - `under_posterior`: log weights of held-out draws of the chains; `gap` is J between these and the flow's.
    - `seconds_a_network`: for one draw without its density, in a batch, once everything is compiled.
    """

    flow: Flow
    diffusion: Diffusion
    draws: Draws
    evidence: Evidence
    gap: Gap
    under_posterior: Float[np.ndarray, "chain draw"]
    seconds_a_network: float

    @property
    def under_flow(self) -> Float[np.ndarray, " draw"]:
        """Log weights of the flow's own draws."""
        return np.ravel(self.diffusion.log_weights(self.draws))


def measure_flow(key: PRNGKey, flow: Flow, chains: Draws, num_draws: int) -> Measured:
    """The flow beside chains, a part of which it was trained on.

    - `num_draws`: of the flow, for its evidence and J.
    """
    key_landing, key_draws, key_time = jax.random.split(key, 3)
    landing = Landing(time=number(_LANDING_TIME))
    diffusion = tuned_landing(key_landing, Diffusion(flow, _NUM_PATH_STEPS, landing=landing))
    draws = diffusion.sample(key_draws, num_draws)
    under_flow = np.ravel(diffusion.log_weights(draws))
    # Half as many: their log weights spread less, and cost as much.
    left_out = held_out_draws(chains, flow.method.held_out, most=max(1, num_draws // 2))
    under_posterior = diffusion.log_weights(left_out)
    evidence, gap = importance_evidence(under_flow), gap_of(under_posterior, under_flow)
    return Measured(flow, diffusion, draws, evidence, gap, under_posterior, _seconds(key_time, flow))


def held_out_draws(chains: Draws, share: float, *, most: int) -> Draws:
    """Those that a flow's training leaves aside: the last healthy chains, or the end of a single one; thinned.

    - `share`: `held_out` of FlowMatching.  `most`: how many are kept.
    """
    kept = list(range(chains.num_chains))
    if chains.num_draws > 1 and chains.num_chains > 1:
        kept = list(examine_chains(np.asarray(chains.log_density), chains.info).kept)
    if len(kept) > 1:
        last = chains[kept[len(kept) - _count(share, len(kept)) :]]
    else:
        last = chains[:, chains.num_draws - _count(share, chains.num_draws) :]
    return last.thin(max(1, math.ceil(len(last) / most)))


def nearness(p: Predictive, reference: Predictive) -> dict[str, float]:
    """How far predictions are from others: for classes, or in units of the other's standard deviation."""
    if reference.task == "classification":
        return {"agreement": float(agreement(p, reference)), "total variation": float(total_variation(p, reference))}
    scale = np.asarray(reference.std, np.float64)
    off = (np.asarray(p.mean, np.float64) - np.asarray(reference.mean, np.float64)) / scale
    ratio = np.asarray(p.std, np.float64) / scale
    return {"mean off by": float(np.sqrt(np.mean(off**2))), "ratio of std": float(np.exp(np.mean(np.log(ratio))))}


def halves(chains: Draws, dataset: Dataset) -> dict[str, float]:
    """How far one half of the chains' draws is from the other: no flow can be seen to be nearer than that."""
    if chains.num_chains > 1:
        cut = chains.num_chains // 2
        first, second = chains[:cut], chains[cut:]
    else:
        cut = chains.num_draws // 2
        first, second = chains[:, :cut], chains[:, cut:]
    return nearness(*(predict(part, dataset.test.x) for part in (first, second)))


def as_json(measured: Measured) -> dict[str, Any]:
    """The numbers for `result.json`."""
    facts = measured.flow.facts
    tail = measured.evidence.pareto_k
    return {
        "evidence": {**measured.evidence._asdict(), "pareto_k": tail if math.isfinite(tail) else None},
        "is_trusted": measured.evidence.is_trusted,
        "gap": measured.gap._asdict(),
        "seconds_a_network": measured.seconds_a_network,
        "num_draws": len(measured.draws),
        "training": {name: facts.get(name) for name in ("num_steps", "num_train", "num_held_out", "seconds")},
    }


def _count(share: float, total: int) -> int:
    return max(1, round(share * total))


def _seconds(key: PRNGKey, flow: Flow) -> float:
    keys = jax.random.split(key, _NUM_TIMED)
    jax.block_until_ready(_positions(flow.bare(), keys))
    began = time.perf_counter()
    jax.block_until_ready(_positions(flow.bare(), keys))
    return (time.perf_counter() - began) / _NUM_TIMED


@eqx.filter_jit
def _positions(flow: Approximation, keys: Key[Array, " draw"]) -> Position:
    return jax.vmap(flow.sample_position)(keys)
