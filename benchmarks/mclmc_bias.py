"""How biased is MCLMC, which rejects nothing? The variances of a linear regression, whose posterior is known.

    .venv/bin/python benchmarks/mclmc_bias.py

40 weights with inputs of different scales. For each wanted energy variance prints the step size, the mean over weights
of (variance of the draws / true variance − 1) with its Monte-Carlo error.
"""

import jax
import numpy as np

import weightscape as ws


def regression() -> tuple[ws.Posterior, np.ndarray, np.ndarray]:
    """The posterior, its mean and its variances."""
    x = np.random.default_rng(0).normal(size=(60, 40)) * np.geomspace(0.1, 3.0, 40)
    network = ws.networks.MLP(hidden=(), bias=False)
    model = ws.Model(network, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    covariance = np.linalg.inv(x.T @ x / 0.25 + np.eye(40))
    return model.condition(ws.Batch(x, x[:, 0])), covariance @ x.T @ x[:, 0] / 0.25, np.diag(covariance)


def main() -> None:
    ws.devices()
    posterior, mean, variance = regression()
    print("| energy variance | step size | bias of variances | error |\n|---|---|---|---|")
    for wanted in (1e-2, 2e-3, 5e-4, 1e-4):
        method = ws.MCLMC(num_chains=32, num_draws=1500, num_warmup=3000, energy_variance=wanted)
        draws = method.run(jax.random.key(0), posterior, init=ws.MAP(num_steps=1000))
        weights = np.asarray(draws.params.network["layer0"]["weight"], np.float64)[..., 0]
        by_chain = np.mean((weights - mean) ** 2 / variance - 1, axis=(1, 2))
        error = by_chain.std(ddof=1) / np.sqrt(len(by_chain))
        step_size = float(np.mean(draws.info["step_size"]))
        print(f"| {wanted:g} | {step_size:.2f} | {100 * by_chain.mean():.1f} % | {100 * error:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
