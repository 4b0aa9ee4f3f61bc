"""Velocities that are tangent to a manifold, and their divergence there.

    v(x) = P_y f(y),      y = the nearest point of the manifold,  P_y the projection to the tangent space

v is defined beside the manifold too, where it is the same along each normal. Its derivative along a normal is zero, so
the trace of its Jacobian at a point of the manifold is the sum over tangent directions alone,

    Σ_i ∂v_i/∂x_i = Σ_{e tangent} ⟨e, D_e v⟩ = div_g v,

the Riemannian divergence: d log p/dt = −div_g v for densities with respect to the manifold's volume. Exact divergences
and Hutchinson's probes therefore hold on the manifold as they are.
"""

from jaxtyping import Array, Float

from weightscape.core.types import Scalar
from weightscape.flow.fields import Field, told
from weightscape.geometry import Manifold


class TangentField(Field):
    """The tangent part of `field` on `manifold`, which has no trained numbers."""

    field: Field
    manifold: Manifold

    def __call__(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> Float[Array, " weight"]:
        """The velocity."""
        y = self.manifold.nearest(z)
        return self.manifold.project(y, told(self.field, context)(time, y))

    def tries(
        self, time: Scalar | float, z: Float[Array, " weight"], context: Float[Array, " context"] | None = None
    ) -> tuple[Float[Array, " weight"], ...]:
        y = self.manifold.nearest(z)
        return tuple(self.manifold.project(y, each) for each in told(self.field, context).tries(time, y))
