"""Does warm-up meet the acceptance it aims at? Stan's damping of dual averaging against ours, in one run.

    .venv/bin/python benchmarks/warmup.py

Prints, for two posteriors and a target of 0.8, the acceptance after 500 transitions of warm-up and the step size.
"""

from unittest import mock

import jax
import numpy as np

import weightscape as ws
from weightscape.inference.mcmc import warmup


def regression() -> ws.Posterior:
    x = np.random.default_rng(0).normal(size=(60, 40)) * np.geomspace(0.1, 3.0, 40)
    model = ws.Model(ws.networks.MLP(hidden=()), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(x, x[:, 0]))


def iris() -> ws.Posterior:
    model = ws.Model(ws.networks.MLP(hidden=(16,)), ws.likelihoods.Categorical(3), ws.priors.Normal(1.0))
    return model.condition(ws.data.load("iris").train)


def main() -> None:
    ws.devices()
    method = ws.HMC(num_chains=8, num_draws=100, num_warmup=500, num_leapfrog=16)
    print("| posterior | damping | acceptance | step size |\n|---|---|---|---|")
    for name, posterior in (("regression, 41 weights", regression()), ("iris 4-16-3", iris())):
        for damping in (0.05, warmup._DAMPING):
            jax.clear_caches()  # the damping is a constant of the program
            with mock.patch.object(warmup, "_DAMPING", damping):
                info = method.run(jax.random.key(0), posterior).info
            print(
                f"| {name} | {damping} | {info['acceptance'].mean():.3f} | {info['step_size'].mean():.3f} |", flush=True
            )


if __name__ == "__main__":
    main()
