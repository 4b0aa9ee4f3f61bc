"""Which model a flow has: a choice that can be stored, and what is built from it.

- `Equivariant`: a metanet, which commutes with the posterior's symmetry; shown the likelihood's gradient by default.
- `Plain`: residual layers on the whole vector.
- `Principal`: the same in the principal axes of the draws.
"""

import abc
import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core import registered
from weightscape.core.checks import require, require_count
from weightscape.core.types import PRNGKey
from weightscape.flow.fields import Field, Guide, GuidedField, MetanetField, PrincipalField, ResidualField
from weightscape.flow.orbits import orbits
from weightscape.flow.paths import Path
from weightscape.flow.target import Target
from weightscape.metanet import Metanet, Sizes
from weightscape.metanet.fixed import Fixed
from weightscape.symmetry import Symmetry, discover

_LEAST_SCALE = 0.05


class Setting(NamedTuple):
    """What a model is built for.

    - `labels`: the orbit of each weight.
    - `information`: E[g²] of each weight, the same on orbits; g = ∇ log r at draws.
    - `draws`: some vectors of the posterior.
    """

    target: Target
    path: Path
    symmetry: Symmetry
    labels: Int[np.ndarray, " weight"]
    information: Float[Array, " weight"]
    draws: Float[Array, "draw weight"]

    @property
    def scale(self) -> Float[Array, " weight"]:
        """The size of the likelihood's gradient, never quite zero."""
        return jnp.sqrt(self.information) + _LEAST_SCALE


class Architecture(eqx.Module):
    """A kind of field, and its size."""

    sizes: eqx.AbstractVar[Sizes]

    @abc.abstractmethod
    def labels(self, symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
        """Which weights must be treated alike, by number."""

    @abc.abstractmethod
    def build(self, key: PRNGKey, setting: Setting) -> Field:
        """A new field."""

    def seen(self, target: Target) -> Target:
        """The target as the field sees it, if it does."""
        return target

    def told(self, context_size: int) -> "Architecture":
        """The same, for a field that is told a context of this size; its blocks are what hears it."""
        asked, remedy = "`num_blocks` of a field with conditions must be at least 1", "Pass larger `sizes`."
        require(self.sizes.num_blocks > 0, asked, self.sizes.num_blocks, remedy)
        return dataclasses.replace(self, sizes=dataclasses.replace(self.sizes, context_size=context_size))


@registered("flow.Equivariant")
class Equivariant(Architecture):
    """A metanet.

    - `sizes`: how large it is.
    - `guided`: whether it is shown the gradient of the likelihood.
    - `num_leapfrog`: how many more gradients it is shown the mean of, over a turn around the most likely target.
    - `guiding_rows`: from how many rows of the data, evenly spaced, that gradient is taken; None for all.
    - `halved`: whether its blocks work in bfloat16. Fast on accelerators; densities are then as rough as that.
    """

    sizes: Sizes = eqx.field(static=True, default=Sizes())
    guided: bool = eqx.field(static=True, default=True)
    num_leapfrog: int = eqx.field(static=True, default=16)
    guiding_rows: int | None = eqx.field(static=True, default=None)
    halved: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        require_count("`num_leapfrog` of Equivariant", self.num_leapfrog, least=0)

    def labels(self, symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
        return orbits(symmetry)

    def build(self, key: PRNGKey, setting: Setting) -> Field:
        layout = setting.target.source.layout
        like = layout.unflatten(jnp.zeros((layout.size,), layout.dtype))
        options: dict[str, Any] = {"sizes": self.sizes, "block_type": jnp.bfloat16 if self.halved else None}
        if not self.guided:
            return MetanetField(Metanet(key, setting.symmetry, like, **options), layout)
        metanet = Metanet(key, setting.symmetry, like, num_companions=1 + (self.num_leapfrog > 0), **options)
        guide = Guide(self.seen(setting.target), setting.information, setting.scale)
        return GuidedField(metanet, setting.path, Fixed(guide), self.num_leapfrog)

    def seen(self, target: Target) -> Target:
        posterior, count = target.posterior, self.guiding_rows
        if count is None or count >= posterior.num_points:
            return target
        rows = np.linspace(0, posterior.num_points - 1, count).astype(int)
        power = posterior.likelihood_power * (posterior.num_points / count)
        parts = (posterior.x[rows], posterior.y[rows], power)
        fewer = eqx.tree_at(lambda p: (p.x, p.y, p.likelihood_power), posterior, parts)
        return dataclasses.replace(target, posterior=fewer)


@registered("flow.Plain")
class Plain(Architecture):
    """Gated residual layers of `sizes.width` channels; they know no symmetry."""

    sizes: Sizes = eqx.field(static=True, default=Sizes(width=512))

    def labels(self, symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
        return np.arange(symmetry.layout.size)

    def build(self, key: PRNGKey, setting: Setting) -> Field:
        return ResidualField.of(key, setting.target.source.layout.size, self.sizes)


@registered("flow.Principal")
class Principal(Plain):
    """The same, in the principal axes of the draws."""

    def build(self, key: PRNGKey, setting: Setting) -> Field:
        return PrincipalField.of(key, jnp.asarray(setting.draws), self.sizes)


def setting_of(
    architecture: Architecture, target: Target, path: Path, draws: Array, gradients: Array | np.ndarray
) -> Setting:
    """The setting that draws and the gradients there make."""
    symmetry = discover(target.posterior)
    labels = architecture.labels(symmetry)
    squares = np.mean(np.asarray(gradients, np.float64) ** 2, axis=0)
    means = np.bincount(labels, squares) / np.bincount(labels)
    information = jnp.asarray(means[labels], target.source.layout.dtype)
    return Setting(target, path, symmetry, labels, information, jax.lax.stop_gradient(draws))
