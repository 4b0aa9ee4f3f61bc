"""Heavy-tailed priors, independent for each weight.

    Laplace(b):        exp(−|θ|/b) / (2b)
    StudentT(ν, s):    Γ((ν+1)/2) / (Γ(ν/2) √(νπ) s) · (1 + (θ/s)²/ν)^(−(ν+1)/2)

A Student-t is a normal whose variance is inverse-gamma: τ² ~ InverseGamma(α, β) and θ ~ N(0, τ²) give 2α degrees of
freedom and scale √(β/α). `augmented_student_t` keeps τ as a latent variable of each weight.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require_positive
from weightscape.core.config import registered
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.hierarchical import EVERY_AXIS, Hierarchical
from weightscape.priors.prior import NOTHING, RealPrior
from weightscape.priors.scales import InverseGamma, Root


@registered("priors.Laplace")
class Laplace(RealPrior):
    """θ ~ Laplace(b): variance 2b². Its mode is sparse, its posterior is not.  `scale`: b."""

    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of Laplace", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        log_normaliser = jnp.log(2 * self.scale)
        return tree.total(jax.tree.map(lambda x: -jnp.abs(x) / self.scale - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        drawn = tree.sample_like(key, jax.random.laplace, params_like)
        return jax.tree.map(lambda x: self.scale.astype(x.dtype) * x, drawn)


@registered("priors.StudentT")
class StudentT(RealPrior):
    """θ/s ~ t with ν degrees of freedom: variance s² ν/(ν−2) for ν > 2; ν = 1 is the Cauchy.

    - `degrees`: ν.  `scale`: s.
    """

    degrees: Float[Array, ""] = eqx.field(default=3.0, converter=number)
    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`degrees` of StudentT", self.degrees)
        require_positive("`scale` of StudentT", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        half = (self.degrees + 1) / 2
        log_normaliser = gammaln(self.degrees / 2) - gammaln(half) + jnp.log(self.scale)
        log_normaliser = log_normaliser + 0.5 * jnp.log(self.degrees * np.pi)
        tail = lambda x: half * jnp.log1p((x / self.scale) ** 2 / self.degrees)
        return tree.total(jax.tree.map(lambda x: -tail(x) - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        draw = lambda key, shape, dtype: draw_student_t(key, self.degrees.astype(dtype), shape, dtype)
        return jax.tree.map(lambda x: self.scale.astype(x.dtype) * x, tree.sample_like(key, draw, params_like))


def draw_student_t(key: PRNGKey, degrees: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Independent t_ν variates, t = √(ν (U^(−2/ν) − 1)) cos(2πV) with U and V uniform.

    Exact, and without the rejection loop of `jax.random.t`, which takes seconds to compile.
    Reference: Bailey (1994), Polar generation of random variates with the t-distribution, equation 5.
    """
    key_radius, key_angle = jax.random.split(key)
    u = jax.random.uniform(key_radius, shape, dtype, minval=jnp.finfo(dtype).tiny)
    radius = jnp.sqrt(degrees * jnp.expm1(-2 * jnp.log(u) / degrees))
    return radius * jnp.cos(2 * np.pi * jax.random.uniform(key_angle, shape, dtype))


def augmented_student_t(degrees: float, scale: float) -> Hierarchical:
    """The same density as `StudentT`, with the standard deviation τ of each weight as a latent variable.

    τ² ~ InverseGamma(ν/2, ν s²/2), θ ~ N(0, τ²). Sampling both often mixes better than the marginal's tails.
    """
    square = InverseGamma(degrees / 2, degrees * scale**2 / 2)
    return Hierarchical(Root(square), along=EVERY_AXIS)
