"""Figures 2 and 3: what permuting the initial weights does to training, and interpolations through training."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from experiments.compact.settings import Problem, Settings

import weightscape as ws
from weightscape import geometry
from weightscape.symmetry import Element, Symmetry

TIMES = np.linspace(0.0, 1.0, 11)


class Pair(NamedTuple):
    """One run of figure 3: transpositions before and after training, squared distances, barriers."""

    planted: int
    found: int
    distance: float
    distance_rebased: float
    barrier: float
    barrier_rebased: float


def pairs(key: jax.Array, problem: Problem, settings: Settings) -> list[Pair]:
    """Networks that start at W and at P W, for P with given numbers of transpositions, trained on other batches."""
    key_init, key_order, key_train, key_match = jax.random.split(key, 4)
    symmetry, loss = _tools(problem)
    starts = []
    for run in range(settings.num_runs):
        start = problem.exact.start_position(jax.random.fold_in(key_init, run)).network
        starts.append(start)
        for i, number in enumerate(settings.transpositions):
            key_one = jax.random.fold_in(jax.random.fold_in(key_order, run), i)
            starts.append(symmetry.apply(start, _element(key_one, symmetry, number)))
    trained = _train(key_train, problem, settings, starts, settings.epochs // 5 or 1)
    made, size = [], 1 + len(settings.transpositions)
    for run in range(settings.num_runs):
        first = trained[run * size]
        for i, number in enumerate(settings.transpositions):
            made.append(_compare(key_match, symmetry, loss, first, trained[run * size + 1 + i], number))
    return made


def interpolations(key: jax.Array, problem: Problem, settings: Settings) -> dict[str, dict[int, np.ndarray]]:
    """Losses along W_λ between two networks after some epochs, as they are and after rebase, and NoT along W_λ."""
    key_first, key_second, key_train, key_match = jax.random.split(key, 4)
    symmetry, loss = _tools(problem)
    networks = [problem.exact.start_position(k).network for k in (key_first, key_second)]
    losses, moved, counts, done = {}, {}, {}, 0
    for epoch in settings.checkpoints:
        if epoch > done:
            networks = _train(jax.random.fold_in(key_train, epoch), problem, settings, networks, epoch - done)
            done = epoch
        line = geometry.Linear(*networks)
        losses[epoch] = np.asarray(geometry.barrier(line, loss, num_points=len(TIMES)).losses)
        straight = geometry.rebased(key_match, symmetry, *networks)
        moved[epoch] = np.asarray(geometry.barrier(straight, loss, num_points=len(TIMES)).losses)
        counts[epoch] = np.array(
            [_transpositions(key_match, symmetry, line.at(jnp.asarray(t)), networks[0]) for t in TIMES]
        )
    return {"as they are": losses, "rebased": moved, "NoT along the line": counts}


def _tools(problem: Problem) -> tuple[Symmetry, geometry.Loss]:
    params = problem.exact.start_position(jax.random.key(0)).network
    symmetry = ws.symmetry.discover(problem.exact.model.network, params, problem.exact.x[:4]).without_scaling()
    return symmetry, geometry.loss_of(problem.exact, problem.test, chunk_size=5000)


def _element(key: jax.Array, symmetry: Symmetry, number: int) -> Element:
    (group,) = symmetry.groups
    identity = symmetry.identity()
    order = geometry.with_transpositions(key, group.size, number)
    return Element((order,), identity.signs, identity.log_scales)


def _train(key: jax.Array, problem: Problem, settings: Settings, starts: list, epochs: int) -> list:
    """Networks after some epochs of Adam, side by side, each on batches of its own."""
    draws = [ws.point(problem.exact, ws.Parameters(start, {}, ())) for start in starts]
    method = ws.DeepEnsemble(len(starts), problem.num_steps(settings, epochs), 1e-3, settings.batch_size)
    trained = method.run(key, problem.exact, init=draws[0].merge(draws[1:]))
    return [jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i, 0]), trained.params.network) for i in range(len(starts))]


def _compare(key: jax.Array, symmetry: Symmetry, loss: geometry.Loss, first, second, planted: int) -> Pair:
    matched = geometry.WeightMatching().match(key, symmetry, second, first)
    moved = symmetry.apply(second, matched.element)
    found = int(geometry.transpositions(matched.element))
    barriers = [
        float(geometry.barrier(geometry.Linear(first, end), loss, num_points=11).value) for end in (second, moved)
    ]
    distances = [float(d) ** 2 for d in (matched.distance_before, matched.distance)]
    return Pair(planted, found, *distances, *barriers)


def _transpositions(key: jax.Array, symmetry: Symmetry, params, reference) -> int:
    return int(geometry.transpositions(geometry.WeightMatching().match(key, symmetry, params, reference).element))
