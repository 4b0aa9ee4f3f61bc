"""Steps that forget where they came from: a flow's draws with noise on the way, which takes errors along when it goes.

    x̂₀, x̂₁ = where the path through x with velocity v(t, x) comes from, and where it leads to
    x_u = a(u) (κ^f x̂₀ + √(1 − κ^{2f}) ε) + b(u) x̂₁,      κ = b(t) a(u) / (b(u) a(t)),   f = F t²,   ε ~ N(0, 1)

for each step from t to u. With f = 0 that is the flow itself. With f = 1 it is the way of forgetting a network, gone
backwards; a larger f forgets more of x̂₀ at each step. For short steps

    dx = (v − ½ g² x̂₀ / a) dt + g dW,      g² = 2 f a² (ḃ/b − ȧ/a)

Where v is E[u_t | x_t = x], of a standard-normal source that is independent of the targets, −x̂₀ / a is the gradient of
the log density of x_t. Then these ways have the flow's own distribution at each time, whatever f is. A field that was
trained is not quite that, and an error of x that the flow would carry on shrinks, beside that, by κ^f or so in each
step, until only those of the last steps are left. Steps of some length lose spread, more so for a large f: x_u is made
with x̂₁, the mean of what x may lead to. That is much early on, so little is forgotten there.

Networks of training's end show it most, as they lie in narrow valleys: measured in `experiments/thesis_flows.md`.
Reference: Song, Meng & Ermon (2021), Denoising diffusion implicit models, eq. 12 and 16, for f = 0 and f = 1; Karras et
al. (2022), Elucidating the design space of diffusion-based generative models, for noise that corrects earlier errors.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from weightscape.core import registered
from weightscape.core.checks import InputError, require, require_positive, require_type
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar
from weightscape.flow.paths import FlatPath, Path
from weightscape.flow.transport import Rate, Solver, Velocity, bent, require_bend


@registered("flow.ForgetfulSteps")
class ForgetfulSteps(Solver):
    """One velocity and one noise a step; for populations, Euclidean and in independent pairs.

    - `num_steps`: how many; as a number, as in `FixedSteps`, whose scheme takes three velocities a step.
    - `forgetting`: F, at least 0.
    - `bend`: c, as in `FixedSteps`: steps shorten towards time 1.

    What is drawn has no known density, nor a way through given times. Noise could make single weights run away, where a
    field has not learned what to make of it; a mean of networks, as x̂₁ is, lies among them, and is held to their range.

    Example:
    >>> steps = ForgetfulSteps(24, forgetting=30.0)
    >>> flow = population_flow.with_solver(steps)            # doctest: +SKIP
    """

    num_steps: Scalar = eqx.field(converter=number, default=72)
    forgetting: Scalar = eqx.field(converter=number, default=10.0)
    bend: Scalar = eqx.field(converter=number, default=0.7)

    def __check_init__(self) -> None:
        require_positive("`num_steps` of ForgetfulSteps", self.num_steps)
        require_bend("`bend` of ForgetfulSteps", self.bend)
        if not isinstance(self.forgetting, Tracer):
            asked, remedy = "`forgetting` of ForgetfulSteps must be finite and at least 0", "Pass a number such as 10."
            require(0 <= float(self.forgetting) < math.inf, asked, self.forgetting, remedy)

    def draw(
        self,
        key: PRNGKey,
        path: Path,
        velocity: Velocity,
        start: Float[Array, " weight"],
        reach: Float[Array, " weight"] | float = math.inf,
    ) -> Float[Array, " weight"]:
        came, remedy = type(path).__name__, "Use FixedSteps, or train with `geometry=Euclidean()`."
        require_type(isinstance(path, FlatPath), "The path of ForgetfulSteps must be flat", came, remedy)
        assert isinstance(path, FlatPath)
        count = jnp.ceil(self.num_steps)

        def step(index: Int[Array, ""], x: Float[Array, " weight"]) -> Float[Array, " weight"]:
            time, later = (bent(place / count, self.bend).astype(x.dtype) for place in (index, index + 1))
            ahead = velocity(time, x)
            kept = self._kept(path, time, later)
            noise = jax.random.normal(jax.random.fold_in(key, index), x.shape, x.dtype)
            target = jnp.clip(path.leads_to(time, x, ahead), -reach, reach)
            origin = kept * path.comes_from(time, x, target) + jnp.sqrt(1 - kept**2) * noise
            return path.point(later, origin, target)

        with jax.default_matmul_precision("highest"):
            return jax.lax.fori_loop(0, count.astype(int), step, start)

    def solve(
        self, velocity: Velocity, x: Float[Array, " weight"], *, first: float | Scalar, last: float | Scalar
    ) -> Float[Array, " weight"]:
        raise _without_noise("A way from one time to another")

    def integrate(
        self, velocity: Velocity, rate: Rate, x: Float[Array, " weight"], *, first: float, last: float
    ) -> tuple[Float[Array, " weight"], Float[Array, " estimate"]]:
        raise _without_noise("A density")

    def _kept(self, path: FlatPath, time: Scalar, later: Scalar) -> Scalar:
        """κ^f."""
        now, then = path.coefficients(time), path.coefficients(later)
        share = jnp.clip(now.b * then.a / (then.b * now.a), 0, 1)  # a(1) may be below zero by rounding
        return share ** (self.forgetting * time**2).astype(share.dtype)


def _without_noise(asked: str) -> InputError:
    return InputError(
        f"{asked} must be asked of a flow without noise, got one with ForgetfulSteps. "
        "Use `flow.with_solver(FixedSteps())`, whose draws it belongs to."
    )
