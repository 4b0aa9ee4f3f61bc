"""The stages of `exact_posterior`; each can be repeated and goes on where it was stopped."""

import dataclasses
import time
from typing import Any

import jax
from experiments.exact.bench import NUM_JUDGED, Bench, inputs
from experiments.exact.profile import profile

import weightscape as ws
from weightscape.flow import (
    Diffusion,
    DiffusionTransport,
    Equivariant,
    Flow,
    FlowTransport,
    Hutchinson,
    OfPull,
    annealed,
    moved,
    weighted,
)
from weightscape.flow.swing import stiffness_of
from weightscape.flow.target import Target
from weightscape.flow.training_set import training_set
from weightscape.symmetry import discover

_NUM_MOVED = 8192
_FEW_WEIGHTS = 200
_NUM_PROFILED = 512
_FEW_LEAPFROG = 16
_LANDING_TIMES = (0.01, 0.5, 0.6, 0.7, 0.8, 0.9)

_PROBES = Hutchinson(64)
"""For J, a mean: their noise adds nothing but noise, which is part of its standard error."""


def chains(bench: Bench) -> dict[str, Any]:
    """How well the reference has settled, and what an independent draw of it costs."""
    found = ws.diagnose(bench.draws[:512], inputs(bench.case)["test"][:32])
    method, share = bench.case.reference, min(512, bench.draws.num_chains) / bench.draws.num_chains
    gradients = bench.draws.num_chains * (method.num_warmup + method.num_draws * method.thin) * method.num_leapfrog
    settled = {"rhat": found.worst_rhat, "ess": found.least_bulk_ess / share}
    return settled | {"gradients_per_draw": gradients * share / found.least_bulk_ess}


def judge(bench: Bench) -> dict[str, Any]:
    """J on chains that were held out: of paths, where the flow has pulls."""
    flow, drawer, began = bench.flow, bench.drawer, time.monotonic()
    drawer = drawer.with_divergence(_PROBES) if isinstance(drawer, Flow) else drawer
    gap = drawer.gap(jax.random.key(2), bench.held_out(), num_draws=NUM_JUDGED)
    row = {"J": gap.value, "J_error": gap.standard_error, "spread_q": gap.spread_under_flow}
    row |= {"spread_p": gap.spread_under_posterior, "judge_seconds": time.monotonic() - began}
    losses = [each * flow.num_weights for each in flow.facts["held_out_losses"]]
    return row | ({"least_loss": min(losses), "first_loss": losses[0], "last_loss": losses[-1]} if losses else {})


def without_noise(bench: Bench) -> dict[str, Any]:
    """J of the flow itself, which is gone without noise; for few weights also log p(D), which needs divergences."""
    flow, is_small = bench.flow, bench.flow.num_weights <= _FEW_WEIGHTS
    judged = flow if is_small else flow.with_divergence(_PROBES)
    gap = judged.gap(jax.random.key(2), bench.held_out(), num_draws=NUM_JUDGED // 2)
    row = {"J_without_noise": gap.value, "J_without_noise_error": gap.standard_error}
    if is_small:
        found = flow.evidence(jax.random.key(8), bench.case.num_weighed)
        row |= {f"weights_without_noise_{name}": value for name, value in found._asdict().items()}
    return row


def weigh(bench: Bench) -> dict[str, Any]:
    """log p(D) by weights, and how many of the draws count."""
    found = bench.drawer.evidence(jax.random.key(3), bench.case.num_weighed)
    return {f"weights_{name}": value for name, value in found._asdict().items()}


def land(bench: Bench) -> dict[str, Any]:
    """J of paths whose last part, from some time on, is a landing; from the first time on it is annealing alone."""
    if not isinstance(bench.flow.objective.prediction, OfPull):
        return {}
    row: dict[str, Any] = {}
    for time_ in _LANDING_TIMES:
        made = bench.landed(time_)
        gap = made.gap(jax.random.key(2), bench.held_out(), num_draws=NUM_JUDGED)
        assert made.landing is not None
        found = {"J": gap.value, "J_error": gap.standard_error, "spread_q": gap.spread_under_flow}
        found |= {"step_size": float(made.landing.step_size)}
        row |= {f"landed_{time_}_{name}": value for name, value in found.items()}
    return row


def weigh_landed(bench: Bench) -> dict[str, Any]:
    """log p(D) by weights of paths that land, from where the case's landing says."""
    if not isinstance(bench.flow.objective.prediction, OfPull):
        return {}
    found = bench.landed(float(bench.case.landing.time)).evidence(jax.random.key(3), bench.case.num_weighed)
    alone = bench.landed(_LANDING_TIMES[0]).evidence(jax.random.key(3), bench.case.num_weighed)
    row = {f"landed_{name}": value for name, value in found._asdict().items()}
    return row | {f"alone_{name}": value for name, value in alone._asdict().items()}


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
    for name, x in inputs(case).items():
        known = ws.predict(draws, x)
        row[f"tv_halves_{name}"] = ws.total_variation(ws.predict(draws[:half], x), ws.predict(draws[half:], x))
        row |= {f"tv_{each}_{name}": ws.total_variation(ws.predict(s, x), known) for each, s in sets.items()}
    return {name: float(value) for name, value in row.items()}


def errors(bench: Bench) -> dict[str, Any]:
    """What the error of the pull costs at each time (`profile`)."""
    if not isinstance(bench.flow.objective.prediction, OfPull):
        return {}
    method, source = bench.flow.method, bench.flow.source
    target, given = Target(bench.case.posterior(), source), training_set(source, bench.draws, method.held_out)
    labels = method.architecture.labels(discover(bench.case.posterior()))
    stiffness = stiffness_of(given.train, target.gradients(given.train), labels)
    return profile(jax.random.key(9), bench.flow, given.held_out[:_NUM_PROFILED], stiffness)


def gradients(bench: Bench) -> dict[str, Any]:
    """Gradients for an independent draw: by short trajectories of HMC, and by weights of paths of few steps."""
    kernel = ws.HMC(num_chains=64, num_draws=300, num_warmup=300, num_leapfrog=_FEW_LEAPFROG)
    draws = kernel.run(jax.random.key(10), bench.case.posterior())
    assert isinstance(draws, ws.Draws)
    ess = [ws.diagnose(draws, x[:32]).least_bulk_ess for x in inputs(bench.case).values()]
    row: dict[str, Any] = {"hmc_gradients": draws.num_chains * draws.num_draws * _FEW_LEAPFROG / min(ess)}
    if not isinstance(bench.flow.objective.prediction, OfPull):
        return row
    architecture = bench.flow.method.architecture
    each = 1 + architecture.num_leapfrog if isinstance(architecture, Equivariant) and architecture.guided else 0
    for num_steps in (64, 128, 256):
        found = Diffusion(bench.flow, num_steps).evidence(jax.random.key(11), bench.case.num_weighed)
        row |= {
            f"efficiency_{num_steps}": found.efficiency,
            f"gradients_{num_steps}": num_steps * each / found.efficiency,
        }
    return row


STAGES = {
    "chains": chains,
    "judge": judge,
    "land": land,
    "weigh": weigh,
    "weigh_landed": weigh_landed,
    "correct": correct,
    "anneal": anneal,
    "ladder": ladder,
    "without_noise": without_noise,
    "errors": errors,
    "gradients": gradients,
}
"""In the order in which they are run."""
