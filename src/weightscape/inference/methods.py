"""Methods by lower-case name, for the command line."""

from weightscape.core.checks import require_known
from weightscape.inference.laplace import Laplace
from weightscape.inference.mcmc import HMC, MALA, MCLMC, NUTS, MetropolisHastings, ParallelTempering
from weightscape.inference.method import Method
from weightscape.inference.neural_linear import NeuralLinear
from weightscape.inference.point import MAP, SWAG, DeepEnsemble, Population
from weightscape.inference.sgmcmc import SGHMC, SGLD, SGNHT, ULA
from weightscape.inference.variational import LayerwiseVI, MeanFieldVI, NormalizingFlowVI

METHODS: dict[str, type[Method]] = {
    "ensemble": DeepEnsemble,
    "hmc": HMC,
    "laplace": Laplace,
    "layerwisevi": LayerwiseVI,
    "mala": MALA,
    "map": MAP,
    "mclmc": MCLMC,
    "meanfieldvi": MeanFieldVI,
    "metropolishastings": MetropolisHastings,
    "neurallinear": NeuralLinear,
    "normalizingflowvi": NormalizingFlowVI,
    "nuts": NUTS,
    "paralleltempering": ParallelTempering,
    "population": Population,
    "sghmc": SGHMC,
    "sgld": SGLD,
    "sgnht": SGNHT,
    "swag": SWAG,
    "ula": ULA,
    "vi": MeanFieldVI,
}


def method_class(name: str) -> type[Method]:
    """The method of that name."""
    require_known("The method", name, METHODS)
    return METHODS[name]
