"""The flow of a pull, gone with noise: its draws have exact weights, and no divergence is needed for them.

A posterior draw x_K is forgotten step by step, until nothing but a draw of the source N(0, 1) is left; a flow's pull G,
with the precision κ of the data that it has learned, walks the same way back:

    B(x_{k−1} | x_k) = N(ρ x_k, λ)                             ρ = b_{k−1} / b_k,   λ = 1 − ρ²,   b_0 = 0,   b_K = 1
    F(x_k | x_{k−1}) = N(m + v b G(t, m), v)                   m = ρ x_{k−1},   1/v = 1/λ + d b² κ / (1 + a² κ)

    log w = log r(x_K) + Σ_k ( log N(x_k; m, λ) − log F(x_k | x_{k−1}) )

with b = b_k, a² = 1 − b², and r the target relative to the source. For every model and every number of steps E_F[w] is
p(D), and weighted end points stand for the posterior: the weights are those of whole paths, of F against B. One step
costs one evaluation of G, where an exact divergence takes one for each weight. The divergence between F and B bounds
that between their ends, and is what the training of a pull makes small (`pull`).

Where the likelihood is a normal of precision κ in each weight, a damping d = 1 makes all weights equal, in any number
of steps. The κ that a pull learns is that of the noise in its training, which is more than the likelihood's own where
this is no normal: then d = 0 is nearer the truth, and leaves an error that falls as 1/K.

With a `landing` the pull leads to a time before 1 only, and Hamiltonian chains go the rest: late on the way is where
models err (`landing`). The weight of the landing then takes the place of r.

Reference: Vargas, Grathwohl & Doucet (2023), Denoising diffusion samplers, for weights of such paths.
"""

import dataclasses
import os
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from weightscape.core import PRNGKey, Scalar, map_chains
from weightscape.core.checks import InputError, require_count, require_type
from weightscape.core.facts import Facts
from weightscape.core.numbers import number
from weightscape.draws import Header, Sampled
from weightscape.flow.conditional import Conditional, Stiffness
from weightscape.flow.flow import Flow
from weightscape.flow.judged import Judged
from weightscape.flow.landing import Landed, Landing
from weightscape.flow.noisy_steps import Kernel, Step, noisy_steps
from weightscape.flow.objective import OfPull
from weightscape.flow.target import Target
from weightscape.inference.evidence import LogEvidence
from weightscape.posterior import Position, Posterior

_AT_ONCE = 256


class Diffusion(Judged):
    """A flow that is gone with noise.

    - `flow`: one that predicts pulls.  `num_steps`: K.  `bend`: as that of `FixedSteps`; steps shorten towards time 1.
    - `damping`: d, from 0 to 1. Try 1 where a likelihood is narrow and J is far from that of more steps.
    - `landing`: how the last part of the way is gone, if not by the pull; see `tuned_landing`.

    `log_proposal` of its draws, and `log_density`, are those of a path: exp of the latter is unbiased for the density
    of the end point. J is that of paths, which is at least J of their ends.

    Example:
    >>> diffusion = Diffusion(flow, 256)                     # doctest: +SKIP
    >>> diffusion.evidence(key, 1000)                        # doctest: +SKIP
    """

    flow: Flow
    num_steps: int = eqx.field(static=True)
    bend: Scalar
    damping: Scalar
    landing: Landing | None

    def __init__(
        self,
        flow: Flow,
        num_steps: int = 128,
        *,
        bend: Scalar | float = 0.4,
        damping: Scalar | float = 0.0,
        landing: Landing | None = None,
    ):
        came, remedy = type(flow.objective.prediction).__name__, "Train with prediction=OfPull()."
        require_type(isinstance(flow.objective.prediction, OfPull), "A Diffusion must have pulls", came, remedy)
        require_count("`num_steps` of Diffusion", num_steps)
        if landing is not None and flow.posterior is None:
            raise InputError("A landing must know the data, got a flow without. Pass `load(path, posterior)`.")
        self.flow, self.num_steps, self.bend, self.damping = flow, num_steps, number(bend), number(damping)
        self.landing = landing

    @property
    def header(self) -> Header:  # pyright: ignore[reportIncompatibleVariableOverride]  AbstractVar allows it
        return self.flow.header

    @property
    def posterior(self) -> Posterior | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.flow.posterior

    @property
    def estimate(self) -> LogEvidence | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return None

    @property
    def facts(self) -> Facts:  # pyright: ignore[reportIncompatibleVariableOverride]
        landing = {} if self.landing is None else {"landing": self.landing.facts}
        return self.flow.facts.plus(diffusion_steps=self.num_steps, **landing)

    @property
    def is_proper(self) -> bool:
        return True

    @property
    def num_noises(self) -> int:
        """How many standard-normal numbers make a draw."""
        return self.num_steps * self.flow.num_weights

    def bare(self) -> "Diffusion":
        return dataclasses.replace(self, flow=self.flow.bare())

    def sample_position(self, key: PRNGKey) -> Position:
        return self.sample_with_density(key)[0]

    def sample_with_density(self, key: PRNGKey) -> tuple[Position, Scalar]:
        x, ratio = self.walked(key)
        if self.landing is None:
            return self._ended(x, ratio)
        landed = self.landed(key, x)
        return self._ended(landed.target, ratio + self._excess(landed, landed.target))

    def walked(self, key: PRNGKey) -> tuple[Float[Array, " weight"], Scalar]:
        """Where the pull leads, to the landing or the end, and log F − log N of the way."""
        like = jnp.zeros((self.flow.num_weights,), self.flow.source.layout.dtype)
        noise = lambda index: jax.random.normal(jax.random.fold_in(key, index), like.shape, like.dtype)
        return self._walked(jnp.arange(self.num_steps), noise, like)

    def landed(self, key: PRNGKey, x: Float[Array, " weight"]) -> Landed:
        """The landing of a point that the pull has led to with the same key."""
        assert self.landing is not None
        return self.landing.down_to(jax.random.fold_in(key, self.num_steps), self._targets(x))

    def push(self, noise: Float[Array, " noise"]) -> tuple[Position, Scalar]:
        """The end of the path that standard-normal numbers make, and log q of that path."""
        if self.landing is not None:
            raise InputError("`push` must be asked of a Diffusion without a landing, got one with. Leave it out.")
        rows = noise.reshape(self.num_steps, self.flow.num_weights)
        return self._ended(*self._walked(rows, lambda row: row, jnp.zeros_like(rows[0])))

    def log_density(self, position: Position, key: PRNGKey | None = None) -> Scalar:
        """log q of one path that ends at a position, which `key` draws by forgetting it."""
        end = self.flow.source.vector(position)
        key = jax.random.key(0) if key is None else key
        keys = jax.random.split(key, self.num_steps)
        x, excess = self._taken_off(jax.random.fold_in(key, self.num_steps), end)

        def back(x: Array, now: tuple[Step, PRNGKey]) -> tuple[Array, Scalar]:
            step, key = now
            before = step.kept * x + jnp.sqrt(step.lost) * jax.random.normal(key, x.shape, x.dtype)
            return before, self._kernel(step, before).log_ratio(x)

        _, ratios = jax.lax.scan(back, x, (self._steps(end.dtype), keys), reverse=True)
        return self._ended(end, jnp.sum(ratios) + excess)[1]

    def save(self, path: str | os.PathLike) -> None:
        raise InputError("What is saved must be the flow, got its Diffusion. Use `diffusion.flow.save(path)`.")

    def _walked(self, rows: Array, noise: Callable[[Array], Array], start: Array) -> tuple[Array, Scalar]:
        def onwards(x: Array, now: tuple[Step, Array]) -> tuple[Array, Scalar]:
            step, row = now
            kernel = self._kernel(step, x)
            new = kernel.point(noise(row))
            return new, kernel.log_ratio(new)

        end, ratios = jax.lax.scan(onwards, start, (self._steps(start.dtype), rows))
        return end, jnp.sum(ratios)

    def _ended(self, end: Float[Array, " weight"], ratio: Scalar) -> tuple[Position, Scalar]:
        """The position of the end of a path, and log q of the path."""
        source = self.flow.source
        return source.position(end), source.log_density(end) + ratio - source.log_volume

    def _targets(self, x: Float[Array, " weight"]) -> Conditional:
        """What may be landed at from x, with the pull there."""
        last = jax.tree.map(lambda leaf: leaf[-1], self._steps(x.dtype))
        target, curvature = Target(self._data, self.flow.source), self.flow.model.curvature(last.time)
        pull = self._pull(last, x)
        return Conditional(target, Stiffness(curvature), last.b * x, jnp.sqrt(1 - last.b**2), 1.0, pull)

    def _taken_off(self, key: PRNGKey, end: Float[Array, " weight"]) -> tuple[Array, Scalar]:
        """A point that leads to an end by the landing, and log q of that way less what a draw of the source has."""
        if self.landing is None:
            return end, jnp.zeros((), end.dtype)
        key_point, key_way = jax.random.split(key)
        b = self._steps(end.dtype).b[-1]
        x = b * end + jnp.sqrt(1 - b**2) * jax.random.normal(key_point, end.shape, end.dtype)
        return x, self._excess(self.landing.back_from(key_way, self._targets(x), end), end)

    def _excess(self, landed: Landed, end: Float[Array, " weight"]) -> Scalar:
        return Target(self._data, self.flow.source).relative(end) - landed.log_weight

    @property
    def _data(self) -> Posterior:
        assert self.flow.posterior is not None
        return self.flow.posterior

    def _kernel(self, step: Step, x: Float[Array, " weight"]) -> Kernel:
        middle, curvature = step.kept * x, self.flow.model.curvature(step.time)
        known = self.damping * step.b**2 * curvature / (1 + (1 - step.b**2) * curvature)
        variance = 1 / (1 / step.lost + known)
        return Kernel(middle, variance * step.b * self._pull(step, middle), variance, step.lost)

    def _steps(self, dtype: jnp.dtype) -> Step:
        last = 1.0 if self.landing is None else self.landing.time
        return noisy_steps(self.flow.objective.path, self.num_steps, self.bend, last, dtype)

    def _pull(self, step: Step, x: Float[Array, " weight"]) -> Float[Array, " weight"]:
        with jax.default_matmul_precision("highest"):
            return self.flow.model(step.time, step.size * x)

    def _drawn(self, keys: Key[Array, " draw"]) -> Sampled:
        return map_chains(self.bare().drawn, keys)

    def _batch_size(self, num_draws: int) -> int:
        return min(2 ** (num_draws - 1).bit_length(), _AT_ONCE)
