"""Full-batch HMC on one accelerator: gradients per second against what the chip allows, and what rounding costs.

    WEIGHTSCAPE_DATA=<folder with mnist.npz> python benchmarks/hmc_gpu.py

MNIST, a 784-512-10 ReLU network, a N(0, 1) prior, step size 0.001, 500 leapfrog steps. On a CPU a few images and steps
stand in: that shows that the script runs, and its numbers mean nothing.

The floor. A gradient over N points has five products: h = x W and ∂W = xᵀ∂z of the first layer, and three with the
small last layer (xW, ∂W and ∂h). With 2 operations for each entry of a sum that is

    2 · 2 · N · 784 · 512  +  3 · 2 · N · 512 · 10  =  98.2 GFLOP  for N = 60,000.

An H200 does about 790 TFLOP/s on 16 bits, half of that on TF32 and, without its matrix units, 67 on float32 (the last
from its data sheet). If x is read once and everything else stays on the chip, the bytes are 94 MB of 16 bits or 188 MB
of float32; at 4.8 TB/s they take a sixth of the time of the operations, so operations set the floor. A program that
runs stage after stage moves more: x twice, and the hidden layer (61 MB of 16 bits) ten times: out of the first product,
in and out to add the bias, into the logits, into ∂W of the last layer, ∂h out, ∂h and z in and ∂z out to mask it, and
∂z into ∂W. These 0.80 GB take 0.17 ms, longer than the operations: `staged` adds both. Float32 moves twice the bytes.

The rounding. Trajectories start where a mode and a few transitions of HMC have led, with the same momenta for every
precision. ΔH is the energy error at a trajectory's end: of the density that the gradients belong to, and of the float32
density at the same two ends. It is a difference of numbers near 2 · 10⁵, which float32 resolves to about 0.02.
"""

import functools
import time
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import weightscape as ws

STEP_SIZE = 0.001
NUM_INPUTS, NUM_HIDDEN, NUM_CLASSES = 784, 512, 10
PLAIN = 1_281
"""Gradients per second of the same network, written plainly in JAX with TF32 on an H200."""

MEMORY = 4.8e12
RATES = {"float32": 67e12, "default": 395e12, "bfloat16": 790e12, "float16": 790e12}
"""Operations per second of an H200; the default precision is TF32 there."""


LEAPFROGS = {"float32": (1,), "default": (1, 4), "bfloat16": (1, 4), "float16": (1, 4)}
SAMPLERS = {"float32": (), "default": (1,), "bfloat16": (), "float16": (1, 4)}
"""With how many chains the leapfrog steps alone and `ws.HMC`, with all that it records, are timed.

`ws.HMC` refuses a run whose chain never moved, and with bfloat16 none does.
"""


class Sizes(NamedTuple):
    """How much is computed."""

    num_points: int
    num_leapfrog: int
    num_ascent: int
    num_settling: int
    num_timed: int
    num_transitions: int


class Errors(NamedTuple):
    """ΔH of each transition: of the density that was followed, and of the float32 one."""

    own: np.ndarray
    float32: np.ndarray


def sizes() -> Sizes:
    return Sizes(200, 5, 20, 2, 2, 2) if jax.default_backend() == "cpu" else Sizes(60_000, 500, 1000, 40, 24, 24)


def posteriors(num_points: int) -> dict[str, ws.Posterior]:
    """The same posterior in each precision, its inputs stored as the products read them."""
    train = ws.data.load("mnist", flatten=True, num_train=num_points).train
    batch = ws.Batch(np.asarray(train.x) / 255, train.y)
    return {name: stored(model(name).condition(batch), ws.networks.PRECISIONS[name]) for name in RATES}


def model(precision: str) -> ws.Model:
    network = ws.networks.MLP(hidden=(NUM_HIDDEN,), activation="relu", precision=precision)
    return ws.Model(network, ws.likelihoods.Categorical(NUM_CLASSES), ws.priors.Normal(1.0))


def stored(posterior: ws.Posterior, precision: ws.networks.Precision) -> ws.Posterior:
    return eqx.tree_at(lambda posterior: posterior.x, posterior, precision.inputs(posterior.x))


def hmc(num_chains: int, num_draws: int, num_leapfrog: int) -> ws.HMC:
    return ws.HMC(num_chains, num_draws, num_warmup=0, num_leapfrog=num_leapfrog, jitter=0.0, step_size=STEP_SIZE)


@eqx.filter_jit
def travel(posterior: ws.Posterior, position, momentum, num_steps: jax.Array):
    """Leapfrog steps, each with the log density and its gradient, as in the sampler."""
    value_and_gradient = jax.value_and_grad(posterior.log_density)
    move = lambda size, start, direction: jax.tree.map(lambda a, b: a + size * b, start, direction)

    def step(_, state):
        position, momentum, _, gradient = state
        momentum = move(0.5 * STEP_SIZE, momentum, gradient)
        position = move(STEP_SIZE, position, momentum)
        value, gradient = value_and_gradient(position)
        return position, move(0.5 * STEP_SIZE, momentum, gradient), value, gradient

    first = (position, momentum, *value_and_gradient(position))
    return jax.lax.fori_loop(0, num_steps, step, first)[:2]


@eqx.filter_jit
def travel_together(posterior: ws.Posterior, positions, momenta, num_steps: jax.Array):
    """The same for chains on a leading axis."""
    return jax.vmap(lambda position, momentum: travel(posterior, position, momentum, num_steps))(positions, momenta)


@eqx.filter_jit
def energy(posterior: ws.Posterior, position, momentum) -> jax.Array:
    return 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(momentum)) - posterior.log_density(position)


def draw_momentum(key: jax.Array, position):
    flat, restore = ravel_pytree(position)
    return restore(jax.random.normal(key, flat.shape))


def energy_errors(posterior: ws.Posterior, exact: ws.Posterior, position, size: Sizes) -> Errors:
    """ΔH along a chain of transitions; the end of each is accepted by the density that was followed."""
    errors = []
    for i in range(size.num_transitions):
        key_momentum, key_accept = jax.random.split(jax.random.key(i))
        start = position, draw_momentum(key_momentum, position)
        end = travel(posterior, *start, jnp.asarray(size.num_leapfrog))
        errors.append([float(energy(density, *end) - energy(density, *start)) for density in (posterior, exact)])
        position = end[0] if float(jax.random.uniform(key_accept)) < np.exp(-errors[-1][0]) else position
    return Errors(*np.array(errors).T)


def leapfrog_rate(posterior: ws.Posterior, position, num_steps: int, num_chains: int) -> float:
    """Gradients per second, over all chains, of the leapfrog steps alone; the first of six runs compiles."""
    copies = lambda tree: jax.tree.map(lambda leaf: jnp.stack([leaf] * num_chains), tree)
    positions, momenta = copies(position), copies(draw_momentum(jax.random.key(0), position))
    go = lambda: jax.block_until_ready(travel_together(posterior, positions, momenta, jnp.asarray(num_steps)))
    return num_chains * num_steps / np.median([seconds(go) for _ in range(6)][1:])


def sampler_rate(posterior: ws.Posterior, start: ws.Draws, size: Sizes, num_chains: int) -> float:
    """Gradients per second, over all chains, of `ws.HMC`; the first of two runs compiles."""
    method = hmc(num_chains, size.num_timed, size.num_leapfrog)
    go = lambda: method.run(jax.random.key(1), posterior, init=start)
    return num_chains * size.num_timed * size.num_leapfrog / [seconds(go) for _ in range(2)][1]


def seconds(action) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def operations(num_points: int) -> float:
    return 2 * num_points * NUM_HIDDEN * (2 * NUM_INPUTS + 3 * NUM_CLASSES)


def staged_bytes(num_points: int, precision: str) -> float:
    """Bytes moved when every stage is a kernel of its own: x twice, the hidden layer ten times."""
    return (2 if precision.endswith("float16") else 4) * num_points * (2 * NUM_INPUTS + 10 * NUM_HIDDEN)


def speed_rows(name: str, posterior: ws.Posterior, start: ws.Draws, size: Sizes) -> Iterator[str]:
    position, work = last_position(posterior, start), operations(size.num_points)
    floor = work / RATES[name]
    limits = f"{1 / floor:,.0f} | {1 / (floor + staged_bytes(size.num_points, name) / MEMORY):,.0f}"
    shown = lambda what, n, rate: (
        f"| {name} | {what} | {n} | {rate / n:,.0f} | {rate:,.0f} | {rate * work / 1e12:.0f} |"
    )
    for n in LEAPFROGS[name]:
        yield f"{shown('leapfrog', n, leapfrog_rate(posterior, position, size.num_leapfrog, n))} {limits} |"
    for n in SAMPLERS[name]:
        yield f"{shown('`ws.HMC`', n, sampler_rate(posterior, start, size, n))} {limits} |"


def rounding_row(name: str, errors: Errors) -> str:
    accepted = lambda change: np.mean(np.exp(np.minimum(0.0, -change)))
    columns = (f"{accepted(change):.3f} | {np.abs(change).mean():.2f}" for change in errors)
    return f"| {name} | {' | '.join(columns)} |"


def last_position(posterior: ws.Posterior, draws: ws.Draws):
    return posterior.unconstrain(jax.tree.map(lambda leaf: jnp.asarray(leaf[0, -1]), draws.params))


def settled(posterior: ws.Posterior, size: Sizes) -> ws.Draws:
    """Where the transitions start: a mode, then HMC."""
    mode = ws.MAP(num_steps=size.num_ascent, learning_rate=0.01).run(jax.random.key(2), posterior)
    return hmc(1, size.num_settling, size.num_leapfrog).run(jax.random.key(3), posterior, init=mode)


def header(*columns: str) -> str:
    return f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"


def main() -> None:
    size = sizes()
    targets = posteriors(size.num_points)
    start = settled(targets["default"], size)
    show = functools.partial(print, flush=True)
    device = jax.devices()[0].device_kind
    show(f"{device}, jax {jax.__version__}; {size.num_points:,} points, {size.num_leapfrog} leapfrog steps.")
    show(f"Plain JAX with TF32 on an H200: {PLAIN:,} gradients/s.\n")
    show(header("precision", "acceptance", "mean abs ΔH", "acceptance by float32", "mean abs ΔH of float32"))
    for name in reversed(RATES):
        position = last_position(targets[name], start)
        show(rounding_row(name, energy_errors(targets[name], targets["float32"], position, size)))
    show("\n" + header("precision", "what", "chains", "gradients/s of a chain", "in all", "TFLOP/s", "floor", "staged"))
    for name in reversed(RATES):
        for row in speed_rows(name, targets[name], start, size):
            show(row)


if __name__ == "__main__":
    main()
