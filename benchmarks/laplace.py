"""Laplace approximations beside laplace-torch: the same network, the same weights, numbers and times.

    python benchmarks/laplace.py [--rounds 5]

Digits with a 64-50-50-10 tanh network and UCI energy with an 8-50-1 one, both trained here; the trained weights are
put into PyTorch. For each structure: how far the posterior variances are from those of laplace-torch (Gauss–Newton
curvature; both in double precision), the negative log density of the test rows under the linearised predictive of
both, and the times of fitting the curvature and of predicting, in single precision. The two take turns, round by round;
ratios are medians over rounds. "First" times of ours hold the compilation. Where torch or laplace-torch is absent, or
has no such structure, only ours is shown.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import weightscape as ws
from weightscape.inference.laplace import FullStructure, KroneckerStructure, LowRankStructure

sys.path = [path for path in sys.path if not path.endswith("benchmarks")]  # this file has the name of the peer
try:
    import torch
    from laplace import Laplace as TorchLaplace
except ImportError:
    torch = None

KEY = jax.random.key(0)
PRIOR_SCALE, NOISE = 1.0, 0.3
STRUCTURES = {
    "full": ("full", FullStructure()),
    "kronecker": ("kron", KroneckerStructure(joint_bias=False)),
    "diagonal": ("diag", "diagonal"),
    "low rank": ("lowrank", LowRankStructure(rank=20)),
}


class Problem(NamedTuple):
    """A trained model: the posterior, its mode, standardised test inputs, and test targets in original units."""

    name: str
    posterior: Any
    mode: Any
    test: Any


def digits() -> Problem:
    data = ws.data.load("digits")
    network = ws.networks.MLP(hidden=(50, 50), activation="tanh")
    return trained("digits 64-50-50-10", data, network, ws.likelihoods.Categorical(10))


def energy() -> Problem:
    data = ws.data.load("energy")
    network = ws.networks.MLP(hidden=(50,), activation="tanh")
    return trained("UCI energy 8-50-1", data, network, ws.likelihoods.Gaussian(NOISE))


def trained(name: str, data: Any, network: Any, likelihood: Any) -> Problem:
    posterior = ws.Model(network, likelihood, ws.priors.Normal(PRIOR_SCALE)).condition(data.train)
    return Problem(name, posterior, ws.MAP(num_steps=3000).run(KEY, posterior), data.test)


class Ours:
    """weightscape, from a mode that is given."""

    def __init__(self, problem: Problem, structure: Any):
        self.problem, self.method = problem, ws.Laplace(structure)

    def fit(self) -> None:
        self.found = self.method.run(KEY, self.problem.posterior, init=self.problem.mode)
        jax.block_until_ready(self.found.covariance)

    def predict(self) -> float:
        predictive = ws.predict_linearised(self.found, self.problem.test.x)
        return -float(np.mean(predictive.log_density(self.problem.test.y)))

    def variances(self) -> np.ndarray:
        return np.asarray(self.found.covariance.diagonal(), np.float64)


class Torchs:
    """laplace-torch, with the same weights in a `torch.nn.Sequential`."""

    def __init__(self, problem: Problem, structure: str):
        posterior, params = problem.posterior, problem.mode.params.network
        self.problem, self.is_regression = problem, posterior.model.likelihood.task == "regression"
        layers = [jax.tree.map(lambda leaf: np.asarray(leaf)[0, 0], params[f"layer{i}"]) for i in range(len(params))]
        modules, dtype = [], torch.tensor(layers[0]["weight"]).dtype
        for i, layer in enumerate(layers):
            linear = torch.nn.Linear(*layer["weight"].shape, dtype=dtype)
            linear.weight.data = torch.tensor(layer["weight"].T.copy())
            linear.bias.data = torch.tensor(layer["bias"].copy())
            modules += [linear] if i == len(layers) - 1 else [linear, torch.nn.Tanh()]
        y = torch.tensor(np.asarray(posterior.y))
        rows = torch.utils.data.TensorDataset(
            torch.tensor(np.asarray(posterior.x)), y[:, None] if self.is_regression else y.long()
        )
        self.loader = torch.utils.data.DataLoader(rows, batch_size=len(rows))
        self.model, self.structure = torch.nn.Sequential(*modules), structure
        self.shapes = [(layer["bias"].size, layer["weight"].shape) for layer in layers]

    def fit(self) -> None:
        task = "regression" if self.is_regression else "classification"
        noise = {"sigma_noise": NOISE} if self.is_regression else {}
        self.found = TorchLaplace(self.model, task, "all", self.structure, prior_precision=1 / PRIOR_SCALE**2, **noise)
        self.found.fit(self.loader)

    def predict(self) -> float:
        posterior, test = self.problem.posterior, self.problem.test
        x = np.asarray(test.x if posterior.scaling is None else posterior.scaling.inputs(test.x))
        if not self.is_regression:
            p = self.found(torch.tensor(x), link_approx="probit").detach().numpy()
            return -float(np.mean(np.log(p[np.arange(len(p)), np.asarray(test.y)])))
        mean, variance = (part.detach().numpy().reshape(-1) for part in self.found(torch.tensor(x)))
        y = np.asarray(posterior.scaling.targets(test.y))
        total = variance + NOISE**2
        nll = 0.5 * np.mean((y - mean) ** 2 / total + np.log(2 * np.pi * total))
        return float(nll + posterior.scaling.log_target_scale())

    def variances(self) -> np.ndarray:
        """In our order: of each layer the bias, then the weights as (inputs, units)."""
        if self.structure == "full":
            flat = torch.diagonal(self.found.posterior_covariance).numpy()
        elif self.structure == "diag":
            flat = self.found.posterior_variance.numpy()
        else:
            flat = self.found.posterior_precision.diag(exponent=-1).numpy()
        return in_our_order(flat, self.shapes)


def in_our_order(flat: np.ndarray, shapes: list[tuple[int, tuple[int, int]]]) -> np.ndarray:
    parts, start = [], 0
    for num_biases, (inputs, units) in shapes:
        weights = flat[start : start + inputs * units].reshape(units, inputs).T
        start += inputs * units
        parts += [flat[start : start + num_biases], weights.ravel()]
        start += num_biases
    return np.concatenate(parts).astype(np.float64)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def contest(problem: Problem, name: str, num_rounds: int) -> str:
    theirs_name, ours_structure = STRUCTURES[name]
    ours = Ours(problem, ours_structure)
    first_fit, first_predict = timed(ours.fit)[0], timed(ours.predict)[0]
    theirs = theirs_or_none(problem, theirs_name)
    rounds = []
    for _ in range(num_rounds):
        of_ours = [timed(ours.fit)[0], *timed(ours.predict)]
        of_theirs = [timed(theirs.fit)[0], *timed(theirs.predict)] if theirs else [np.nan] * 3
        rounds.append([*of_ours, *of_theirs])
    fit, predict, nll, their_fit, their_predict, their_nll = np.median(np.asarray(rounds, float), axis=0)
    ratio, predict_ratio = (np.median([r[i + 3] / r[i] for r in rounds]) for i in (0, 1))
    agreement = f"{difference(problem, name):.1e}" if theirs else "–"
    fits = f"{first_fit:.2f} | {fit:.3f} | {their_fit:.3f} | {ratio:.2f}"
    predictions = f"{first_predict:.2f} | {predict:.3f} | {their_predict:.3f} | {predict_ratio:.2f}"
    return f"| {problem.name} | {name} | {agreement} | {nll:.4f} | {their_nll:.4f} | {fits} | {predictions} |"


def theirs_or_none(problem: Problem, structure: str) -> "Torchs | None":
    if torch is None:
        return None
    theirs = Torchs(problem, structure)
    try:
        theirs.fit()
    except ImportError:  # the low-rank one needs a package that is on no registry
        return None
    return theirs


def difference(problem: Problem, name: str) -> float:
    """The largest relative difference of posterior variances, both in double precision."""
    theirs_name, ours_structure = STRUCTURES[name]
    with jax.enable_x64(True):
        old, wide = problem.posterior, lambda leaf: np.asarray(leaf, np.float64)
        y = np.asarray(old.y) if old.model.likelihood.task == "classification" else wide(old.y)
        likelihood = (
            old.model.likelihood if old.model.likelihood.task == "classification" else ws.likelihoods.Gaussian(NOISE)
        )
        model = ws.Model(old.model.network, likelihood, ws.priors.Normal(PRIOR_SCALE))
        posterior = model.condition(ws.Batch(wide(old.x), y))
        position = jax.tree.map(lambda leaf: jnp.asarray(wide(leaf)[0, 0]), problem.mode.params)
        doubled = Problem(problem.name, posterior, ws.point(posterior, position), problem.test)
        torch.set_default_dtype(torch.float64)  # laplace-torch sums its full matrix in the default type
        ours, theirs = Ours(doubled, ours_structure), Torchs(doubled, theirs_name)
        ours.fit(), theirs.fit()
        found = float(np.max(np.abs(ours.variances() / theirs.variances() - 1)))
        torch.set_default_dtype(torch.float32)
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    num_rounds = parser.parse_args().rounds
    warnings.filterwarnings("ignore")
    print(f"jax {jax.__version__}, torch {torch.__version__ if torch else 'absent'}, {jnp.ones(()).device}")
    print("| problem | structure | variances differ by | NLL | NLL, torch | first fit, s | fit, s | torch fit, s | "
          "torch / ours | first predict, s | predict, s | torch predict, s | torch / ours |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for problem, names in ((energy(), STRUCTURES), (digits(), ("kronecker", "low rank", "diagonal"))):
        for name in names:
            print(contest(problem, name, num_rounds), flush=True)


if __name__ == "__main__":
    main()
