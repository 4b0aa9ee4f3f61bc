"""A velocity field that is told of the networks it leads to, and the same for those that are asked for.

    v(t, z) = v(t, z | c)                                       for the c that is asked for
    v(t, z) = v(t, z | ∅) + w (v(t, z | c) − v(t, z | ∅))       with a strength w; 1 gives the above

A strength above 1 goes beyond c, away from what all networks share. The density is then that of this velocity, as
`log_density` says, and no power of the conditional one.

Reference: Ho & Salimans (2022), Classifier-free diffusion guidance, equation 6, with w − 1 for their w.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import InputError, require, require_finite
from weightscape.core.numbers import number
from weightscape.core.types import Scalar
from weightscape.flow.fields import Field
from weightscape.metanet.fixed import Fixed


class Given(Field):
    """A field of conditions. Training tells it a context with each example; a flow that is drawn from has one bound.

    - `field`: takes a context.  `encoding`: an `Encoding`, which is not trained.
    - `context`: what is asked for; None where nothing is yet.  `strength`: w; None where the field is asked only once.
    """

    field: Field
    encoding: Fixed
    context: Float[Array, " context"] | None = None
    strength: Scalar | None = None

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        context = self.context if context is None else context
        if context is None:
            raise InputError(
                "A flow with conditions must be told which networks are wanted, got nothing. Use `flow.given(value)`."
            )
        told = self.field(time, z, context)
        if self.strength is None:
            return told
        untold = self.field(time, z, jnp.zeros_like(context))
        return untold + self.strength.astype(z.dtype) * (told - untold)

    def tries(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> tuple[Float[Array, " weight"], ...]:
        if context is None or self.strength is not None:
            return (self(time, z, context),)
        return self.field.tries(time, z, context)

    def at(self, value: ArrayLike | None, strength: ArrayLike | None) -> "Given":
        """The field for networks of a value; None is any."""
        context = np.zeros(self.encoding.tree.size)
        if value is not None:
            asked, remedy = "The value of `given` must be one value", "Call it for each of them."
            require(np.shape(value) == (), asked, f"the shape {np.shape(value)}", remedy)
            self.encoding.tree.require_seen(np.asarray(value))
            context = self.encoding.tree.contexts(np.asarray(value)[None])[0]
        if strength is not None:
            require_finite("`strength` of given", strength)
        wanted = None if strength is None else number(strength)
        return dataclasses.replace(self, context=number(context), strength=wanted)


def released(model: Any) -> Any:
    """The model with nothing bound."""
    return dataclasses.replace(model, context=None, strength=None) if isinstance(model, Given) else model


def bound_as(model: Any, other: Any) -> Any:
    """The model, with bound to it what is bound to another one."""
    if not isinstance(other, Given):
        return model
    return dataclasses.replace(model, context=other.context, strength=other.strength)


def require_given(model: Any) -> None:
    """Raise unless the model is one of conditions."""
    asked = "`given` must be asked of a flow with conditions"
    remedy = "Train one: `PopulationMatching(conditions=...)`."
    require(isinstance(model, Given), asked, "one without", remedy)
