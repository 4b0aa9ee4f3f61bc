"""The wide limit: with fan-in-scaled normal weights, a network's outputs become a Gaussian process.

Under `FanInNormal(σ, σ_b)` the outputs of an MLP have mean zero and, as its hidden layers widen, covariance

    K_0(x, x')     = σ_b² + σ² x·x' / inputs
    K_{l+1}(x, x') = σ_b² + σ² E[φ(u) φ(v)],     (u, v) ~ N(0, K_l restricted to {x, x'})

with K_L for L hidden layers. K_1 is exact at every width; deeper ones differ by O(1/H) at width H. What tells a narrow
network with one hidden layer from the limit is its fourth moment: given the hidden units the output is normal with
variance S = σ_b² + σ²/H Σ_j φ(u_j)², so its excess kurtosis is

    3 Var(S) / E[S]² = 3 σ⁴ Var(φ(u)²) / (H K_1²).

References: Neal (1996), Bayesian Learning for Neural Networks, chapter 2; Williams (1997), Computing with infinite
networks, equation 11 (erf); Cho & Saul (2009), Kernel methods for deep learning, equation 6 (ReLU).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import InputError, require, require_count, require_positive, shape_of
from weightscape.core.numbers import number
from weightscape.core.types import Scalar
from weightscape.networks.activations import Activation
from weightscape.networks.activations import activation as resolve

ExpectedProduct = Callable[[Array, Array, Array], Array]


def wide_kernel(
    x: Float[Array, "point input"],
    other: Float[Array, "other input"],
    *,
    activation: str | Activation,
    depth: int,
    scale: ArrayLike,
    bias_scale: ArrayLike,
) -> Float[Array, "point other"]:
    """K_L(x, x') between all rows of `x` and of `other`.

    - `activation`: φ, "relu" or "erf".  `depth`: L, the number of hidden layers; 0 is a linear model.
    - `scale`, `bias_scale`: σ and σ_b, as in `FanInNormal`.

    Symmetric and positive semi-definite where `other` is `x`; differentiable in everything but the depth.

    Example:
    >>> x = jnp.array([[0.5], [-1.0]])
    >>> wide_kernel(x, x, activation="relu", depth=2, scale=1.4, bias_scale=0.5).shape
    (2, 2)
    """
    expected_product = _expected_product(activation)
    require_count("`depth` of wide_kernel", depth, least=0)
    _require_scales("wide_kernel", scale, bias_scale)
    require(x.shape[1] == other.shape[1], f"`other` of wide_kernel must have {x.shape[1]} inputs", shape_of(other),
            "Pass points of the same space.")  # fmt: skip
    return _kernel(x, other, expected_product, depth, number(scale), number(bias_scale))


def arc_cosine(
    left: Float[Array, "*#shape"], right: Float[Array, "*#shape"], covariance: Float[Array, "*#shape"]
) -> Float[Array, "*shape"]:
    """E[φ(u) φ(v)] for ReLU: √(k k') (sin t + (π − t) cos t) / 2π, with cos t the correlation of u and v.

    `left` and `right`: the variances k of u and k' of v.  `covariance`: that of u with v.
    """
    norm = jnp.sqrt(left) * jnp.sqrt(right)
    cosine = jnp.clip(covariance / norm, -1.0, 1.0)
    square = 1 - cosine**2
    # A root has no gradient at zero, which is where x meets itself; there the sine's own part of it cancels.
    sine = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    angle = jnp.arctan2(sine, cosine)
    return norm * (sine + (np.pi - angle) * cosine) / (2 * np.pi)


def arcsine(
    left: Float[Array, "*#shape"], right: Float[Array, "*#shape"], covariance: Float[Array, "*#shape"]
) -> Float[Array, "*shape"]:
    """E[φ(u) φ(v)] for erf: (2/π) arcsin(2 c / √((1 + 2k)(1 + 2k'))); arguments as in `arc_cosine`."""
    return 2 / np.pi * jnp.arcsin(2 * covariance / jnp.sqrt((1 + 2 * left) * (1 + 2 * right)))


def excess_kurtosis(
    x: Float[Array, "point input"],
    *,
    width: int,
    activation: str | Activation,
    scale: ArrayLike,
    bias_scale: ArrayLike,
) -> Float[Array, " point"]:
    """The excess kurtosis of the output at each point, with one hidden layer of H = `width` units: ∝ 1/H.

    For any activation φ, by the trapezoidal rule over u. That of a normal output is 0; other arguments as in
    `wide_kernel`.
    """
    require_count("`width` of excess_kurtosis", width)
    _require_scales("excess_kurtosis", scale, bias_scale)
    at = lambda point: _single_unit_kurtosis(point, resolve(activation), number(scale), number(bias_scale))
    return jax.vmap(at)(x) / width


@eqx.filter_jit
def _kernel(
    x: Array, other: Array, expected_product: ExpectedProduct, depth: int, scale: Array, bias_scale: Array
) -> Array:
    grow = lambda moment: bias_scale**2 + scale**2 * moment
    left, right = grow(jnp.mean(x**2, axis=1)), grow(jnp.mean(other**2, axis=1))
    covariance = grow(x @ other.T / x.shape[1])
    for _ in range(depth):
        covariance = grow(expected_product(left[:, None], right[None, :], covariance))
        left, right = grow(expected_product(left, left, left)), grow(expected_product(right, right, right))
    return covariance


@eqx.filter_jit
def _single_unit_kurtosis(point: Float[Array, " input"], phi: Activation, scale: Array, bias_scale: Array) -> Scalar:
    """3 σ⁴ Var(φ²) / K_1², the excess kurtosis with a single hidden unit."""
    # Converges faster than any power of the spacing, for ReLU too: zero is a node and φ² is even on either side.
    standard = jnp.linspace(-10.0, 10.0, 2001)
    density = jnp.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi)
    squares = phi(jnp.sqrt(bias_scale**2 + scale**2 * jnp.mean(point**2)) * standard) ** 2
    second, fourth = (jnp.trapezoid(density * moment, standard) for moment in (squares, squares**2))
    return 3 * scale**4 * (fourth - second**2) / (bias_scale**2 + scale**2 * second) ** 2


_CLOSED_FORMS: dict[Activation, ExpectedProduct] = {resolve("relu"): arc_cosine, resolve("erf"): arcsine}


def _expected_product(choice: str | Activation) -> ExpectedProduct:
    phi = resolve(choice)
    if phi not in _CLOSED_FORMS:
        name = choice if isinstance(choice, str) else getattr(choice, "__name__", repr(choice))
        raise InputError(f'`activation` of wide_kernel must have a closed form, got {name}. Use "relu" or "erf".')
    return _CLOSED_FORMS[phi]


def _require_scales(function: str, scale: ArrayLike, bias_scale: ArrayLike) -> None:
    require_positive(f"`scale` of {function}", scale)
    require_positive(f"`bias_scale` of {function}", bias_scale)
