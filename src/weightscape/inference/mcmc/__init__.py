"""Markov chain Monte Carlo."""

from weightscape.inference.mcmc.hmc import HMC

__all__ = ["HMC"]
