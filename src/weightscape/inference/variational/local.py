"""Local reparameterisation: noise in what a layer computes, in place of noise in its weights.

    z_po ~ N(Σ_i h_pi μ_io, Σ_i h_pi² s_io²)        for each point p, where W_io ~ N(μ_io, s_io²)

For one point this is the law of h W exactly, and points have independent noise: a batch of B averages B draws, where a
shared W is one draw, so the gradient's variance falls with B. It is exact where a layer is used once for each point. At
several positions the same weights make dependent outputs, and such a layer's weights are drawn once for all points.

Reference: Kingma, Salimans & Welling (2015), Variational dropout and the local reparameterization trick, equation 6.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.layout import Layout
from weightscape.inference.variational.estimator import Estimator
from weightscape.inference.variational.guide import Guide, MomentGuide, Vector
from weightscape.inference.variational.layer_noise import (
    Covered,
    WeightNumbers,
    covered_layers,
    pointwise_with,
    require_some,
)
from weightscape.networks import LayerCall, LinearLayer
from weightscape.posterior import Posterior


@registered("variational.LocalReparameterised")
class LocalReparameterised(Estimator):
    """Outputs of linear layers drawn for each point; for independent normal weights (`MeanFieldVI`)."""

    def pointwise(
        self, key: PRNGKey, guide: Guide, vector: Vector, rows: Posterior, layout: Layout
    ) -> Float[Array, " point"]:
        assert isinstance(guide, MomentGuide)
        covered = _covered(rows, layout)
        means, variances = WeightNumbers(guide.location, layout), WeightNumbers(guide.variance(), layout)
        noisy = lambda key, call: _drawn(key, call, means, variances)
        return pointwise_with(key, rows, covered, vector, layout, noisy)

    def facts(self, posterior: Posterior, layout: Layout) -> dict[str, Any]:
        covered = _covered(posterior, layout)
        require_some(covered, "LocalReparameterised")
        return covered.facts("LocalReparameterised")


def _covered(posterior: Posterior, layout: Layout) -> Covered:
    return covered_layers(posterior, layout, _refused)


def _drawn(key: PRNGKey, call: LayerCall, means: WeightNumbers, variances: WeightNumbers) -> Array:
    """One layer's outputs."""
    mean = call.linear(*means.of(call))
    variance = call.transformed(jnp.square).linear(*variances.of(call))
    # A layer that sees only zeros has no variance, and the root no slope there.
    spread = jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny))
    return mean + spread * jax.random.normal(key, mean.shape, mean.dtype)


def _refused(layer: LinearLayer) -> str:
    return "" if layer.num_positions == 1 else f"its weights are used at {layer.num_positions} positions"
