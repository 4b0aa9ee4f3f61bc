"""Which model a flow has: a choice that can be stored, and what is built from it.

- `Equivariant`: a metanet, which commutes with the posterior's symmetry; shown the likelihood's gradient by default.
- `Revised`: two metanets, a draft and a revision that sees what the data say of it, once or several times.
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
from weightscape.flow.fields import Field, Guide, GuidedField, MetanetField, PrincipalField, ResidualField, Sight
from weightscape.flow.orbits import orbits
from weightscape.flow.paths import Path
from weightscape.flow.revised_field import RevisedField
from weightscape.flow.target import Target
from weightscape.flow.turns import at_rows
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

    @property
    @abc.abstractmethod
    def looks_at_data(self) -> bool:
        """Whether the field is a function of the data."""

    @abc.abstractmethod
    def seen(self, target: Target) -> Target:
        """The target as the field sees it, if it does."""

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

    @property
    def looks_at_data(self) -> bool:
        return self.guided

    def labels(self, symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
        return orbits(symmetry)

    def build(self, key: PRNGKey, setting: Setting) -> Field:
        layout, like = setting.target.source.layout, _zeros(setting)
        options: dict[str, Any] = {"sizes": self.sizes, "block_type": jnp.bfloat16 if self.halved else None}
        if not self.guided:
            return MetanetField(Metanet(key, setting.symmetry, like, **options), layout)
        metanet = Metanet(key, setting.symmetry, like, num_companions=1 + (self.num_leapfrog > 0), **options)
        guide = Guide(self.seen(setting.target), setting.information, setting.scale)
        return GuidedField(metanet, setting.path, Fixed(guide), self.num_leapfrog)

    def seen(self, target: Target) -> Target:
        return _with_rows(target, self.guiding_rows)


@registered("flow.Revised")
class Revised(Architecture):
    """A draft and its revision, which sees the likelihood's gradient at the network that the draft leads to.

    - `sizes`: how large each of the two metanets is.
    - `rows`: from how many rows of the data, evenly spaced, the gradient is taken; None for all.
    - `halved`: whether their blocks work in bfloat16, as in `Equivariant`.
    - `num_revisions`: how often the draft is revised, by the same metanet, each time with a new gradient.
    - `num_products`: how many products with the curvature lead to the Newton step that it is shown beside the gradient;
      0 for no such step.
    - `kronecker`: whether it is shown the step by Kronecker factors instead, which costs as much as a gradient or two.
      With neither there is no step.
    - `in_turn`: whether looks at different times, and each revision, take other rows, so that all are seen on the way;
      for looks at a good share of all rows (`turns`). Otherwise it is always the same ones.

    For populations: networks that training ends in have small gradients, which an error of a draft has not.
    """

    sizes: Sizes = eqx.field(static=True, default=Sizes())
    rows: int | None = eqx.field(static=True, default=1024)
    halved: bool = eqx.field(static=True, default=False)
    num_revisions: int = eqx.field(static=True, default=1)
    num_products: int = eqx.field(static=True, default=0)
    kronecker: bool = eqx.field(static=True, default=False)
    in_turn: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        require_count("`rows` of Revised", 1 if self.rows is None else self.rows)
        require_count("`num_revisions` of Revised", self.num_revisions)
        require_count("`num_products` of Revised", self.num_products, least=0)
        asked, remedy = (
            "`num_products` of Revised must be 0 where the step has Kronecker factors",
            "Choose one of both.",
        )
        require(not self.kronecker or self.num_products == 0, asked, self.num_products, remedy)
        asked = "`rows` of Revised must be a number where looks take them in turn"
        require(self.rows is not None or not self.in_turn, asked, self.rows, "Pass how many each look takes.")

    @property
    def looks_at_data(self) -> bool:
        return True

    def labels(self, symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
        return orbits(symmetry)

    def build(self, key: PRNGKey, setting: Setting) -> Field:
        key_draft, key_revision = jax.random.split(key)
        options: dict[str, Any] = {"block_type": jnp.bfloat16 if self.halved else None}
        draft = Metanet(key_draft, setting.symmetry, _zeros(setting), sizes=self.sizes, **options)
        num_shown = 1 + (self.num_products > 0 or self.kronecker)
        told = dataclasses.replace(self.sizes, context_size=self.sizes.context_size + num_shown)
        options |= {"sizes": told, "num_companions": 1 + num_shown}
        revision = Metanet(key_revision, setting.symmetry, _zeros(setting), **options)
        sight = Fixed(Sight(self.seen(setting.target)))
        layout = setting.target.source.layout
        turn = self.rows if self.in_turn else None
        looks = (self.num_revisions, self.num_products, self.kronecker, turn)
        return RevisedField(draft, revision, setting.path, sight, layout, *looks)

    def seen(self, target: Target) -> Target:
        return target if self.in_turn else _with_rows(target, self.rows)


@registered("flow.Plain")
class Plain(Architecture):
    """Gated residual layers of `sizes.width` channels; they know no symmetry."""

    sizes: Sizes = eqx.field(static=True, default=Sizes(width=512))

    @property
    def looks_at_data(self) -> bool:
        return False

    def labels(self, symmetry: Symmetry) -> Int[np.ndarray, " weight"]:
        return np.arange(symmetry.layout.size)

    def build(self, key: PRNGKey, setting: Setting) -> Field:
        return ResidualField.of(key, setting.target.source.layout.size, self.sizes)

    def seen(self, target: Target) -> Target:
        return target


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


def _zeros(setting: Setting) -> Any:
    """Weights of the right shapes."""
    layout = setting.target.source.layout
    return layout.unflatten(jnp.zeros((layout.size,), layout.dtype))


def _with_rows(target: Target, count: int | None) -> Target:
    """The target with so many rows of its data, each counting for several."""
    posterior = target.posterior
    if count is None or count >= posterior.num_points:
        return target
    rows = jnp.asarray(np.linspace(0, posterior.num_points - 1, count).astype(int))
    return dataclasses.replace(target, posterior=at_rows(posterior, rows))
