"""Full-batch HMC on two CPU cores: gradients and effective samples per second, beside three other libraries.

    python benchmarks/hmc_cpu.py

Digits, a 64-50-50-10 tanh network, a N(0, 1) prior; every contender has the same step size, the same number of leapfrog
steps and the same warmed-up start. Each contender is a process of its own, built and called once before the clock
starts; then all take turns in short rounds, so that whatever else the machine does hits all of them alike. Ratios are
medians over rounds, by the clock and by the processor time of all threads; the second hardly depends on other load. The
bare matrix products of a gradient take their turns too: they are what the compiler's products can do.

Effective samples are the least bulk ESS among the log density and the log probabilities of the first test points.
"""

import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base import array_stats
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import weightscape as ws
from weightscape.inference.mcmc.kernels import hmc  # blackjax's module; importing all of blackjax starts the backend

try:
    import numpyro
    from numpyro import distributions as dist
except ImportError:
    numpyro = None
try:
    import torch
except ImportError:
    torch = None

STEP_SIZE, NUM_LEAPFROG, NUM_CHAINS, NUM_ROUNDS = 0.0125, 50, 8, 6
LAYERS = ("layer0", "layer1", "layer2")
Weights = dict[str, dict[str, Any]]


class Problem(NamedTuple):
    """Data as the network sees them, test points to look at, and warmed-up weights with a leading chain axis."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    start: Weights


class Round(NamedTuple):
    """What a contender did: draws with axes (chain, draw), and how many gradients they took."""

    weights: Weights
    log_density: np.ndarray
    acceptance: float
    num_gradients: int


class AbsentError(Exception):
    """The contender's library is not installed."""


def log_density(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    """The log joint density, written the way a user of JAX would."""
    hidden = x
    for name in LAYERS[:-1]:
        hidden = jnp.tanh(hidden @ weights[name]["weight"] + weights[name]["bias"][None, :])
    logits = hidden @ weights[LAYERS[-1]]["weight"] + weights[LAYERS[-1]]["bias"][None, :]
    log_prior = sum(jax.scipy.stats.norm.logpdf(leaf).sum() for leaf in jax.tree.leaves(weights))
    return jax.nn.log_softmax(logits)[jnp.arange(len(y)), y].sum() + log_prior


class Weightscape:
    """`ws.HMC`, chains sharded over two devices."""

    num_draws, num_devices = 32, 2  # a chain that never moves in a run is left out of it

    def __init__(self, problem: Problem | None):
        dataset = ws.data.load("digits")
        model = ws.Model(ws.networks.MLP(hidden=(50, 50)), ws.likelihoods.Categorical(10), ws.priors.Normal(1.0))
        self.posterior, self.test = model.condition(dataset.train), dataset.test
        settings = {"num_chains": NUM_CHAINS, "step_size": STEP_SIZE, "num_leapfrog": NUM_LEAPFROG}
        self.method = ws.HMC(num_draws=self.num_draws, num_warmup=0, jitter=0.0, **settings)
        warmup = ws.HMC(num_draws=5, num_warmup=60, mass=ws.UnitMass(), **settings)
        self.draws = warmup.run(jax.random.key(0), self.posterior)

    def problem(self) -> Problem:
        start = jax.tree.map(lambda leaf: np.asarray(leaf[:, -1]), self.draws.params.network)
        test = self.test.scaling.inputs(self.test.x[:5]), self.test.y[:5]
        return Problem(*jax.tree.map(np.asarray, (self.posterior.x, self.posterior.y, *test)), start)

    def round(self, index: int) -> Round:
        self.draws = self.method.run(jax.random.key(index), self.posterior, init=self.draws)
        weights = jax.tree.map(np.asarray, self.draws.params.network)
        acceptance = float(self.draws.info["acceptance"].mean())
        return Round(weights, self.draws.log_density, acceptance, NUM_CHAINS * self.num_draws * NUM_LEAPFROG)


class Blackjax:
    """`blackjax.hmc`, vmapped over chains in a compiled scan."""

    num_draws, num_devices = 32, 1

    def __init__(self, problem: Problem):
        x, y = jnp.asarray(problem.x), jnp.asarray(problem.y)
        size = sum(leaf[0].size for leaf in jax.tree.leaves(problem.start))
        kernel = hmc.as_top_level_api(lambda w: log_density(w, x, y), STEP_SIZE, jnp.ones(size), NUM_LEAPFROG)

        @jax.jit
        def sample(key: jax.Array, state: Any) -> tuple[Any, Any]:
            def one(state, key):
                state, info = jax.vmap(kernel.step)(jax.random.split(key, NUM_CHAINS), state)
                return state, (state, info.acceptance_rate)

            return jax.lax.scan(one, state, jax.random.split(key, self.num_draws))

        self.sample, self.state = sample, jax.vmap(kernel.init)(problem.start)

    def round(self, index: int) -> Round:
        self.state, (states, acceptance) = self.sample(jax.random.key(index), self.state)
        chains_first = lambda leaf: np.swapaxes(np.asarray(leaf), 0, 1)
        weights, density = jax.tree.map(chains_first, (states.position, states.logdensity))
        return Round(weights, density, float(acceptance.mean()), NUM_CHAINS * self.num_draws * NUM_LEAPFROG)


class Numpyro:
    """`numpyro.infer.HMC` with one of its chain methods."""

    num_draws, num_devices, num_chains, chain_method = 5, 1, NUM_CHAINS, "vectorized"

    def __init__(self, problem: Problem):
        if numpyro is None:
            raise AbsentError("numpyro")

        def model(x, y):
            weights = {name: {} for name in LAYERS}
            for name in LAYERS:
                for part, leaf in problem.start[name].items():
                    prior = dist.Normal(0.0, 1.0).expand(leaf.shape[1:]).to_event(leaf.ndim - 1)
                    weights[name][part] = numpyro.sample(f"{name}.{part}", prior)
            hidden = x
            for name in LAYERS[:-1]:
                hidden = jnp.tanh(hidden @ weights[name]["weight"] + weights[name]["bias"])
            logits = hidden @ weights[LAYERS[-1]]["weight"] + weights[LAYERS[-1]]["bias"]
            numpyro.sample("y", dist.Categorical(logits=logits), obs=y)

        kernel = numpyro.infer.HMC(
            model,
            step_size=STEP_SIZE,
            num_steps=NUM_LEAPFROG,
            trajectory_length=None,  # its default of 2π would set the step size to 2π / num_steps
            adapt_step_size=False,
            adapt_mass_matrix=False,
        )
        self.sampler = numpyro.infer.MCMC(
            kernel,
            num_warmup=0,
            num_samples=self.num_draws,
            num_chains=self.num_chains,
            chain_method=self.chain_method,
            progress_bar=False,
        )
        self.data = jnp.asarray(problem.x), jnp.asarray(problem.y)
        self.start = {
            f"{name}.{part}": jnp.asarray(leaf[: self.num_chains])
            for name in LAYERS
            for part, leaf in problem.start[name].items()
        }

    def round(self, index: int) -> Round:
        extra = ("potential_energy", "accept_prob")
        self.sampler.run(jax.random.key(index), *self.data, init_params=self.start, extra_fields=extra)
        self.sampler.post_warmup_state = self.sampler.last_state
        samples, notes = self.sampler.get_samples(group_by_chain=True), self.sampler.get_extra_fields(True)
        weights = {
            name: {part: np.asarray(samples[f"{name}.{part}"]) for part in ("weight", "bias")} for name in LAYERS
        }
        num_gradients = self.num_chains * self.num_draws * NUM_LEAPFROG
        return Round(weights, -np.asarray(notes["potential_energy"]), float(notes["accept_prob"].mean()), num_gradients)


class NumpyroParallel(Numpyro):
    """One chain on each of two devices."""

    num_draws, num_devices, num_chains, chain_method = 6, 2, 2, "parallel"


class Torch:
    """PyTorch, eager: one chain and a leapfrog loop."""

    num_draws, num_devices, num_threads = 3, 1, 2

    def __init__(self, problem: Problem):
        if torch is None:
            raise AbsentError("torch")
        torch.set_num_threads(self.num_threads)
        self.x, self.y = torch.tensor(problem.x), torch.tensor(problem.y).long()
        self.position = [torch.tensor(problem.start[n][part][0]) for n in LAYERS for part in ("weight", "bias")]

    def log_density(self, position: list[Any]) -> Any:
        w0, b0, w1, b1, w2, b2 = position
        logits = torch.tanh(torch.tanh(self.x @ w0 + b0) @ w1 + b1) @ w2 + b2
        log_prior = sum(torch.distributions.Normal(0.0, 1.0).log_prob(leaf).sum() for leaf in position)
        return log_prior - torch.nn.functional.cross_entropy(logits, self.y, reduction="sum")

    def gradient(self, position: list[Any]) -> tuple[Any, Any]:
        position = [leaf.detach().requires_grad_() for leaf in position]
        value = self.log_density(position)
        return value.detach(), torch.autograd.grad(value, position)

    def transition(self, position: list[Any]) -> tuple[list[Any], float, float]:
        momentum = [torch.randn_like(leaf) for leaf in position]
        first, gradient = self.gradient(position)
        energy = 0.5 * sum((p**2).sum() for p in momentum) - first
        moved = position
        for _ in range(NUM_LEAPFROG):
            momentum = [p + 0.5 * STEP_SIZE * g for p, g in zip(momentum, gradient, strict=True)]
            moved = [q + STEP_SIZE * p for q, p in zip(moved, momentum, strict=True)]
            value, gradient = self.gradient(moved)
            momentum = [p + 0.5 * STEP_SIZE * g for p, g in zip(momentum, gradient, strict=True)]
        change = energy - (0.5 * sum((p**2).sum() for p in momentum) - value)
        acceptance = float(torch.exp(torch.clamp(change, max=0.0)))
        accepted = float(torch.rand(())) < acceptance
        return (moved, float(value), acceptance) if accepted else (position, float(first), acceptance)

    def round(self, index: int) -> Round:
        draws, densities, acceptances = [], [], []
        for _ in range(self.num_draws):
            self.position, value, acceptance = self.transition(self.position)
            draws.append([leaf.numpy() for leaf in self.position])
            densities.append(value)
            acceptances.append(acceptance)
        leaves = iter([np.stack(leaf)[None] for leaf in zip(*draws, strict=True)])
        weights = {name: {part: next(leaves) for part in ("weight", "bias")} for name in LAYERS}
        # One gradient a transition more than the others take: the one at the start is computed anew.
        return Round(weights, np.array([densities]), float(np.mean(acceptances)), self.num_draws * NUM_LEAPFROG)


class TorchOneThread(Torch):
    """The same without a second thread to wait for."""

    num_draws, num_devices, num_threads = 8, 1, 1


class Products:
    """The matrix products of a gradient and nothing else, batched over the chains of each of two devices."""

    num_gradients, num_devices = 150, 2

    def __init__(self, problem: Problem):
        x = jnp.asarray(problem.x)
        errors = jnp.ones((len(problem.x), 10)) / 100

        def one(weights: tuple) -> tuple:
            w0, w1, w2 = weights
            h1 = x @ w0
            h2 = h1 @ w1
            back3 = errors + h2 @ w2
            back2 = back3 @ w2.T
            back1 = back2 @ w1.T
            return x.T @ back1, h1.T @ back2, h2.T @ back3

        def chains(weights: tuple) -> tuple:
            onwards = lambda _, w: jax.tree.map(lambda leaf, product: leaf + 1e-12 * product, w, jax.vmap(one)(w))
            return jax.lax.fori_loop(0, self.num_gradients, onwards, weights)

        spec = P("chain")
        mesh = Mesh(np.array(jax.devices()), ("chain",))
        self.run = jax.jit(jax.shard_map(chains, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
        self.weights = tuple(jnp.asarray(problem.start[name]["weight"]) for name in LAYERS)

    def round(self, index: int) -> Round:
        jax.block_until_ready(self.run(self.weights))
        return Round({}, np.zeros((1, 1)), 1.0, NUM_CHAINS * self.num_gradients)


PRODUCTS = "bare products"
CONTENDERS: dict[str, Callable[..., Any]] = {
    "weightscape": Weightscape,
    "blackjax": Blackjax,
    "NumPyro, vectorised": Numpyro,
    "NumPyro, parallel": NumpyroParallel,
    "PyTorch, 2 threads": Torch,
    "PyTorch, 1 thread": TorchOneThread,
    PRODUCTS: Products,
}


class Turn(NamedTuple):
    """A round, and the seconds it took by the clock and by the processor."""

    done: Round
    clock: float
    processor: float


def serve(connection: Connection, name: str, problem: Problem | None) -> None:
    """The life of a contender's process: build, say so, then a round for each index that is sent."""
    kind = CONTENDERS[name]
    ws.devices(kind.num_devices)
    try:
        contender = kind(problem)
    except AbsentError as absent:
        connection.send(absent)
        return
    connection.send(contender.problem() if problem is None else problem)
    while (index := connection.recv()) is not None:
        clock, processor = time.monotonic(), time.process_time()
        done = contender.round(index)
        connection.send(Turn(done, time.monotonic() - clock, time.process_time() - processor))


def start(name: str, problem: Problem | None) -> tuple[Connection, Any]:
    """A process for the contender, and what it says first."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    context.Process(target=serve, args=(there, name, problem), daemon=True).start()
    return here, here.recv()


def start_all() -> tuple[dict[str, Connection], Problem]:
    """Connections to the contenders that are installed; the first of them makes the problem."""
    first, problem = start("weightscape", None)
    others = {name: start(name, problem) for name in CONTENDERS if name != "weightscape"}
    here = {name: connection for name, (connection, said) in others.items() if not isinstance(said, AbsentError)}
    return {"weightscape": first, **here}, problem


def ask(connection: Connection, index: int) -> Turn:
    connection.send(index)
    return connection.recv()


def effective_samples(rounds: list[Round], problem: Problem) -> float:
    """The least bulk ESS among the log density and the log probabilities of the test points."""
    join = lambda *leaves: np.concatenate(leaves, axis=1)
    weights = jax.tree.map(join, *(done.weights for done in rounds))
    hidden = problem.test_x
    for name in LAYERS[:-1]:
        hidden = np.tanh(hidden @ weights[name]["weight"] + weights[name]["bias"][..., None, :])
    logits = hidden @ weights[LAYERS[-1]]["weight"] + weights[LAYERS[-1]]["bias"][..., None, :]
    chosen = logits[..., np.arange(len(problem.test_y)), problem.test_y]
    functions = np.moveaxis(chosen - np.log(np.exp(logits).sum(-1)), -1, 0)
    series = [join(*(done.log_density for done in rounds)), *functions]
    return min(float(array_stats.ess(np.asarray(one, float), method="bulk")) for one in series)


def rates(turns: list[Turn], kind: str) -> np.ndarray:
    """Gradients per second of each turn, by "clock" or by "processor"."""
    return np.array([turn.done.num_gradients / getattr(turn, kind) for turn in turns])


def row(name: str, turns: dict[str, list[Turn]], problem: Problem) -> str:
    if name not in turns:
        return f"| {name} | not installed | | | | | | |"
    mine = turns[name]
    over = lambda one, other, kind: np.median(rates(turns[one], kind) / rates(turns[other], kind))
    ratios = [f"{over('weightscape', name, kind):.2f}" for kind in ("clock", "processor")]
    shares = [f"{100 * over(name, PRODUCTS, kind):.0f} %" for kind in ("clock", "processor")]
    speed = f"{np.median(rates(mine, 'clock')):,.0f}"
    if name == PRODUCTS:
        return f"| {name} | {speed} | – | – | {' | '.join(ratios + shares)} |"
    rounds = [turn.done for turn in mine]
    samples = effective_samples(rounds, problem) / sum(turn.clock for turn in mine)
    acceptance = np.mean([done.acceptance for done in rounds])
    return f"| {name} | {speed} | {samples:.2f} | {acceptance:.2f} | {' | '.join(ratios + shares)} |"


def main() -> None:
    connections, problem = start_all()
    first = {name: ask(connection, 0) for name, connection in connections.items()}
    turns: dict[str, list[Turn]] = {name: [] for name in connections}
    for index in range(1, NUM_ROUNDS + 1):
        for name, connection in connections.items():
            turns[name].append(ask(connection, index))
        print(f"round {index} of {NUM_ROUNDS}", file=sys.stderr, flush=True)
    print("| | gradients/s | ESS/s | accept | weightscape ÷ it: clock | processor | of products: clock | processor |")
    print("|---|---|---|---|---|---|---|---|")
    for name in CONTENDERS:
        print(row(name, turns, problem))
    flops = 2 * len(problem.x) * (2 * (64 * 50 + 50 * 50 + 50 * 10) + 50 * 50 + 50 * 10)
    print(f"\nProducts: {max(rates(turns[PRODUCTS], 'processor')) * flops / 1e9:.0f} GFLOP for each second of a core.")
    spent = {name: first[name].processor - np.median([turn.processor for turn in turns[name]]) for name in turns}
    print("Compilation, seconds of a core: " + ", ".join(f"{name} {spent[name]:.0f}" for name in spent) + ".")
    for connection in connections.values():
        connection.send(None)


if __name__ == "__main__":
    main()
