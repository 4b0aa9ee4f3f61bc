"""The approximation that a normalising flow ends in: independent draws, each with its exact density.

θ = T(z),   z ~ N(0, I),      log q(θ) = log N(T⁻¹(θ)) − log |det ∂T|
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from weightscape.core import PRNGKey, Scalar
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_files import storable
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.variational.coupling_flow import CouplingGuide, FlowSizes, layer_arrays, layers_of
from weightscape.posterior import Position, Posterior


class FlowApproximation(Approximation):
    """A coupling flow over positions; made by `NormalizingFlowVI`.

    - `guide`: the flow over flat vectors, in the order of `layout`.
    """

    header: Header
    posterior: Posterior | None
    estimate: LogEvidence | None = eqx.field(static=True)
    facts: Facts = eqx.field(static=True)
    guide: CouplingGuide
    layout: Layout

    def __check_init__(self):
        came, remedy = self.guide.location.size, "Pass a flow over all weights of the model."
        require(came == self.layout.size, f"A flow must be over {self.layout.size} weights", came, remedy)

    @property
    def is_proper(self) -> bool:
        return True

    def sample_position(self, key: PRNGKey) -> Position:
        return self.layout.unflatten(self.guide.sample_and_log_density(key)[0])

    def log_density(self, position: Position) -> Scalar:
        return self.guide.log_density(self.layout.flatten(position))


def _stored(flow: FlowApproximation) -> dict[str, Any]:
    guide, arrays = flow.guide, layer_arrays(flow.guide.layers)
    num_layers, width = arrays["hidden_bias"].shape
    sizes = {"num_layers": num_layers, "width": width}
    return {"location": guide.location, "log_scale": guide.log_scale, "layers": arrays, **sizes}


def _rebuild(parts: dict[str, Any], header: Header, posterior: Posterior | None) -> FlowApproximation:
    location, log_scale = jnp.asarray(parts["location"]), jnp.asarray(parts["log_scale"])
    sizes = FlowSizes(location.size, parts["num_layers"], parts["width"])
    guide = CouplingGuide(location, log_scale, layers_of(parts["layers"], sizes, location.dtype))
    return FlowApproximation(header, posterior, parts["estimate"], parts["facts"], guide, header.layout())


storable("FlowApproximation", FlowApproximation, _stored, _rebuild)
