"""What networks are worth, alone and together, and whether they are new.

Loss is the mean negative log likelihood of a test row. `bma` are scores of the average of 64 networks' probabilities.
Memorisation is judged by probabilities at the first 1,000 test rows, and by weights without what symmetry alone
changes, of the first 64 networks, each compared in the form that is closest to it (`evaluate.matched_distances`).
Held-out networks come from other runs. Both look at all training networks: against a part of them most copies have no
original, and look new.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from experiments.thesis.populations import rebased
from experiments.thesis.settings import Problem
from experiments.thesis.tables import BLENDED, NOISY, TRAINING

import weightscape as ws
from weightscape import evaluate
from weightscape.inference.point import RunSplit

COUNTS = (1, 2, 4, 8, 16, 32, 64)
_MOST_COMPARED = 64
_MOST_ROWS = 1000
_MOST_REBASED = 2000
_MOST_HELD_OUT = 512
_MOST_MATCHED = 64
_NUM_SHOWN = 6


class Features(NamedTuple):
    """What networks are compared by: what they say at the first test rows, and their weights close to a reference."""

    functions: np.ndarray
    weights: np.ndarray

    def first(self, count: int) -> "Features":
        return Features(self.functions[:count], self.weights[:count])


class Known(NamedTuple):
    """What networks are judged against: test rows, training networks, and how far off held-out ones are.

    - `held_out`, `held_out_features`: kept for `first`, which asks again how far off they are.
    """

    x: np.ndarray
    y: np.ndarray
    train: ws.Draws
    features: Features
    held_out: ws.Draws
    held_out_features: Features
    distances: Features

    def first(self, count: int) -> "Known":
        """The same where only the first training networks are known."""
        if count >= len(self.train):
            return self
        train, features = self.train[:count], self.features.first(count)
        distances = _distances(self.held_out, self.held_out_features, train, features)
        return self._replace(train=train, features=features, distances=distances)


def known(folder: Path, problem: Problem, split: RunSplit) -> Known:
    """The features of a population, computed once and kept in the folder."""
    test = problem.data().test
    x, y = np.asarray(test.x), np.asarray(test.y).ravel().astype(int)
    held_out = split.held_out[:_MOST_HELD_OUT]

    def features(name: str, draws: ws.Draws) -> Features:
        kept = lambda by, made: _kept(folder / "features" / f"{by}_{name}.npy", made)
        return Features(
            kept("functions", lambda: evaluate.function_features(draws, x[:_MOST_ROWS])),
            kept("weights", lambda: evaluate.weight_features(draws, split.train)),
        )

    ours, theirs = features("train", split.train), features("held_out", held_out)
    return Known(x, y, split.train, ours, held_out, theirs, _distances(held_out, theirs, split.train, ours))


def judged(networks: ws.Draws, against: Known) -> dict[str, Any]:
    """All figures of some networks."""
    p = evaluate.function_features(networks, against.x).reshape(len(networks), len(against.y), -1)
    flat = p[:, :_MOST_ROWS].reshape(len(p), -1)
    features = Features(flat, evaluate.weight_features(networks, against.train))
    distances = _distances(networks, features, against.train, against.features)
    pairs = zip(Features._fields, distances, against.distances, strict=True)
    return {**scored(p, against.y), **{by: evaluate.audit(ours, theirs)._asdict() for by, ours, theirs in pairs}}


def _distances(networks: ws.Draws, features: Features, train: ws.Draws, theirs: Features) -> Features:
    """How far the nearest training network is, by functions of all and by weights of the first networks."""
    first = np.arange(min(len(networks), _MOST_MATCHED))
    rows = evaluate.copy_candidates(*zip(features.first(len(first)), theirs, strict=True))
    return Features(
        evaluate.nearest_distances(features.functions, theirs.functions),
        evaluate.matched_distances(networks, train, rows, chosen=first),
    )


def beside_nearest(networks: ws.Draws, against: Known) -> dict[str, np.ndarray]:
    """First-layer weights of a few networks, and of the training networks whose functions are closest to theirs."""
    few, train = networks[:, :_NUM_SHOWN], against.features.functions
    drawn = evaluate.function_features(few, against.x[:_MOST_ROWS])
    rows = [int(np.argmin(np.sum((train - each) ** 2, axis=1))) for each in drawn]
    first = lambda draws: np.asarray(draws.params.network["layer0"]["weight"])
    return {"drawn": first(few)[0], "nearest": first(against.train[rows])[:, 0]}


def scored(p: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """How good networks are, from their probabilities at test rows."""
    counts = [count for count in COUNTS if count <= len(p)]
    alone = [evaluate.averaging_curve(each[None], y, (1,))[0] for each in p]
    together, few = evaluate.averaging_curve(p, y, counts), p[:_MOST_COMPARED]
    return {
        "accuracy": float(np.mean([each.accuracy for each in alone])),
        "loss": float(np.mean([each.nll for each in alone])),
        "bma": {row.num_networks: {"accuracy": row.accuracy, "loss": row.nll} for row in together},
        "ece": evaluate.ece(np.mean(p[: counts[-1]], axis=0), y),
        "jensen_shannon": evaluate.jensen_shannon(few),
        "overlap": evaluate.error_overlap(few, y),
    }


def baselines(problem: Problem, split: RunSplit, against: Known) -> dict[str, dict[str, Any]]:
    """The population itself, and what needs no flow."""
    key_noise, key_mean, key_place = jax.random.split(jax.random.key(1), 3)
    count, few = problem.num_generated, rebased(split.train[:_MOST_REBASED], problem, normalised=True)
    made = {
        TRAINING: split.train[:count],
        "held-out networks": split.held_out[:count],
        **{
            f"{NOISY} {noise}": evaluate.noisy_copies(key_noise, split.train, count, noise=noise)
            for noise in problem.noises
        },
        "average of two networks": evaluate.averages(key_mean, split.train, count),
        **{f"{BLENDED} {share}": evaluate.blends(key_place, few, count, share=share) for share in problem.shares},
    }
    return {name: judged(networks, against) for name, networks in made.items()}


def _kept(file: Path, made: Any) -> np.ndarray:
    """An array from its file, or made and written to it."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, np.asarray(made(), np.float32))
        partial.replace(file)
    return np.load(file, mmap_mode="r")
