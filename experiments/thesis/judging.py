"""What networks are worth, alone and together, and whether they are new.

Loss is the mean negative log likelihood of a test row. `bma` are scores of the average of 64 networks' probabilities.
Memorisation is judged by probabilities at the test rows, and by weights without what symmetry alone changes; held-out
networks come from other runs.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from experiments.thesis.populations import rebased
from experiments.thesis.settings import Problem

import weightscape as ws
from weightscape import evaluate
from weightscape.inference.point import RunSplit

COUNTS = (1, 2, 4, 8, 16, 32, 64)
_MOST_COMPARED = 64


class Known(NamedTuple):
    """What networks are judged against: test rows, and the features of training and held-out networks."""

    x: np.ndarray
    y: np.ndarray
    train: ws.Draws
    functions: tuple[np.ndarray, np.ndarray]
    weights: tuple[np.ndarray, np.ndarray]


def known(problem: Problem, split: RunSplit) -> Known:
    """The features of a population, computed once."""
    test = problem.data().test
    x, y = np.asarray(test.x), np.asarray(test.y).ravel().astype(int)
    functions = tuple(evaluate.function_features(part, x) for part in split)
    weights = tuple(evaluate.weight_features(part, split.train) for part in split)
    return Known(x, y, split.train, functions, weights)


def judged(networks: ws.Draws, against: Known) -> dict[str, Any]:
    """All figures of some networks."""
    p = evaluate.function_features(networks, against.x).reshape(len(networks), len(against.y), -1)
    counts = [count for count in COUNTS if count <= len(p)]
    alone = [evaluate.averaging_curve(each[None], against.y, (1,))[0] for each in p]
    together, few = evaluate.averaging_curve(p, against.y, counts), p[:_MOST_COMPARED]
    flat, weights = p.reshape(len(p), -1), evaluate.weight_features(networks, against.train)
    return {
        "accuracy": float(np.mean([each.accuracy for each in alone])),
        "loss": float(np.mean([each.nll for each in alone])),
        "bma": {row.num_networks: {"accuracy": row.accuracy, "loss": row.nll} for row in together},
        "ece": evaluate.ece(np.mean(p[: counts[-1]], axis=0), against.y),
        "jensen_shannon": evaluate.jensen_shannon(few),
        "overlap": evaluate.error_overlap(few, against.y),
        "functions": evaluate.memorisation(flat, *against.functions)._asdict(),
        "weights": evaluate.memorisation(weights, *against.weights)._asdict(),
    }


def baselines(problem: Problem, split: RunSplit, against: Known) -> dict[str, dict[str, Any]]:
    """The population itself, and what needs no flow."""
    key_noise, key_mean, key_place = jax.random.split(jax.random.key(1), 3)
    count, placed = problem.num_generated, rebased(split.train, problem, normalised=True)
    made = {
        "training networks": split.train[:count],
        "held-out networks": split.held_out[:count],
        "training network plus noise": evaluate.noisy_copies(key_noise, split.train, count, noise=problem.noise),
        "average of two networks": evaluate.averages(key_mean, split.train, count),
        "average of two re-based networks": evaluate.averages(key_place, placed, count),
    }
    return {name: judged(networks, against) for name, networks in made.items()}
