"""HMC's settings as one transition, for those who run chains in another way than HMC does."""

import jax.numpy as jnp

from weightscape.inference import HMC
from weightscape.inference.mcmc.length import Duration, Steps
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.posterior import Posterior


def hamiltonian(kernel: HMC, posterior: Posterior) -> Hamiltonian:
    """The transition that `kernel` would make on `posterior`, at its temperature and of its length."""
    fixed, given = Steps(jnp.asarray(kernel.num_leapfrog), kernel.jitter), kernel.trajectory
    length = fixed if given is None else Duration(given, kernel.jitter)
    return Hamiltonian(posterior.at_temperature(kernel.temperature), length)
