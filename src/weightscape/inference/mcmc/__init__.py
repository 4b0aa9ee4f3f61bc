"""Markov chain Monte Carlo."""

from weightscape.inference.mcmc.hmc import HMC
from weightscape.inference.mcmc.ladder_evidence import ladder_evidence
from weightscape.inference.mcmc.mala import MALA
from weightscape.inference.mcmc.mass import DiagonalMass, LowRankMass, Mass, UnitMass
from weightscape.inference.mcmc.mclmc import MCLMC
from weightscape.inference.mcmc.metropolis import MetropolisHastings
from weightscape.inference.mcmc.nuts import NUTS
from weightscape.inference.mcmc.proposals import Flip, Proposal, RandomWalk
from weightscape.inference.mcmc.tempering import ParallelTempering

__all__ = [
    "HMC",
    "MALA",
    "MCLMC",
    "NUTS",
    "DiagonalMass",
    "Flip",
    "LowRankMass",
    "Mass",
    "MetropolisHastings",
    "ParallelTempering",
    "Proposal",
    "RandomWalk",
    "UnitMass",
    "ladder_evidence",
]
