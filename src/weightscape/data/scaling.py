"""Scaling: the change of units between the user and the network.

Inputs and regression targets are standardised with the statistics of the training part only,

    x' = (x − x_mean) / x_scale        y' = (y − y_mean) / y_scale.

A density of scaled targets becomes one in original units through the Jacobian of this map:
log p(y) = log p(y') − Σ log y_scale, where the sum runs over the outputs.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Shaped

from weightscape.core.checks import require, require_known
from weightscape.core.config import registered

TASKS = ("regression", "classification")


def _floats(value: ArrayLike) -> Array:
    return jnp.asarray(value, jnp.result_type(float))


def _floats_or_none(value: ArrayLike | None) -> Array | None:
    return None if value is None else _floats(value)


@registered("data.Scaling")
class Scaling(eqx.Module):
    """Means and scales of inputs and targets.

    Arguments:
        x_mean, x_scale: one number for each input column, or a single number for all pixels of an image.
        y_mean, y_scale: one number for each output, a single number for targets of shape (point,), or None
            where targets are labels or counts and stay as they are.

    """

    x_mean: Float[Array, "*input"] = eqx.field(converter=_floats)
    x_scale: Float[Array, "*input"] = eqx.field(converter=_floats)
    y_mean: Float[Array, "*output"] | None = eqx.field(converter=_floats_or_none, default=None)
    y_scale: Float[Array, "*output"] | None = eqx.field(converter=_floats_or_none, default=None)

    @staticmethod
    def fit(x: ArrayLike, y: ArrayLike, task: str, *, shared: bool = False) -> "Scaling":
        """The scaling that standardises these training data.

        A column whose largest and smallest values agree gets scale 1. Inputs with more than two axes share
        one mean and one scale, since pixels have one unit; `shared=True` asks the same of a table.
        """
        require_known("`task`", task, TASKS)
        inputs = np.asarray(x)
        x_mean, x_scale = _shared_moments(inputs) if shared or inputs.ndim > 2 else _moments(inputs)
        if task == "classification":
            return Scaling(x_mean, x_scale)
        targets = np.asarray(y)
        _require_varied(targets)
        return Scaling(x_mean, x_scale, *_moments(targets))

    def inputs(self, x: Float[Array, "point ..."]) -> Float[Array, "point ..."]:
        """Inputs as the network sees them."""
        return (x - _along_last(self.x_mean, x)) / _along_last(self.x_scale, x)

    def targets(self, y: Shaped[Array, "point ..."]) -> Shaped[Array, "point ..."]:
        """Targets as the likelihood sees them; labels stay as they are."""
        if self.y_mean is None or self.y_scale is None:
            return y
        return (y - _along_last(self.y_mean, y)) / _along_last(self.y_scale, y)

    def unscale_mean(self, mean: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
        """Means, draws or quantiles of scaled targets in original units; outputs on the last axis."""
        if self.y_mean is None or self.y_scale is None:
            return mean
        return mean * _along_last(self.y_scale, mean) + _along_last(self.y_mean, mean)

    def unscale_std(self, std: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
        """Standard deviations of scaled targets in original units; outputs on the last axis."""
        return std if self.y_scale is None else std * _along_last(self.y_scale, std)

    def log_target_scale(self) -> Float[Array, ""]:
        """Σ log y_scale over outputs: log p(y) = log p(y') − this. Zero where targets are not scaled."""
        return _floats(0.0) if self.y_scale is None else jnp.sum(jnp.log(self.y_scale))


def _along_last(statistic: Array, like: Array) -> Array:
    """Give `statistic` leading axes of size one, so that it meets the last axis of `like`."""
    missing = like.ndim - statistic.ndim
    return statistic.reshape((1,) * missing + statistic.shape) if statistic.ndim else statistic


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns = values.astype(np.float64)
    low, high = columns.min(axis=0), columns.max(axis=0)
    constant = low == high
    span = np.where(constant, 1.0, high - low)
    # Through the span, since the squares of very small values would vanish.
    scale = np.where(constant, 1.0, span * np.std((columns - low) / span, axis=0))
    mean = np.where(constant, low, columns.mean(axis=0))
    _require_resolved(mean, scale)
    return mean, scale


def _require_resolved(mean: np.ndarray, scale: np.ndarray) -> None:
    """Raise where a column varies by less than ten rounding steps of the float type around its mean."""
    dtype = jnp.result_type(float)
    blurred = np.atleast_1d(scale < 10 * float(jnp.finfo(dtype).eps) * np.abs(mean))
    which = int(np.argmax(blurred))
    came = f"scale {np.atleast_1d(scale)[which]:.3g} around {np.atleast_1d(mean)[which]:.6g} in column {which}"
    remedy = "Subtract an offset from the column, or turn on `jax_enable_x64`."
    require(not blurred.any(), f"Columns must vary by more than the rounding of {dtype}", came, remedy)


def _shared_moments(values: np.ndarray) -> tuple[float, float]:
    if values.min() == values.max():
        return float(values.min()), 1.0
    mean = float(np.mean(values, dtype=np.float64))
    deviations = np.subtract(values, mean, dtype=np.result_type(values, np.float32))
    return mean, float(np.sqrt(np.mean(np.square(deviations), dtype=np.float64)))


def _require_varied(targets: np.ndarray) -> None:
    constant = np.atleast_1d(targets.min(axis=0) == targets.max(axis=0))
    which = int(np.argmax(constant))
    value = np.atleast_1d(targets[0])[which]
    came = f"the constant {value} in output {which}" if targets.ndim > 1 else f"the constant {value}"
    remedy = "Choose another target, or pass `scale=False` to model it as it is."
    require(not constant.any(), "A regression target must vary in the training part", came, remedy)
