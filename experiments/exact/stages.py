"""The stages of `exact_posterior`; each can be repeated and goes on where it was stopped."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from experiments.exact.settings import IDEAS, Case

import weightscape as ws
from weightscape.flow import (
    Diffusion,
    DiffusionTransport,
    Flow,
    FlowTransport,
    Hutchinson,
    OfPull,
    annealed,
    moved,
    weighted,
)

_NUM_OFF_DATA = 256
_NUM_JUDGED = 512
_NUM_MOVED = 8192
_FEW_WEIGHTS = 200

_PROBES = Hutchinson(64)
"""For J, a mean: their noise adds nothing but noise, which is part of its standard error."""


@dataclasses.dataclass(frozen=True)
class Bench:
    """What a stage works on: a case, its reference chains, a trained flow and the folder of it all."""

    case: Case
    draws: ws.Draws
    flow: Flow
    folder: Path

    @property
    def drawer(self) -> Flow | Diffusion:
        """What draws are weighed with: the diffusion, where the flow has pulls."""
        return self._gone_in(self.case.num_path_steps)

    @property
    def shorter(self) -> Flow | Diffusion:
        """The same in a quarter of the steps, for draws that are corrected otherwise."""
        return self._gone_in(max(8, self.case.num_path_steps // 4))

    def _gone_in(self, num_steps: int) -> Flow | Diffusion:
        is_pulled = isinstance(self.flow.objective.prediction, OfPull)
        return Diffusion(self.flow, num_steps) if is_pulled else self.flow

    def held_out(self) -> ws.Draws:
        """Draws of chains that were held out."""
        num = max(1, round(self.flow.method.held_out * self.draws.num_chains))
        return self.draws[-num:][:, :: max(1, num * self.draws.num_draws // _NUM_JUDGED)]


def reference(folder: Path, case: Case) -> ws.Draws:
    """The chains that everything is measured against."""
    draws = case.reference.run(jax.random.key(0), case.posterior(), store=folder / "reference", resume=True)
    assert isinstance(draws, ws.Draws)
    return draws


def train(folder: Path, case: Case, idea: str, num_steps: int | None) -> Bench:
    """The flow of an idea, from the store where it was trained before."""
    changes: dict[str, Any] = {**IDEAS[idea], **({} if num_steps is None else {"num_steps": num_steps})}
    method, draws = dataclasses.replace(case.flow, **changes), reference(folder, case)
    store = folder / f"flow-{idea.replace(', ', '-')}-{method.num_steps}"
    with jax.default_matmul_precision("tensorfloat32"):
        flow = method.run(jax.random.key(1), case.posterior(), draws=draws, store=store, resume=True)
    assert isinstance(flow, Flow)
    return Bench(case, draws, flow, folder)


def chains(bench: Bench) -> dict[str, Any]:
    """How well the reference has settled, and what an independent draw of it costs."""
    found = ws.diagnose(bench.draws[:512], _inputs(bench.case)["test"][:32])
    method, share = bench.case.reference, min(512, bench.draws.num_chains) / bench.draws.num_chains
    gradients = bench.draws.num_chains * (method.num_warmup + method.num_draws * method.thin) * method.num_leapfrog
    settled = {"rhat": found.worst_rhat, "ess": found.least_bulk_ess / share}
    return settled | {"gradients_per_draw": gradients * share / found.least_bulk_ess}


def judge(bench: Bench) -> dict[str, Any]:
    """J on chains that were held out: of paths, where the flow has pulls."""
    flow, drawer, began = bench.flow, bench.drawer, time.monotonic()
    drawer = drawer.with_divergence(_PROBES) if isinstance(drawer, Flow) else drawer
    gap = drawer.gap(jax.random.key(2), bench.held_out(), num_draws=_NUM_JUDGED)
    row = {"J": gap.value, "J_error": gap.standard_error, "spread_q": gap.spread_under_flow}
    row |= {"spread_p": gap.spread_under_posterior, "judge_seconds": time.monotonic() - began}
    losses = [each * flow.num_weights for each in flow.facts["held_out_losses"]]
    return row | ({"least_loss": min(losses), "first_loss": losses[0], "last_loss": losses[-1]} if losses else {})


def without_noise(bench: Bench) -> dict[str, Any]:
    """J of the flow itself, which is gone without noise; for few weights also log p(D), which needs divergences."""
    flow, is_small = bench.flow, bench.flow.num_weights <= _FEW_WEIGHTS
    judged = flow if is_small else flow.with_divergence(_PROBES)
    gap = judged.gap(jax.random.key(2), bench.held_out(), num_draws=_NUM_JUDGED // 2)
    row = {"J_without_noise": gap.value, "J_without_noise_error": gap.standard_error}
    if is_small:
        found = flow.evidence(jax.random.key(8), bench.case.num_weighed)
        row |= {f"weights_without_noise_{name}": value for name, value in found._asdict().items()}
    return row


def weigh(bench: Bench) -> dict[str, Any]:
    """log p(D) by weights, and how many of the draws count."""
    found = bench.drawer.evidence(jax.random.key(3), bench.case.num_weighed)
    return {f"weights_{name}": value for name, value in found._asdict().items()}


def anneal(bench: Bench) -> dict[str, Any]:
    """log p(D) by annealing the noise of short paths."""
    transport = DiffusionTransport(bench.shorter) if isinstance(bench.shorter, Diffusion) else FlowTransport(bench.flow)
    result = annealed(jax.random.key(4), bench.case.posterior(), transport, num_particles=bench.case.num_particles)
    found = {"annealed": result.log_evidence.value, "annealed_error": result.log_evidence.standard_error}
    return found | {"annealed_trusted": result.is_trusted}


def ladder(bench: Bench) -> dict[str, Any]:
    """log p(D) by stepping stones over tempered HMC."""
    if bench.case.ladder is None:
        return {}
    rungs = bench.case.ladder.run(jax.random.key(5), bench.case.posterior(), store=bench.folder / "ladder", resume=True)
    assert isinstance(rungs, ws.Draws)
    value, error = ws.ladder_evidence(rungs)
    return {"stones": value, "stones_error": error}


def correct(bench: Bench) -> dict[str, Any]:
    """Total variation to the reference on test inputs and off the data, before and after correction."""
    case, draws = bench.case, bench.draws
    fresh = bench.shorter.sample(jax.random.key(6), min(_NUM_MOVED, 4 * case.num_weighed))
    kernel = ws.HMC(num_warmup=10, num_leapfrog=case.reference.num_leapfrog, step_size=case.reference.step_size)
    start = dataclasses.replace(fresh, log_proposal=None)
    ends = moved(jax.random.key(7), case.posterior(), start, num_transitions=case.num_moves, kernel=kernel)
    sets = {"flow": fresh, "moved": ends.draws}
    try:
        sets["weighted"] = weighted(fresh)
    except ws.InputError as error:
        print(error, flush=True)
    half = draws.num_chains // 2
    row: dict[str, Any] = {"moved_converged": ends.has_converged, "moved_dead": ends.num_dead}
    row["moved_gradients"] = ends.draws.facts["gradients"] / len(fresh)
    for name, x in _inputs(case).items():
        known = ws.predict(draws, x)
        row[f"tv_halves_{name}"] = ws.total_variation(ws.predict(draws[:half], x), ws.predict(draws[half:], x))
        row |= {f"tv_{each}_{name}": ws.total_variation(ws.predict(s, x), known) for each, s in sets.items()}
    return {name: float(value) for name, value in row.items()}


STAGES = {
    "chains": chains,
    "judge": judge,
    "weigh": weigh,
    "correct": correct,
    "anneal": anneal,
    "ladder": ladder,
    "without_noise": without_noise,
}
"""In the order in which they are run."""


def _inputs(case: Case) -> dict[str, np.ndarray]:
    """Test inputs, and inputs far from all data: normal, with twice the spread of the test inputs."""
    x = np.asarray(case.data().test.x)[:1000]
    noise = np.random.default_rng(0).normal(size=(_NUM_OFF_DATA, *x.shape[1:]))
    return {"test": x, "off": (x.mean(axis=0) + 2 * x.std(axis=0) * noise).astype(x.dtype)}
