"""Layer-wise variational inference: a full covariance within each layer, independence between layers.

    q(θ) = Π_l N(μ_l, L_l L_lᵀ),      L_l = diag(exp a_l) (I + C_l / √n_l),   C_l strictly lower triangular

C is relative to the scale exp a of each row and to the size n of the layer: a step of η in every number changes all
standard deviations by a share of about η, whatever their scale and their number. (With absolute entries below the
diagonal training ended hundreds of nats too low, without the root of n thousands.)

A layer's weights are the leaves with the same parent, such as its kernel and its bias. The likelihood's own parameters
are a block, and so are the prior's latent variables. A layer of n weights has a factor of n² numbers. For a linear
model with normal noise and prior the result is the exact posterior, and its bound the exact evidence.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, registered
from weightscape.core.checks import InputError, require_positive
from weightscape.core.facts import Facts
from weightscape.core.layout import Layout
from weightscape.core.numbers import number
from weightscape.draws import Header
from weightscape.inference.approximation import Approximation
from weightscape.inference.evidence import LogEvidence
from weightscape.inference.gaussian import Blocks, Full, Gaussian
from weightscape.inference.method import Circumstances, DensityMethod
from weightscape.inference.variational.estimator import Reparameterised
from weightscape.inference.variational.guide import Guide, MomentGuide, Vector
from weightscape.inference.variational.kl import Divergence
from weightscape.inference.variational.settings import bound, check_counts
from weightscape.inference.variational.train import Fit, Schedule, train_guide
from weightscape.posterior import Posterior

_MOST_BYTES = 2**30
"""Of one layer's factor; a step holds about six arrays of its size."""


@registered("inference.LayerwiseVI")
class LayerwiseVI(DensityMethod):
    """A normal q with a covariance of its own for each layer; a `Gaussian` with `Blocks` of `Full`.

    - `num_steps`, `learning_rate`, `num_samples`, `batch_size`, `initial_scale`, `kl`, `kl_warmup`,
      `num_evidence_draws`: as in `MeanFieldVI`.
    """

    num_steps: int = eqx.field(static=True, default=4000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.02, converter=number)
    num_samples: int = eqx.field(static=True, default=2)
    batch_size: int | None = eqx.field(static=True, default=None)
    initial_scale: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    kl: Divergence | None = None
    kl_warmup: int = eqx.field(static=True, default=0)
    num_evidence_draws: int = eqx.field(static=True, default=200)

    def __check_init__(self):
        self._schedule().check("LayerwiseVI")
        check_counts("LayerwiseVI", self.num_samples, self.batch_size, self.num_evidence_draws)
        require_positive("`initial_scale` of LayerwiseVI", self.initial_scale)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        layout = Header.of(posterior).layout()
        places = tuple(jnp.asarray(where) for where in layer_places(layout).values())
        elbo = bound(posterior, layout, self.kl, Reparameterised(), (self.num_samples, self.batch_size))
        guide_at = lambda vector: _guide_at(vector, places, self.initial_scale)
        finish = lambda guide, estimate, facts: _finished(guide, posterior, layout, estimate, facts)
        return train_guide(key, self, Fit(elbo, self._schedule(), guide_at, finish, self.num_evidence_draws), around)

    def _schedule(self) -> Schedule:
        return Schedule(self.num_steps, self.learning_rate, self.kl_warmup)


class LayerwiseGuide(MomentGuide):
    """The trained form.

    - `location`: μ.  `factors`: of each layer a square array with C below its diagonal and a on it; what is above has
      no meaning.  `places`: where the layer's weights lie in the flat vector.
    """

    location: Float[Array, " weight"]
    factors: tuple[Float[Array, "_ _"], ...]
    places: tuple[Int[Array, " _"], ...]

    def sample_and_log_density(self, key: PRNGKey) -> tuple[Vector, Scalar]:
        white = jax.random.normal(key, self.location.shape, self.location.dtype)
        vector = self.location
        for factor, where in zip(self.factors, self.places, strict=True):
            vector = vector.at[where].add(cholesky_of(factor) @ white[where])
        return vector, self._log_density_of_white(jnp.sum(white**2))

    def log_density(self, vector: Vector) -> Scalar:
        shift, square = vector - self.location, jnp.zeros((), self.location.dtype)
        for factor, where in zip(self.factors, self.places, strict=True):
            square = square + jnp.sum(solve_triangular(cholesky_of(factor), shift[where], lower=True) ** 2)
        return self._log_density_of_white(square)

    def variance(self) -> Vector:
        variance = jnp.zeros_like(self.location)
        for factor, where in zip(self.factors, self.places, strict=True):
            variance = variance.at[where].set(jnp.sum(cholesky_of(factor) ** 2, axis=1))
        return variance

    def entropy(self) -> Scalar:
        return self._log_volume() + 0.5 * self.location.size * (1 + float(np.log(2 * np.pi)))

    def _log_density_of_white(self, square: Scalar) -> Scalar:
        return -0.5 * square - self._log_volume() - 0.5 * self.location.size * float(np.log(2 * np.pi))

    def _log_volume(self) -> Scalar:
        """½ log |Σ|."""
        return jnp.sum(jnp.stack([jnp.sum(jnp.diag(factor)) for factor in self.factors]))


def cholesky_of(factor: Float[Array, "part part"]) -> Float[Array, "part part"]:
    """L = diag(exp a) (I + C / √n) from the array that is trained."""
    unit = jnp.tril(factor, -1) / len(factor) ** 0.5 + jnp.eye(len(factor), dtype=factor.dtype)
    return jnp.exp(jnp.diag(factor))[:, None] * unit


def layer_places(layout: Layout) -> dict[str, Int[np.ndarray, " _"]]:
    """Where the weights of each block lie, by its name; raises where a block is too large."""
    layers = layout.layers()
    for name, where in layers.items():
        num_bytes = len(where) ** 2 * layout.dtype.itemsize
        if num_bytes > _MOST_BYTES:
            most = int(np.sqrt(_MOST_BYTES / layout.dtype.itemsize))
            raise InputError(
                f"A layer of LayerwiseVI must have at most {most} weights, got {len(where)} in {name}, whose factor "
                f"would take {num_bytes / 2**30:.1f} GiB. Use MeanFieldVI, or smaller layers."
            )
    return layers


def _guide_at(vector: Vector, places: tuple[Array, ...], scale: Array) -> LayerwiseGuide:
    log_scale = jnp.log(scale).astype(vector.dtype)
    factors = tuple(log_scale * jnp.eye(len(where), dtype=vector.dtype) for where in places)
    return LayerwiseGuide(vector, factors, places)


def _finished(guide: Guide, posterior: Posterior, layout: Layout, estimate: LogEvidence, facts: Facts) -> Gaussian:
    assert isinstance(guide, LayerwiseGuide)
    parts = tuple(Full.of_cholesky(cholesky_of(factor)) for factor in guide.factors)
    header = Header.of(posterior)
    covariance = Blocks(parts, guide.places, layout.size)
    return Gaussian(header, posterior, estimate, facts, guide.location, covariance, layout)
