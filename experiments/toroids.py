"""Deep networks on toroids: the loss along paths between independently trained networks, symmetries removed or not.

    python experiments/toroids.py

Prints a Markdown table, one row for each network and path: the barrier of the mean negative log likelihood on training
and on test rows, mean and range over pairs of networks. Ends are the same for all paths, up to symmetry.

- linear: straight to the other network as it was trained.
- re-based: straight to its permutation that is closest by weight matching.
- geodesic: both normalised, matched, and joined on the product of spheres.
- one bend: two lines over an optimised middle, to the other network as it was trained.

After Pittorino et al. (2022), Deep networks on toroids: removing symmetries simplifies the landscape geometry.
"""

from typing import NamedTuple

import jax
import numpy as np

import weightscape as ws
from weightscape import geometry, symmetry

KEY = jax.random.key(0)


class Settings(NamedTuple):
    num_pairs: int = 3
    num_steps: int = 2000
    num_bend_steps: int = 500
    num_points: int = 25
    widths: tuple[int, ...] = (16, 128)
    channels: tuple[int, ...] = (8, 8)


def networks(settings: Settings) -> dict[str, ws.networks.Network]:
    mlp = lambda *hidden: ws.networks.MLP(hidden=hidden, activation="relu")
    narrow, wide = settings.widths
    conv = ws.networks.ConvNet(channels=settings.channels, kernel=3, hidden=())
    return {
        f"MLP {narrow}": mlp(narrow),
        f"MLP {wide}": mlp(wide),
        f"MLP {wide}-{wide}": mlp(wide, wide),
        "ConvNet": conv,
    }


def digits(*, images: bool) -> tuple[ws.Batch, ws.Batch]:
    data = ws.data.load("digits")
    shaped = lambda x: x.reshape(-1, 8, 8, 1) if images else x
    return tuple(ws.Batch(shaped(part.x), part.y, part.scaling) for part in (data.train, data.test))


def paths(key, found: symmetry.Symmetry, a, b, loss: geometry.Loss, settings: Settings) -> dict[str, geometry.Path]:
    key_match, key_bend = jax.random.split(key)
    return {
        "linear": geometry.Linear(a, b),
        "re-based": geometry.rebased(key_match, found.without_scaling(), a, b),
        "geodesic": geometry.geodesic(key_match, found, a, b),
        "one bend": geometry.train_bend(key_bend, loss, a, b, num_steps=settings.num_bend_steps),
    }


def barriers(network: ws.networks.Network, settings: Settings) -> dict[str, np.ndarray]:
    """For each path, barriers on training and test rows (pair, 2)."""
    train, test = digits(images=isinstance(network, ws.networks.ConvNet))
    posterior = ws.Model(network, ws.likelihoods.Categorical(10), ws.priors.Normal(1.0)).condition(train)
    ensemble = ws.DeepEnsemble(2 * settings.num_pairs, settings.num_steps, learning_rate=0.003, batch_size=128)
    members = ensemble.run(KEY, posterior).params.network
    member = lambda i: jax.tree.map(lambda leaf: jax.numpy.asarray(leaf[i, 0]), members)
    found = symmetry.discover(posterior.model.network, member(0), posterior.x[:4])
    losses = geometry.loss_of(posterior), geometry.loss_of(posterior, test)
    rows: dict[str, list] = {}
    for pair in range(settings.num_pairs):
        ends = member(2 * pair), member(2 * pair + 1)
        for name, path in paths(jax.random.fold_in(KEY, pair), found, *ends, losses[0], settings).items():
            values = [float(geometry.barrier(path, loss, num_points=settings.num_points).value) for loss in losses]
            rows.setdefault(name, []).append(values)
    return {name: np.array(values) for name, values in rows.items()}


def main(settings: Settings) -> None:
    shown = lambda values: f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"
    print("| network | path | barrier, training rows | barrier, test rows |\n|---|---|---|---|")
    for name, network in networks(settings).items():
        for path, values in barriers(network, settings).items():
            print(f"| {name} | {path} | {shown(values[:, 0])} | {shown(values[:, 1])} |", flush=True)


if __name__ == "__main__":
    main(Settings())
