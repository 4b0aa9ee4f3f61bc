"""Estimates of the expected log likelihood: how the weights that each data point sees are drawn from q.

    E_q[log p(D | θ)] = Σ_i E_q[log p(y_i | f(x_i; θ))]

Each term needs a draw of its own only in law: whether points share one draw changes the variance of the estimate and
of its gradient, never their expectation.
"""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.layout import Layout
from weightscape.inference.variational.guide import Guide, Vector
from weightscape.posterior import Posterior


class Estimator(eqx.Module):
    """How points get their weights."""

    @abc.abstractmethod
    def pointwise(
        self, key: PRNGKey, guide: Guide, vector: Vector, rows: Posterior, layout: Layout
    ) -> Float[Array, " point"]:
        """log p(y_i | f(x_i; θ_i)) for the points of `rows`, each θ_i ~ q; `vector` is one draw that they may share."""

    @abc.abstractmethod
    def facts(self, posterior: Posterior, layout: Layout) -> dict[str, Any]:
        """What it does to which weights; raises where it cannot be used."""


@registered("variational.Reparameterised")
class Reparameterised(Estimator):
    """All points see the same draw θ = T(noise; φ).

    Reference: Kingma & Welling (2014), Auto-encoding variational Bayes, section 2.4.
    """

    def pointwise(
        self, key: PRNGKey, guide: Guide, vector: Vector, rows: Posterior, layout: Layout
    ) -> Float[Array, " point"]:
        return rows.pointwise_log_likelihood(rows.constrain(layout.unflatten(vector)))

    def facts(self, posterior: Posterior, layout: Layout) -> dict[str, Any]:
        return {}
