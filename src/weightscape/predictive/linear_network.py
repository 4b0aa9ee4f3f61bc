"""A network that is linear in its weights, around the mean of a Gaussian approximation.

    f(x; θ) ≈ f(x; μ) + J(x) (θ − μ),       J(x) = ∂f(x; θ) / ∂θ at μ,        θ ~ N(μ, Σ)

θ is the flat vector of the position, so J runs through the prior's change of coordinates as well; it is zero along
coordinates that the outputs do not depend on, such as a noise scale's.

Reference: Immer, Korzepa and Bauer, Improving predictions of Bayesian neural nets via local linearization (2021).
"""

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core.layout import Layout
from weightscape.inference.gaussian import Covariance, Gaussian
from weightscape.likelihoods import Own
from weightscape.posterior import Joint, Parameters


class LinearNetwork(eqx.Module):
    """What linearisation needs of an approximation; made by `linear_network(approximation)`.

    - `location`: μ.  `covariance`: Σ = R Rᵀ.  `layout`: how a flat vector becomes a position.
    """

    model: Joint
    layout: Layout
    location: Float[Array, " weight"]
    covariance: Covariance

    def parameters(self, vector: Float[Array, " weight"]) -> Parameters:
        """The parameters at the position θ."""
        return self.model.place(self.layout.unflatten(vector)).parameters

    def outputs(self, vector: Float[Array, " weight"], x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
        """f(x; θ), not linearised; what is differentiated at μ."""
        return self.model.network.apply(self.parameters(vector).network, x)

    @eqx.filter_jit
    def own(self) -> Own:
        """The likelihood's own parameters at μ."""
        return self.parameters(self.location).likelihood


def linear_network(approximation: Gaussian) -> LinearNetwork:
    """The parts of an approximation that predictions read: others, such as its data, would compile anew."""
    return LinearNetwork(
        approximation.header.model, approximation.layout, approximation.location, approximation.covariance
    )
