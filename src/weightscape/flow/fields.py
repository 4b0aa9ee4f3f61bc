"""Models of velocities over flat vectors of weights.

- `MetanetField`: a metanet; it commutes with the symmetry it is built from, and the density of its flow is invariant.
- `GuidedField`: a metanet that is shown the gradient of the likelihood as well.
- `RevisedField` (`revised_field`): a metanet that drafts, and one that sees that gradient where the draft leads to.
- `ResidualField`: gated residual layers on the whole vector; it knows no symmetry.
- `PrincipalField`: the same in the principal axes of given weights, each scaled to variance one.

All are zero at first, and take (time, vector) to a vector; those with a context take it as well, after the vector.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.layout import Layout
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.conditional import Conditional, State, Stiffness
from weightscape.flow.paths import Path
from weightscape.flow.target import Target
from weightscape.metanet import Metanet, Sizes
from weightscape.metanet.condition import Condition
from weightscape.metanet.fixed import Fixed
from weightscape.metanet.linear import Linear
from weightscape.metanet.normalise import Residual, normalised
from weightscape.metanet.product import Product

_LONE = ((0,),)
"""The slots of features that no sign changes."""

_BOUND = 10.0

_STIFFER = 4.0
"""Curvature at a point is often several times its mean, and steps must be short enough for it."""


class Field(eqx.Module):
    """A velocity, or what a velocity is made from, for a vector at a time."""

    @abc.abstractmethod
    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """What the field says, where it is told a context too if it has one."""

    def tries(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> tuple[Float[Array, " weight"], ...]:
        """All that is trained to be the answer; the last is what the field says."""
        return (told(self, context)(time, z),)


class Told(Field):
    """A field at a context."""

    field: Any
    context: Float[Array, " context"]

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """What the field says there."""
        return self.field(time, z, self.context if context is None else context)

    def tries(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> tuple[Float[Array, " weight"], ...]:
        return self.field.tries(time, z, self.context if context is None else context)


def told(field: Any, context: Float[Array, " context"] | None) -> Any:
    """The field at a context; the field itself where there is none."""
    return field if context is None else Told(field, context)


class MetanetField(Field):
    """A metanet on vectors: `layout` says which entry is which weight."""

    metanet: Metanet
    layout: Layout = eqx.field(static=True)

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        return self.layout.flatten(self.metanet(time, self.layout.unflatten(z), context))


class Guide(NamedTuple):
    """What a guided field knows of the data: the target, and κ and r = √κ of each weight, rough values that stay."""

    target: Target
    curvature: Float[Array, " weight"]
    scale: Float[Array, " weight"]


class GuidedField(Field):
    """A metanet that sees, beside the weights, where the data pull from the point μ = b z / σ² that the path leads to:

        c₁(t, z) = ∇ log r(μ) / (1 + a² κ / σ²)       the pull itself, where the likelihood is a normal of precision κ
        c₂(t, z) = mean of ∇ log r over a full turn, from rest at μ, of Hamiltonian motion among the targets

    The turn is that of `conditional`, in `num_leapfrog` steps; where these are none there is no c₂. It goes around the
    most likely target, and late on the path that is most of what the pull depends on. Both are divided by r, and an
    asinh keeps in bounds what is far from them.
    """

    metanet: Metanet
    path: Path
    guide: Fixed
    num_leapfrog: int = eqx.field(static=True)

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        guide: Guide = self.guide.value
        layout = guide.target.source.layout
        companions = tuple(map(layout.unflatten, self._seen(time, z)))
        return layout.flatten(self.metanet(time, layout.unflatten(z), context, companions=companions))

    def _seen(self, time: Scalar | float, z: Float[Array, " weight"]) -> list[Float[Array, " weight"]]:
        guide: Guide = self.guide.value
        at = self.path.coefficients(jnp.asarray(time, z.dtype))
        variance = at.a**2 + at.b**2
        middle = at.b / variance * z
        pulls = [guide.target.gradient(middle) / (1 + at.a**2 / variance * guide.curvature)]
        if self.num_leapfrog > 0:
            stiffness = Stiffness(_STIFFER * guide.curvature)
            pulls.append(self._turned(Conditional(guide.target, stiffness, middle, at.a / jnp.sqrt(variance))))
        return [_BOUND * jnp.arcsinh(pull / (_BOUND * guide.scale)) for pull in pulls]

    def _turned(self, targets: Conditional) -> Float[Array, " weight"]:
        """The mean gradient over a turn; zero where it is not finite, or so large that its derivative may not be."""
        nothing = jnp.zeros_like(targets.middle)
        rest, step_size = targets.state(nothing, nothing), jnp.asarray(2 * jnp.pi / (self.num_leapfrog + 1))

        def step(carry: tuple[State, Array], _: None) -> tuple[tuple[State, Array], None]:
            state = targets.step(carry[0], step_size.astype(nothing.dtype))
            return (state, carry[1] + state.gradient), None

        total = jax.lax.scan(step, (rest, rest.gradient), None, length=self.num_leapfrog)[0][1]
        mean = total / (self.num_leapfrog + 1)
        return jnp.where(jnp.abs(mean) < jnp.finfo(mean.dtype).max ** 0.5, mean, 0)


class Sight(NamedTuple):
    """What a field that looks at the data by itself knows of them: the target."""

    target: Target


def looking_at(model: Any, target: Target | None) -> Any:
    """The model with all its guides and sights looking at a target, or at none."""
    is_guide = lambda node: isinstance(node, Guide | Sight)
    return jax.tree.map(lambda node: node._replace(target=target) if is_guide(node) else node, model, is_leaf=is_guide)


class ResidualField(Field):
    """x ↦ D h + x ⊙ G h, with h from gated residual layers that are told the time and a context."""

    condition: Condition
    embedding: Linear
    layers: tuple[Product, ...]
    residuals: tuple[Residual, ...]
    direct: Linear
    gate: Linear

    @staticmethod
    def of(key: PRNGKey, num_weights: int, sizes: Sizes) -> "ResidualField":
        """A random one of `sizes.width` channels and `sizes.num_blocks` layers."""
        key_condition, key_embedding, key_layers = jax.random.split(key, 3)
        width = sizes.width
        return ResidualField(
            Condition.of(key_condition, width, timed=True, context_size=sizes.context_size),
            Linear.of(key_embedding, num_weights, width),
            tuple(Product.of(k, _LONE, width, sizes.expansion) for k in jax.random.split(key_layers, sizes.num_blocks)),
            tuple(Residual.of(width, 1, width) for _ in range(sizes.num_blocks)),
            Linear.zero(width, num_weights),
            Linear.zero(width, num_weights),
        )

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        condition, hidden = self.condition(jnp.asarray(time), context), (self.embedding(z),)
        for layer, residual in zip(self.layers, self.residuals, strict=True):
            hidden = residual.after(condition, hidden, layer(residual.before(condition, hidden)))
        features = normalised(hidden[0])
        return self.direct(features) + z * self.gate(features)


class Frame(NamedTuple):
    """The mean m of some weights, their principal axes Q and the deviations s along these."""

    mean: Float[Array, " weight"]
    axes: Float[Array, "weight axis"]
    deviations: Float[Array, " axis"]


class PrincipalField(Field):
    """Q s v(t, Qᵀ(x − m) / s): a field in the principal axes Q of some weights, with deviations s along them.

    - `frame`: m, Q and s, which are not trained.
    """

    field: ResidualField
    frame: Fixed

    @staticmethod
    def of(key: PRNGKey, draws: Float[Array, "draw weight"], sizes: Sizes) -> "PrincipalField":
        """From weights whose principal axes are taken; at least two. Axes along which they do not vary have s = 1."""
        require(len(draws) > 1, "Principal axes must come from at least 2 draws", len(draws), "Pass more draws.")
        mean = jnp.mean(draws, axis=0)
        _, values, axes = jnp.linalg.svd(draws - mean[None], full_matrices=True)
        deviations = jnp.ones((draws.shape[1],), draws.dtype).at[: len(values)].set(values / (len(draws) - 1) ** 0.5)
        least = jnp.finfo(draws.dtype).eps ** 0.5 * jnp.max(deviations)
        field = ResidualField.of(key, draws.shape[1], sizes)
        return PrincipalField(field, Fixed(Frame(mean, axes.T, jnp.where(deviations > least, deviations, 1.0))))

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        mean, axes, deviations = self.frame.value
        inner = self.field(time, ((z - mean) @ axes) / deviations, context)
        return axes @ (deviations * inner)
