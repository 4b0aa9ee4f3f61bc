"""Flipout: one draw of the weights, whose deviation from the mean gets other signs at each point.

    z_p = h_p μ + ((h_p ∘ r_p) ΔW) ∘ s_p,        r_p, s_p random signs,  ΔW = W − μ

Where the entries of ΔW are independent and symmetric, ΔW ∘ (r sᵀ) has the law of ΔW, so each point sees weights from q;
different points see uncorrelated ones. A point's signs are the same at all its positions, so convolutions are exact.

Reference: Wen, Vicol, Ba, Tran & Grosse (2018), Flipout, equation 4. The bias gets the signs s too.
"""

from typing import Any

import jax
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
from weightscape.networks import LayerCall
from weightscape.posterior import Posterior


@registered("variational.Flipout")
class Flipout(Estimator):
    """Signs for each point; for independent weights of a symmetric law (`MeanFieldVI` with any family)."""

    def pointwise(
        self, key: PRNGKey, guide: Guide, vector: Vector, rows: Posterior, layout: Layout
    ) -> Float[Array, " point"]:
        assert isinstance(guide, MomentGuide)
        covered = _covered(rows, layout)
        means, shifts = WeightNumbers(guide.location, layout), WeightNumbers(vector - guide.location, layout)
        noisy = lambda key, call: _flipped(key, call, means, shifts)
        return pointwise_with(key, rows, covered, vector, layout, noisy)

    def facts(self, posterior: Posterior, layout: Layout) -> dict[str, Any]:
        covered = _covered(posterior, layout)
        require_some(covered, "Flipout")
        return covered.facts("Flipout")


def _covered(posterior: Posterior, layout: Layout) -> Covered:
    return covered_layers(posterior, layout, lambda layer: "")


def _flipped(key: PRNGKey, call: LayerCall, means: WeightNumbers, shifts: WeightNumbers) -> Array:
    """One layer's outputs."""
    key_incoming, key_outgoing = jax.random.split(key)
    points, _, num_incoming = call.incoming.shape
    # A convolution reads channels: all weights of one channel share a sign, which leaves their law as it is.
    incoming = jax.random.rademacher(key_incoming, (points, 1, num_incoming), call.incoming.dtype)
    outgoing = jax.random.rademacher(key_outgoing, (points, 1, call.layer.num_outputs), call.incoming.dtype)
    noise = call.transformed(lambda h: h * incoming).linear(*shifts.of(call))
    return call.linear(*means.of(call)) + noise * outgoing
