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

Reference: Vargas, Grathwohl & Doucet (2023), Denoising diffusion samplers, for weights of such paths.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from weightscape.core import PRNGKey, Scalar, map_chains
from weightscape.core.checks import InputError, require_count, require_type
from weightscape.core.facts import Facts
from weightscape.core.numbers import number
from weightscape.draws import Header, Sampled
from weightscape.flow.flow import Flow
from weightscape.flow.judged import Judged
from weightscape.flow.objective import OfPull
from weightscape.inference.evidence import LogEvidence
from weightscape.posterior import Position, Posterior

_AT_ONCE = 256


class Step(NamedTuple):
    """t, b and the size σ of the path's points at a step, and the ρ and λ that lead there."""

    time: Scalar
    b: Scalar
    size: Scalar
    kept: Scalar
    lost: Scalar


class Kernel(NamedTuple):
    """The normal that a step draws from, with `shift` from m and `variance` v, and what the source alone would do."""

    middle: Float[Array, " weight"]
    shift: Float[Array, " weight"]
    variance: Float[Array, " weight"]
    lost: Scalar

    def point(self, noise: Float[Array, " weight"]) -> Float[Array, " weight"]:
        """The draw that standard-normal noise makes."""
        return self.middle + self.shift + jnp.sqrt(self.variance) * noise

    def log_ratio(self, x: Float[Array, " weight"]) -> Scalar:
        """log F(x) − log N(x; m, λ)."""
        away = x - self.middle
        terms = jnp.log(self.lost / self.variance) + away**2 / self.lost - (away - self.shift) ** 2 / self.variance
        return 0.5 * jnp.sum(terms)


class Diffusion(Judged):
    """A flow that is gone with noise.

    - `flow`: one that predicts pulls.  `num_steps`: K.  `bend`: as that of `FixedSteps`; steps shorten towards time 1.
    - `damping`: d, from 0 to 1. Try 1 where a likelihood is narrow and J is far from that of more steps.

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

    def __init__(self, flow: Flow, num_steps: int = 128, *, bend: Scalar | float = 0.4, damping: Scalar | float = 0.0):
        came, remedy = type(flow.objective.prediction).__name__, "Train with prediction=OfPull()."
        require_type(isinstance(flow.objective.prediction, OfPull), "A Diffusion must have pulls", came, remedy)
        require_count("`num_steps` of Diffusion", num_steps)
        self.flow, self.num_steps, self.bend, self.damping = flow, num_steps, number(bend), number(damping)

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
        return self.flow.facts.plus(diffusion_steps=self.num_steps)

    @property
    def is_proper(self) -> bool:
        return True

    @property
    def num_noises(self) -> int:
        """How many standard-normal numbers make a draw."""
        return self.num_steps * self.flow.num_weights

    def bare(self) -> "Diffusion":
        return Diffusion(self.flow.bare(), self.num_steps, bend=self.bend, damping=self.damping)

    def sample_position(self, key: PRNGKey) -> Position:
        return self.sample_with_density(key)[0]

    def sample_with_density(self, key: PRNGKey) -> tuple[Position, Scalar]:
        like = jnp.zeros((self.flow.num_weights,), self.flow.source.layout.dtype)
        noise = lambda index: jax.random.normal(jax.random.fold_in(key, index), like.shape, like.dtype)
        return self._walked(jnp.arange(self.num_steps), noise, like)

    def push(self, noise: Float[Array, " noise"]) -> tuple[Position, Scalar]:
        """The end of the path that standard-normal numbers make, and log q of that path."""
        rows = noise.reshape(self.num_steps, self.flow.num_weights)
        return self._walked(rows, lambda row: row, jnp.zeros_like(rows[0]))

    def log_density(self, position: Position, key: PRNGKey | None = None) -> Scalar:
        """log q of one path that ends at a position, which `key` draws by forgetting it."""
        end = self.flow.source.vector(position)
        keys = jax.random.split(jax.random.key(0) if key is None else key, self.num_steps)

        def back(x: Array, now: tuple[Step, PRNGKey]) -> tuple[Array, Scalar]:
            step, key = now
            before = step.kept * x + jnp.sqrt(step.lost) * jax.random.normal(key, x.shape, x.dtype)
            return before, self._kernel(step, before).log_ratio(x)

        _, ratios = jax.lax.scan(back, end, (self._steps(end.dtype), keys), reverse=True)
        return self.flow.source.log_density(end) + jnp.sum(ratios) - self.flow.source.log_volume

    def save(self, path: str | os.PathLike) -> None:
        raise InputError("What is saved must be the flow, got its Diffusion. Use `diffusion.flow.save(path)`.")

    def _walked(self, rows: Array, noise: Callable[[Array], Array], start: Array) -> tuple[Position, Scalar]:
        def onwards(x: Array, now: tuple[Step, Array]) -> tuple[Array, Scalar]:
            step, row = now
            kernel = self._kernel(step, x)
            new = kernel.point(noise(row))
            return new, kernel.log_ratio(new)

        end, ratios = jax.lax.scan(onwards, start, (self._steps(start.dtype), rows))
        source = self.flow.source
        return source.position(end), source.log_density(end) + jnp.sum(ratios) - source.log_volume

    def _kernel(self, step: Step, x: Float[Array, " weight"]) -> Kernel:
        middle, curvature = step.kept * x, self.flow.model.curvature(step.time)
        known = self.damping * step.b**2 * curvature / (1 + (1 - step.b**2) * curvature)
        variance = 1 / (1 / step.lost + known)
        with jax.default_matmul_precision("highest"):
            pull = self.flow.model(step.time, step.size * middle)
        return Kernel(middle, variance * step.b * pull, variance, step.lost)

    def _steps(self, dtype: jnp.dtype) -> Step:
        s = jnp.arange(1, self.num_steps + 1, dtype=dtype) / self.num_steps
        times = (s + self.bend * s * (1 - s)).astype(dtype)
        at = jax.vmap(self.flow.objective.path.coefficients)(times)
        sizes = jnp.sqrt(at.a**2 + at.b**2)
        b = at.b / sizes
        kept = jnp.concatenate([jnp.zeros((1,), dtype), b[:-1]]) / b
        return Step(times, b, sizes, kept, 1 - kept**2)

    def _drawn(self, keys: Key[Array, " draw"]) -> Sampled:
        return map_chains(self.bare().drawn, keys)

    def _batch_size(self, num_draws: int) -> int:
        return min(2 ** (num_draws - 1).bit_length(), _AT_ONCE)
