"""Units: targets on their way to the likelihood and results on their way back.

    y' = (y − y_mean) / y_scale,        a quantile z' of y' is y_mean + y_scale z' of y

Inside, numbers always have shape (point, target); outside, they have the shape of the targets that were trained on.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Shaped

from weightscape.core.checks import require, require_finite, require_type, shape_of
from weightscape.data import Scaling
from weightscape.likelihoods import as_columns
from weightscape.predictive.marginal import Density


class Units(eqx.Module):
    """The change of units and of shape.

    - `scaling`: how the likelihood sees targets, or None where it sees them as they are.
    - `example_y`: targets of an example, for their shape.
    """

    scaling: Scaling | None
    example_y: Shaped[Array, "example ..."]

    def check(self, y: ArrayLike | list, likelihood: Density, num_points: int) -> Shaped[Array, "point ..."]:
        """`y` as an array with one target for each point; labels must lie in the likelihood's range."""
        values = np.asarray(y)
        remedy = "Pass numbers; labels as the whole numbers 0, 1, …"
        require_type(values.dtype.kind in "fiub", "`y` must hold numbers", f"type {values.dtype}", remedy)
        wanted = (num_points, *shape_of(self.example_y)[1:])
        remedy = "Pass one target for each predicted point, shaped as in training."
        require(shape_of(values) == wanted, f"`y` must have shape {wanted}", shape_of(values), remedy)
        require_finite("`y`", values)
        if likelihood.task == "regression":
            values = values.astype(jnp.result_type(float))
        likelihood.check_targets(jnp.asarray(values))
        return jnp.asarray(values)

    def to_network(self, y: Shaped[Array, "point ..."]) -> Shaped[Array, "point ..."]:
        """Targets as the likelihood sees them."""
        return y if self.scaling is None else self.scaling.targets(y)

    def to_network_columns(self, y: Float[Array, "point ..."]) -> Float[Array, "point target"]:
        """Numbers as the likelihood sees them, with a target axis."""
        return as_columns(self.to_network(y))

    def values(self, columns: Float[Array, "*axes target"]) -> Float[Array, "*result"]:
        """Means, quantiles or samples in original units, shaped like the targets."""
        values = self.without_columns(columns)
        return values if self.scaling is None else self.scaling.unscale_mean(values)

    def spreads(self, columns: Float[Array, "*axes target"]) -> Float[Array, "*result"]:
        """Standard deviations and other lengths in original units, shaped like the targets."""
        spreads = self.without_columns(columns)
        return spreads if self.scaling is None else self.scaling.unscale_std(spreads)

    def log_densities(self, densities: Float[Array, " point"]) -> Float[Array, " point"]:
        """Log densities over original units: log p(y) = log p(y') − Σ log y_scale."""
        return densities if self.scaling is None else densities - self.scaling.log_target_scale()

    def without_columns(self, columns: Float[Array, "*axes target"]) -> Float[Array, "*result"]:
        """Unitless results shaped like the targets: no last axis where these are single numbers."""
        return columns[..., 0] if self.example_y.ndim == 1 else columns
