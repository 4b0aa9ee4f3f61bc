"""A zoo on disk: a safetensors file for each chunk of trained networks; what is there is not trained again."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from experiments.zoo.settings import NETWORKS, Zoo, images, recipes
from experiments.zoo.training import train_many

from weightscape.core import Tree, tree
from weightscape.core.checks import require
from weightscape.core.files import map_arrays, write_arrays

_SHARES = (0.6, 0.75)
"""Where the training part ends and the test part begins."""


class Trained(NamedTuple):
    """Networks with a leading axis on every leaf, and their accuracies on test images."""

    params: Tree
    accuracies: np.ndarray

    def part(self, rows: slice) -> "Trained":
        return Trained(jax.tree.map(lambda leaf: leaf[rows], self.params), self.accuracies[rows])


class Parts(NamedTuple):
    """Networks to train on, to choose settings with, and to report on: 60, 15 and 25 %."""

    train: Trained
    validation: Trained
    test: Trained


def make(folder: Path, kind: str, zoo: Zoo, say: Callable[[str], object] = print) -> None:
    """Train the chunks of a zoo that are not in `folder` yet, those of fewest steps first."""
    given, network = images(kind, zoo), NETWORKS[kind]
    key_recipes, key_networks = jax.random.split(jax.random.key(zoo.seed))
    drawn = recipes(key_recipes, zoo, len(given.x_train))
    order = np.argsort(np.asarray(drawn.num_steps), kind="stable")
    for i, rows in enumerate(np.split(order, range(zoo.chunk_size, zoo.num_networks, zoo.chunk_size))):
        path = _path(folder, kind, i)
        if path.is_file():
            continue
        began = time.perf_counter()
        keys = jax.vmap(lambda row: jax.random.fold_in(key_networks, row))(jnp.asarray(rows))
        mine = jax.tree.map(lambda leaf, rows=rows: leaf[rows], drawn)
        params, accuracies = jax.tree.map(np.asarray, train_many(keys, network, mine, given, zoo.batch[1]))
        settings = {f"recipe/{name}": np.asarray(leaf) for name, leaf in mine._asdict().items()}
        write_arrays(path, {"row": rows, "accuracy": accuracies, **settings, **_named(params)})
        middle = np.round(np.quantile(accuracies, (0.1, 0.5, 0.9)), 3)
        seconds = time.perf_counter() - began
        say(
            f"{kind} {i}: {len(rows)} networks, up to {mine.num_steps.max()} steps, {seconds:.1f} s, quantiles {middle}"
        )


def load(folder: Path, kind: str, zoo: Zoo) -> Parts:
    """The parts of a zoo, networks in the order in which recipes were drawn; those with non-finite weights left out."""
    paths = [_path(folder, kind, i) for i in range(-(-zoo.num_networks // zoo.chunk_size))]
    missing = [path.name for path in paths if not path.is_file()]
    require(not missing, f"The zoo of {kind} in `{folder}` must be whole", f"no {missing}", f"Run `zoo {kind}` first.")
    chunks = [map_arrays(path) for path in paths]
    order = np.argsort(np.concatenate([chunk["row"] for chunk in chunks]))
    joined = {name: np.concatenate([chunk[name] for chunk in chunks])[order] for name in chunks[0]}
    like = NETWORKS[kind].init(jax.random.key(0), images(kind, zoo._replace(num_train=10, num_test=10)).x_train)
    leaves = [joined[f"weights/{name}"] for name in tree.named_leaves(like)]
    finite = np.all([np.isfinite(leaf.reshape(len(leaf), -1)).all(1) for leaf in leaves], axis=0)
    params = jax.tree.unflatten(jax.tree.structure(like), [leaf[finite] for leaf in leaves])
    return split(Trained(params, joined["accuracy"][finite]))


def split(trained: Trained) -> Parts:
    """Consecutive stretches; recipes are independent draws, so the order is random as it is."""
    first, second = (round(share * len(trained.accuracies)) for share in _SHARES)
    return Parts(trained.part(slice(first)), trained.part(slice(first, second)), trained.part(slice(second, None)))


def _path(folder: Path, kind: str, i: int) -> Path:
    return folder / f"{kind}_{i:03d}.safetensors"


def _named(params: Tree) -> dict[str, np.ndarray]:
    return {f"weights/{name}": leaf for name, leaf in tree.named_leaves(params).items()}
