"""Pooling: one number for each window of neighbouring places.

    average:  z[s] = mean_{k < w} h[w·s + k]        maximum:  z[s] = max_{k < w} h[w·s + k]

along every spatial axis, with w the window. Windows do not overlap; places that fill no window are dropped.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require, require_count, shape_of
from weightscape.core.config import registered


class Pool(eqx.Module):
    """A summary of windows of places."""

    window: eqx.AbstractVar[int]

    @abc.abstractmethod
    def apply(self, h: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        """The summary of each window, with the spatial axes `window` times shorter."""


@registered("networks.AveragePool")
class AveragePool(Pool):
    """The mean of each window.

    - `window`: places along each spatial axis.

    Example:
    >>> AveragePool(2).apply(jnp.ones((1, 6, 4, 3))).shape
    (1, 3, 2, 3)
    """

    window: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        require_count("`window` of AveragePool", self.window)

    def apply(self, h: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        return jnp.mean(_windows(h, self.window), axis=_inner_axes(h))


@registered("networks.MaxPool")
class MaxPool(Pool):
    """The largest entry of each window.

    - `window`: places along each spatial axis.
    """

    window: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        require_count("`window` of MaxPool", self.window)

    def apply(self, h: Float[Array, "point ... channel"]) -> Float[Array, "point ... channel"]:
        return jnp.max(_windows(h, self.window), axis=_inner_axes(h))


def _windows(h: Array, window: int) -> Array:
    """Every spatial axis split into (windows, places of a window)."""
    places = h.shape[1:-1]
    remedy = "Use a smaller window, fewer layers or larger inputs."
    require(min(places) >= window, f"Pooling needs at least {window} places", f"{shape_of(h)[1:-1]}", remedy)
    whole = tuple(slice(size // window * window) for size in places)
    split = [part for size in places for part in (size // window, window)]
    return h[:, *whole].reshape((h.shape[0], *split, h.shape[-1]))


def _inner_axes(h: Array) -> tuple[int, ...]:
    return tuple(range(2, 2 * (h.ndim - 2) + 1, 2))
