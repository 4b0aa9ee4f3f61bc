"""Table 1 and figure 5: samples of HMC, an ensemble and VI, and Gaussians fitted to them with and without rebase."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from experiments.compact.settings import Problem, Settings

import weightscape as ws
from weightscape import geometry
from weightscape.evaluate.pruning import pruning_curve

PRUNED = ("q_d", "q_r (activations)")
HEADINGS = ("agreement with HMC", "TV to HMC", "accuracy % of samples", "accuracy % of mean")


class Found(NamedTuple):
    """Everything that the tables and figures show."""

    rows: dict[str, tuple[float, ...]]
    notes: list[str]
    spreads: dict[str, object]
    curves: dict[str, object]


def sample(key: jax.Array, problem: Problem, settings: Settings) -> tuple[dict[str, ws.Draws], list[str]]:
    """Draws of an ensemble, of HMC that starts at its first member, and of mean-field VI."""
    num_steps = problem.num_steps(settings, settings.epochs)
    training = {"num_steps": num_steps, "learning_rate": 1e-3, "batch_size": settings.batch_size}
    methods = {
        "Ensemble": ws.DeepEnsemble(settings.num_members, **training),
        "HMC": ws.HMC(1, settings.num_burn_in + settings.num_draws, num_warmup=0, num_leapfrog=settings.num_leapfrog,
                      jitter=0.0, step_size=settings.step_size, mass=ws.UnitMass()),
        "VI": ws.MeanFieldVI(num_samples=1, **training),
    }  # fmt: skip
    draws, notes = {}, []
    for i, (name, method) in enumerate(methods.items()):
        began = time.perf_counter()
        init = draws["Ensemble"][:1] if name == "HMC" else None
        result = method.run(
            jax.random.fold_in(key, i), problem.posterior if name == "HMC" else problem.exact, init=init
        )
        seconds = time.perf_counter() - began
        if name == "HMC":
            notes.append(f"HMC accepted {np.mean(result.info['acceptance']):.2f} of its proposals")
        draws[name] = result if isinstance(result, ws.Draws) else result.sample(key, settings.num_samples)
        notes.append(f"{name}: {seconds:.0f} s")
        print(notes[-1], flush=True)
    draws["HMC"] = draws["HMC"][:, settings.num_burn_in :]
    halves = [float(np.mean(half)) for half in np.array_split(draws["HMC"].log_density[0], 2)]
    notes.append(f"mean log p(D, θ) of the first and second half of HMC: {halves[0]:.0f}, {halves[1]:.0f}")
    return draws, notes


def analyse(key: jax.Array, problem: Problem, settings: Settings) -> Found:
    """Table 1, the spreads and pruning curves of figure 5, and the conjecture, measured."""
    draws, notes = sample(key, problem, settings)
    hmc = ws.predict(draws["HMC"], problem.test.x)
    show = lambda predictive, mean: _row(predictive, mean, hmc, problem)
    rows, spreads, curves = {"HMC samples": show(hmc, None)}, {}, {}
    for name in ("HMC", "Ensemble"):
        if name == "Ensemble":
            rows["Ensemble samples"] = show(ws.predict(draws[name], problem.test.x), None)
        for label, moved in _bases(key, draws[name], problem):
            q = geometry.compact(moved, rebased=False, floor=1e-6)
            mean = ws.point(problem.exact, q.layout.unflatten(q.location))
            rows[f"{name} {label}"] = show(ws.predict(q.sample(key, settings.num_samples), problem.test.x), mean)
            notes.append(f"{name}, {label}: {_statistic(key, moved, problem)}")
            print(f"{name} {label}", rows[f"{name} {label}"], notes[-1], flush=True)
            if label in PRUNED:
                spreads[f"{name} {label}"] = geometry.moments(q)
                curves[f"{name} {label}"] = pruning_curve(key, q, problem.test, num_draws=settings.num_samples // 5)
    rows["VI"] = show(ws.predict(draws["VI"], problem.test.x), geometry.merge(draws["VI"], rebased=False))
    return Found(rows, notes, spreads, curves)


def _bases(key: jax.Array, draws: ws.Draws, problem: Problem) -> Iterator[tuple[str, ws.Draws]]:
    """Draws as they are, and rebased: by activations onto the first or their centre, by weights onto their centre."""
    by_activations = geometry.ActivationMatching(problem.exact.model.network, problem.exact.x[:2000])
    centre = geometry.Centre(num_rounds=3)
    yield "q_d", draws
    yield "q_r (activations)", geometry.rebase(draws, key=key, matching=by_activations)
    yield "q_r (activations, centre)", geometry.rebase(draws, centre, key=key, matching=by_activations)
    yield "q_r (weights, centre)", geometry.rebase(draws, centre, key=key)


def _statistic(key: jax.Array, draws: ws.Draws, problem: Problem) -> str:
    return str(geometry.unimodality(key, draws, problem.exact.log_density, num_pairs=100))


def _row(predictive: ws.Predictive, mean: ws.Draws | None, hmc: ws.Predictive, problem: Problem) -> tuple[float, ...]:
    accuracy = lambda found: 100 * float(ws.scores(found, problem.test.y)["accuracy"])
    of_mean = float("nan") if mean is None else accuracy(ws.predict(mean, problem.test.x))
    return (
        float(ws.agreement(predictive, hmc)),
        float(ws.total_variation(predictive, hmc)),
        accuracy(predictive),
        of_mean,
    )
