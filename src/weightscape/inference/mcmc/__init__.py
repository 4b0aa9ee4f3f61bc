"""Markov chain Monte Carlo."""

from weightscape.inference.mcmc.hmc import HMC
from weightscape.inference.mcmc.metropolis import MetropolisHastings
from weightscape.inference.mcmc.proposals import Flip, Proposal, RandomWalk

__all__ = ["HMC", "Flip", "MetropolisHastings", "Proposal", "RandomWalk"]
