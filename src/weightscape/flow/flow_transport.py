"""A flow, or its diffusion, as a transport of a standard normal, for annealing."""

from jaxtyping import Array, Float

from weightscape.core import Scalar
from weightscape.core.checks import require_type
from weightscape.flow.correction.transport import Transport
from weightscape.flow.diffusion import Diffusion
from weightscape.flow.flow import Flow
from weightscape.flow.source import WhitenedSource
from weightscape.posterior import Position


class FlowTransport(Transport):
    """The map of a flow whose source is a standard normal."""

    flow: Flow

    def __init__(self, flow: Flow):
        came = type(flow.source).__name__
        asked = "A flow that is annealed must start from a standard normal"
        require_type(
            isinstance(flow.source, WhitenedSource), asked, came, "Use a normal prior, or prediction=OfPull()."
        )
        self.flow = flow.bare()

    @property
    def num_weights(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  AbstractVar allows it
        """The length of a vector."""
        return self.flow.num_weights

    def push(self, z: Float[Array, " weight"]) -> tuple[Position, Scalar]:
        return self.flow.push(z)


class DiffusionTransport(Transport):
    """The map of a diffusion, from all noises of a path to its end."""

    diffusion: Diffusion

    def __init__(self, diffusion: Diffusion):
        self.diffusion = diffusion.bare()

    @property
    def num_weights(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  AbstractVar allows it
        """The length of a path's noise."""
        return self.diffusion.num_noises

    def push(self, z: Float[Array, " weight"]) -> tuple[Position, Scalar]:
        return self.diffusion.push(z)
