"""Methods by lower-case name, for the command line."""

from weightscape.core.checks import require_known
from weightscape.inference.mcmc import HMC, MALA, MCLMC, NUTS, MetropolisHastings, ParallelTempering
from weightscape.inference.method import Method
from weightscape.inference.point import MAP, DeepEnsemble
from weightscape.inference.sgmcmc import SGHMC, SGLD, SGNHT, ULA

METHODS: dict[str, type[Method]] = {
    "ensemble": DeepEnsemble,
    "hmc": HMC,
    "mala": MALA,
    "map": MAP,
    "mclmc": MCLMC,
    "metropolishastings": MetropolisHastings,
    "nuts": NUTS,
    "paralleltempering": ParallelTempering,
    "sghmc": SGHMC,
    "sgld": SGLD,
    "sgnht": SGNHT,
    "ula": ULA,
}


def method_class(name: str) -> type[Method]:
    """The method of that name."""
    require_known("The method", name, METHODS)
    return METHODS[name]
