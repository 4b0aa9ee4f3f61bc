"""How fast are 1,000 draws of a 784-512-10 network re-based? Beside a plain loop of numpy and scipy, draw by draw.

python benchmarks/rebase.py prints the table of rebase.md. Draws are independent standard-normal networks, which give
the assignment nothing to hold on to, or copies of four networks with permuted units, flipped signs and noise.
"""

import argparse
import dataclasses
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

import weightscape as ws
from weightscape.geometry.rebase import rebase
from weightscape.symmetry import of_draws

NUM_INPUTS, NUM_UNITS, NUM_OUTPUTS = 784, 512, 10
NOISE = 0.5


def lone_draws(activation: str) -> ws.Draws:
    network = ws.networks.MLP(hidden=(NUM_UNITS,), activation=activation)
    model = ws.Model(network, ws.likelihoods.Categorical(num_classes=NUM_OUTPUTS), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(np.zeros((NUM_OUTPUTS, NUM_INPUTS), np.float32), np.arange(NUM_OUTPUTS)))
    return ws.point(posterior, posterior.start_position(jax.random.key(0)))


def with_weights(lone: ws.Draws, networks: list[dict]) -> ws.Draws:
    """Many networks as one chain of draws; their densities are not looked at."""
    stacked = {
        layer: {name: np.stack([network[layer][name] for network in networks])[None] for name in names}
        for layer, names in networks[0].items()
    }
    params = lone.params._replace(network=stacked)
    return dataclasses.replace(lone, params=params, log_density=np.zeros((1, len(networks)), np.float32))


def random_network(generator: np.random.Generator) -> dict:
    normal = lambda *shape: generator.standard_normal(shape, np.float32)
    return {
        "layer0": {"bias": normal(NUM_UNITS), "weight": normal(NUM_INPUTS, NUM_UNITS)},
        "layer1": {"bias": normal(NUM_OUTPUTS), "weight": normal(NUM_UNITS, NUM_OUTPUTS)},
    }


def noisy_copy(generator: np.random.Generator, network: dict, *, flips: bool) -> dict:
    order = generator.permutation(NUM_UNITS)
    signs = generator.choice([-1.0, 1.0], NUM_UNITS).astype(np.float32) if flips else np.ones(NUM_UNITS, np.float32)
    first, second, noise = network["layer0"], network["layer1"], random_network(generator)
    moved = {
        "layer0": {"bias": first["bias"][order] * signs, "weight": first["weight"][:, order] * signs},
        "layer1": {"bias": second["bias"], "weight": second["weight"][order] * signs[:, None]},
    }
    return jax.tree.map(lambda weights, other: weights + np.float32(NOISE) * other, moved, noise)


def make_draws(kind: str, activation: str, num_draws: int) -> ws.Draws:
    generator = np.random.default_rng(0)
    if kind == "independent":
        networks = [random_network(generator) for _ in range(num_draws)]
    else:
        parents = [random_network(generator) for _ in range(4)]
        flips = activation == "tanh"
        networks = [noisy_copy(generator, parents[i % 4], flips=flips) for i in range(num_draws)]
    return with_weights(lone_draws(activation), networks)


def plain_loop(weights: dict, reference: dict, *, flips: bool) -> list[float]:
    """One product, one assignment and one move for each draw, which is kept; the distances."""
    units = lambda network: np.concatenate(
        [network["layer0"]["weight"].T, network["layer0"]["bias"][:, None], network["layer1"]["weight"]], axis=1
    )
    wanted, found = units(reference), []
    moved = np.empty((len(weights["layer0"]["bias"]), *wanted.shape), wanted.dtype)
    for i in range(len(weights["layer0"]["bias"])):
        mine = units(jax.tree.map(lambda leaf, i=i: leaf[i], weights))
        gains = wanted @ mine.T
        chosen = linear_sum_assignment(np.abs(gains) if flips else gains, maximize=True)[1]
        signs = np.sign(gains[np.arange(NUM_UNITS), chosen]) if flips else np.ones(NUM_UNITS, np.float32)
        rest = weights["layer1"]["bias"][i] - reference["layer1"]["bias"]
        moved[i] = mine[chosen] * signs[:, None]
        found.append(float(np.sqrt(np.sum((moved[i] - wanted) ** 2) + np.sum(rest**2))))
    return found


def row(kind: str, activation: str, num_draws: int, num_plain: int) -> str:
    draws = make_draws(kind, activation, num_draws)
    symmetry = of_draws(draws)
    began = time.perf_counter()
    moved = rebase(draws, symmetry=symmetry)
    seconds = time.perf_counter() - began
    some = jax.tree.map(lambda leaf: leaf[0, :num_plain], draws.params.network)
    reference = jax.tree.map(lambda leaf: leaf[0, 0], draws.params.network)
    began = time.perf_counter()
    plain = plain_loop(some, reference, flips=activation == "tanh")
    plain_seconds = (time.perf_counter() - began) * num_draws / num_plain
    squares = jax.tree.map(
        lambda leaf, like: np.sum((leaf[0, :num_plain] - like) ** 2, axis=tuple(range(1, leaf.ndim - 1))),
        moved.params.network,
        reference,
    )
    distances = np.sqrt(sum(jax.tree.leaves(squares)))
    apart = np.max(np.abs(distances - plain) / np.max(plain))
    kinds = " and ".join(symmetry.groups[0].kinds)
    return f"| {kind} | {kinds} | {seconds:.1f} | {plain_seconds:.1f} | {plain_seconds / seconds:.2f} | {apart:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--plain", type=int, default=100, help="draws of the plain loop, whose time is scaled up")
    asked = parser.parse_args()
    print(f"{asked.draws} draws, {os.cpu_count()} cores, jax {jax.__version__}, {jnp.ones(()).device}\n")
    print("| draws | symmetry | rebase, s | plain loop, s | plain / rebase | distances differ by |")
    print("|---|---|---|---|---|---|")
    for activation in ("relu", "tanh"):
        for kind in ("independent", "noisy copies"):
            print(row(kind, activation, asked.draws, min(asked.plain, asked.draws)), flush=True)


if __name__ == "__main__":
    main()
