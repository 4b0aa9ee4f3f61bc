"""Langevin and Hamiltonian dynamics without rejection, on minibatches."""

from weightscape.inference.sgmcmc.gradient_noise import GradientNoise, HalfBatchNoise, KnownNoise
from weightscape.inference.sgmcmc.preconditioners import Identity, Preconditioner, RMSprop
from weightscape.inference.sgmcmc.schedules import Constant, Cyclical, PolynomialDecay, StepSize
from weightscape.inference.sgmcmc.sghmc import SGHMC
from weightscape.inference.sgmcmc.sgld import SGLD
from weightscape.inference.sgmcmc.sgnht import SGNHT
from weightscape.inference.sgmcmc.ula import ULA
from weightscape.inference.sgmcmc.warm_restarts import WarmRestarts

__all__ = [
    "SGHMC",
    "SGLD",
    "SGNHT",
    "ULA",
    "Constant",
    "Cyclical",
    "GradientNoise",
    "HalfBatchNoise",
    "Identity",
    "KnownNoise",
    "PolynomialDecay",
    "Preconditioner",
    "RMSprop",
    "StepSize",
    "WarmRestarts",
]
