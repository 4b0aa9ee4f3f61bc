"""The stages of `exact_posterior`; each can be repeated and goes on where it was stopped."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from experiments.exact.settings import IDEAS, Case

import weightscape as ws
from weightscape.flow import Exact, Flow, FlowTransport, Hutchinson, annealed, moved, weighted

_NUM_PROBES = 256
_MOST_EXACT = 2000
"""Beyond so many weights log densities are estimated, and only their means are reported."""


def reference(folder: Path, case: Case) -> ws.Draws:
    """The chains that everything is measured against."""
    return case.reference.run(jax.random.key(0), case.posterior(), store=folder / "reference", resume=True)


def train(folder: Path, case: Case, idea: str, num_steps: int | None) -> Flow:
    """The flow of an idea, from the store where it was trained before."""
    changes: dict[str, Any] = {**IDEAS[idea], **({} if num_steps is None else {"num_steps": num_steps})}
    method = dataclasses.replace(case.flow, **changes)
    store = folder / f"flow-{idea.replace(', ', '-')}-{method.num_steps}"
    with jax.default_matmul_precision("tensorfloat32"):
        flow = method.run(jax.random.key(1), case.posterior(), draws=reference(folder, case), store=store, resume=True)
    assert isinstance(flow, Flow)
    return flow if flow.num_weights <= _MOST_EXACT else flow.with_divergence(Hutchinson(32))


def judge(flow: Flow, draws: ws.Draws, num_draws: int) -> dict[str, Any]:
    """J on chains that were held out, and what the weights say."""
    num_held = max(1, round(flow.method.held_out * draws.num_chains))
    held_out = draws[-num_held:][:, :: max(1, num_held * draws.num_draws // num_draws)]
    began = time.monotonic()
    gap = flow.gap(jax.random.key(2), held_out, num_draws=min(num_draws, 256))
    row = {"J": gap.value, "J_error": gap.standard_error, "spread_q": gap.spread_under_flow}
    row |= {"spread_p": gap.spread_under_posterior, "judge_seconds": time.monotonic() - began}
    return row | {"train_seconds": flow.facts["seconds"], "num_steps": flow.facts["num_steps"]}


def evidence(flow: Flow, case: Case, folder: Path) -> dict[str, Any]:
    """log p(D) by weights, by annealing, and by stepping stones over HMC."""
    found = flow.evidence(jax.random.key(3), case.num_weighed)
    row = {f"weights_{name}": value for name, value in found._asdict().items()}
    if case.num_particles:
        result = annealed(
            jax.random.key(4),
            case.posterior(),
            FlowTransport(flow),
            num_particles=case.num_particles,
            batch_size=32,
        )
        row |= {"annealed": result.log_evidence.value, "annealed_error": result.log_evidence.standard_error}
        row |= {"annealed_trusted": result.is_trusted}
    if case.ladder is not None:
        rungs = case.ladder.run(jax.random.key(5), case.posterior(), store=folder / "ladder", resume=True)
        value, error = ws.ladder_evidence(rungs)
        row |= {"stones": value, "stones_error": error}
    return row


def correct(flow: Flow, case: Case, draws: ws.Draws) -> dict[str, Any]:
    """Total variation to the reference on test inputs and off the data, before and after correction."""
    fresh = flow.sample(jax.random.key(6), case.num_weighed)
    ends = moved(
        jax.random.key(7),
        case.posterior(),
        dataclasses.replace(fresh, log_proposal=None),
        num_transitions=case.num_moves,
        kernel=ws.HMC(num_warmup=10, num_leapfrog=case.reference.num_leapfrog, step_size=case.reference.step_size),
    )
    sets = {"flow": fresh, "moved": ends.draws}
    if isinstance(flow.divergence, Exact):
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


def chains(draws: ws.Draws, case: Case) -> dict[str, Any]:
    """How well the reference has settled, and what an independent draw of it costs."""
    found = ws.diagnose(draws, _inputs(case)["test"][:32])
    transitions = case.reference.num_warmup + case.reference.num_draws * case.reference.thin
    gradients = draws.num_chains * transitions * case.reference.num_leapfrog
    return {
        "rhat": found.worst_rhat,
        "ess": found.least_bulk_ess,
        "gradients_per_draw": gradients / found.least_bulk_ess,
    }


def _inputs(case: Case) -> dict[str, np.ndarray]:
    """Test inputs, and inputs far from all data: normal, with twice the spread of the test inputs."""
    x = np.asarray(case.data().test.x)[:1000]
    noise = np.random.default_rng(0).normal(size=(_NUM_PROBES, *x.shape[1:]))
    return {"test": x, "off": (x.mean(axis=0) + 2 * x.std(axis=0) * noise).astype(x.dtype)}
