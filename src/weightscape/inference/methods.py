"""Methods by lower-case name, for the command line."""

from weightscape.core.checks import require_known
from weightscape.inference.mcmc import HMC, MetropolisHastings
from weightscape.inference.method import Method
from weightscape.inference.point import MAP, DeepEnsemble

METHODS: dict[str, type[Method]] = {
    "ensemble": DeepEnsemble,
    "hmc": HMC,
    "map": MAP,
    "metropolishastings": MetropolisHastings,
}


def method_class(name: str) -> type[Method]:
    """The method of that name."""
    require_known("The method", name, METHODS)
    return METHODS[name]
