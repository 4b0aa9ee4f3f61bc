"""Laplace approximations of a network with a million weights: peak memory and time of each structure.

    python benchmarks/laplace_memory.py

MNIST, a 784-1024-256-10 network (1,068,810 weights) at its initial weights, 4,000 points. Each structure runs in a
process of its own; its peak memory stands beside that of a process that only loads data, network and one gradient. A
full matrix would take 4.2 TB.
"""

import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection

import jax
import numpy as np

import weightscape as ws
from weightscape.inference.laplace import LowRankStructure

NUM_POINTS, RANK, NUM_DRAWS = 4000, 20, 8
STRUCTURES = {"nothing": None, "diagonal": "diagonal", "kronecker": "kronecker", "low rank 20": LowRankStructure(RANK)}


def run(name: str, report: Connection) -> None:
    data = ws.data.load("mnist", flatten=True)
    batch = ws.Batch(np.asarray(data.train.x[:NUM_POINTS], np.float32), np.asarray(data.train.y[:NUM_POINTS]))
    network = ws.networks.MLP(hidden=(1024, 256), activation="relu")
    posterior = ws.Model(network, ws.likelihoods.Categorical(10), ws.priors.Normal(0.1)).condition(batch)
    position = posterior.start_position(jax.random.key(0))
    jax.block_until_ready(jax.jit(jax.grad(posterior.log_density))(position))
    fit = sample = 0.0
    if STRUCTURES[name] is not None:
        began = time.perf_counter()
        found = ws.Laplace(STRUCTURES[name]).run(jax.random.key(1), posterior, init=ws.point(posterior, position))
        jax.block_until_ready(found.covariance)
        fit = time.perf_counter() - began
        draws = found.sample(jax.random.key(2), NUM_DRAWS)
        assert np.all(np.isfinite(draws.log_density))
        sample = time.perf_counter() - began - fit
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.send((peak, fit, sample))


def main() -> None:
    context = multiprocessing.get_context("spawn")
    print(f"jax {jax.__version__}, {NUM_POINTS} points, 1,068,810 weights (4.1 MiB of float32)")
    print(
        f"| structure | peak memory, MiB | above nothing, MiB | fit, s | {NUM_DRAWS} draws, s |\n|---|---|---|---|---|"
    )
    base = None
    for name in STRUCTURES:
        here, there = context.Pipe()
        process = context.Process(target=run, args=(name, there))
        process.start()
        while process.is_alive() and not here.poll(1):
            pass
        if not here.poll():
            sys.exit(f"{name} failed")
        peak, fit, sample = here.recv()
        process.join()
        base = peak if base is None else base
        print(f"| {name} | {peak:.0f} | {peak - base:.0f} | {fit:.1f} | {sample:.1f} |", flush=True)


if __name__ == "__main__":
    main()
