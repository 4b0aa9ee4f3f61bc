"""Links: from the Gaussian law of the outputs to a distribution of targets."""

from weightscape.predictive.links.exact import Exact
from weightscape.predictive.links.laplace_bridge import LaplaceBridge
from weightscape.predictive.links.link import Link
from weightscape.predictive.links.probit import Probit
from weightscape.predictive.links.samples import FunctionSamples

__all__ = ["Exact", "FunctionSamples", "LaplaceBridge", "Link", "Probit"]
