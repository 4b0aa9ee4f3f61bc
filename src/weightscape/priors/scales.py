"""Densities over positive numbers: priors for scales.

Gamma(a, r):            r^a τ^(a−1) exp(−r τ) / Γ(a)
InverseGamma(a, b):     b^a τ^(−a−1) exp(−b / τ) / Γ(a)
HalfNormal(s):          2 N(τ; 0, s²)
HalfCauchy(s):          2 / (π s (1 + (τ/s)²))
LogNormal(m, s):        N(log τ; m, s²) / τ
Root(p):                τ with τ² ~ p, so 2 τ p(τ²)
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
from weightscape.priors.prior import NOTHING, PositivePrior


@registered("priors.Gamma")
class Gamma(PositivePrior):
    """τ ~ Gamma(a, r), independent for each entry; mean a/r, variance a/r².

    - `concentration`: a.  `rate`: r.
    """

    concentration: Float[Array, ""] = eqx.field(converter=number)
    rate: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`concentration` of Gamma", self.concentration)
        require_positive("`rate` of Gamma", self.rate)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        a, r = self.concentration, self.rate
        log_normaliser = gammaln(a) - a * jnp.log(r)
        return tree.total(jax.tree.map(lambda x: (a - 1) * jnp.log(x) - r * x - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        draw = lambda key, shape, dtype: jax.random.gamma(key, self.concentration.astype(dtype), shape, dtype)
        return jax.tree.map(lambda x: x / self.rate.astype(x.dtype), tree.sample_like(key, draw, params_like))


@registered("priors.InverseGamma")
class InverseGamma(PositivePrior):
    """τ ~ InverseGamma(a, b): 1/τ ~ Gamma(a, rate b); mean b/(a−1) for a > 1.

    - `concentration`: a.  `scale`: b.
    """

    concentration: Float[Array, ""] = eqx.field(converter=number)
    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`concentration` of InverseGamma", self.concentration)
        require_positive("`scale` of InverseGamma", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        a, b = self.concentration, self.scale
        log_normaliser = gammaln(a) - a * jnp.log(b)
        return tree.total(jax.tree.map(lambda x: -(a + 1) * jnp.log(x) - b / x - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        draw = lambda key, shape, dtype: jax.random.gamma(key, self.concentration.astype(dtype), shape, dtype)
        return jax.tree.map(lambda x: self.scale.astype(x.dtype) / x, tree.sample_like(key, draw, params_like))


@registered("priors.HalfNormal")
class HalfNormal(PositivePrior):
    """τ = s |z| with z ~ N(0, 1); variance s² (1 − 2/π).  `scale`: s."""

    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of HalfNormal", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        log_normaliser = jnp.log(self.scale) + 0.5 * np.log(np.pi / 2)
        return tree.total(jax.tree.map(lambda x: -0.5 * (x / self.scale) ** 2 - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        scaled = lambda x: self.scale.astype(x.dtype) * jnp.abs(x)
        return jax.tree.map(scaled, tree.normal_like(key, params_like))


@registered("priors.HalfCauchy")
class HalfCauchy(PositivePrior):
    """τ = s |c| with c standard Cauchy: no mean; median s.  `scale`: s."""

    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of HalfCauchy", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        log_normaliser = jnp.log(self.scale) + np.log(np.pi / 2)
        return tree.total(jax.tree.map(lambda x: -jnp.log1p((x / self.scale) ** 2) - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        scaled = lambda x: self.scale.astype(x.dtype) * jnp.abs(x)
        return jax.tree.map(scaled, tree.sample_like(key, jax.random.cauchy, params_like))


@registered("priors.LogNormal")
class LogNormal(PositivePrior):
    """log τ ~ N(m, s²).  `location`: m.  `scale`: s."""

    location: Float[Array, ""] = eqx.field(default=0.0, converter=number)
    scale: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_positive("`scale` of LogNormal", self.scale)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        log_normaliser = jnp.log(self.scale) + 0.5 * np.log(2 * np.pi)
        standardised = lambda x: (jnp.log(x) - self.location) / self.scale
        return tree.total(jax.tree.map(lambda x: -0.5 * standardised(x) ** 2 - jnp.log(x) - log_normaliser, params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        placed = lambda x: jnp.exp(self.location.astype(x.dtype) + self.scale.astype(x.dtype) * x)
        return jax.tree.map(placed, tree.normal_like(key, params_like))


@registered("priors.Root")
class Root(PositivePrior):
    """τ with τ² ~ `square`: a prior of a variance becomes one of a standard deviation."""

    square: PositivePrior

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        squares = jax.tree.map(jnp.square, params)
        return self.square.log_density(squares) + tree.total(jax.tree.map(lambda x: jnp.log(2 * x), params))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        return jax.tree.map(jnp.sqrt, self.square.sample(key, params_like))
