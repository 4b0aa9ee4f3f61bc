"""Annealing without a flow, at several settings: what the landings of `exact_posterior` have to beat.

    python -m experiments.annealing_alone

A pull of nothing, and a landing from time 0.01 on: HMC annealed from the prior to the posterior of breast cancer. One
row a setting, with J on chains of HMC.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from experiments.exact.settings import CASES

import weightscape as ws
from weightscape.draws import Header
from weightscape.flow import Diffusion, Landing
from weightscape.flow.swing import stiffness_of
from weightscape.flow.target import Target
from weightscape.flow.training_set import training_set
from weightscape.symmetry import discover

BENDS = (1.5, 2.0, 3.0)
STEP_SIZES = (0.064, 0.1, 0.13)
NUM_LEVELS = 256


class NoPull(eqx.Module):
    """Nothing, with a curvature for the masses of the landing."""

    values: jax.Array

    def __call__(self, time: jax.Array, z: jax.Array) -> jax.Array:
        return jnp.zeros_like(z)

    def curvature(self, time: jax.Array) -> jax.Array:
        return self.values


def main() -> None:
    posterior, method = CASES["breast_cancer"].posterior(), ws.FlowMatching()
    kernel = ws.HMC(num_chains=128, num_draws=4, num_warmup=300, num_leapfrog=64, thin=5)
    draws = kernel.run(jax.random.key(0), posterior)
    assert isinstance(draws, ws.Draws)
    target = Target(posterior, method.source(posterior))
    given = training_set(target.source, draws, 0.1)
    labels = method.architecture.labels(discover(posterior))
    model = NoPull(stiffness_of(given.train, target.gradients(given.train), labels).values)
    flow = method.flow(Header.of(posterior), posterior, model, target.source)
    for bend in BENDS:
        for step_size in STEP_SIZES:
            landing = Landing(time=0.01, num_levels=NUM_LEVELS, step_size=step_size, bend=bend)
            gap = Diffusion(flow, 1, landing=landing).gap(jax.random.key(1), draws[:, :1], num_draws=128)
            print(f"| {bend} | {step_size} | {gap.value:.2f} ± {gap.standard_error:.2f} |", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "highest")
    main()
