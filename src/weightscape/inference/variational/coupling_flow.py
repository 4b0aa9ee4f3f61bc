"""A coupling flow: a density made from a standard normal by invertible layers that each move half the coordinates.

    z ~ N(0, I),   vector = μ + e^a ⊙ (f_K ∘ … ∘ f_1)(z),   log q(vector) = log N(z) − log |det ∂vector/∂z|

    f_k(u, v) = π_k(u, v ⊙ exp s_k(u) + t_k(u)),            log |det ∂f_k| = Σ s_k(u)

s_k and t_k are small networks of the half u that a layer leaves alone, so that both directions of f_k, and its
determinant, cost one pass through them. The permutations π_k exchange the halves, until each coordinate has been in u,
and then choose new halves at random. A new flow is the identity: q starts as N(μ, e^{2a}).

Reference: Dinh, Sohl-Dickstein & Bengio (2017), Density estimation using Real NVP, equations 6 to 8.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flowjax.bijections import AbstractBijection, Chain, Coupling, Permute, Scan
from jaxtyping import Array, ArrayLike, Float, Int, Key

from weightscape.core import PRNGKey, Scalar
from weightscape.core.checks import require, shape_of
from weightscape.inference.variational.guide import Guide, Vector

_LARGEST_LOG_SCALE = 3.0
"""Of one coordinate in one layer; a bound on |s| keeps the first, rough steps of training finite."""


_NUM_TRIALS, _LARGEST_ERROR = 100, 0.05

_ARRAYS = ("hidden_weight", "hidden_bias", "last_weight", "last_bias", "order", "inverse_order")


class FlowSizes(NamedTuple):
    """How many coordinates and layers a flow has, and hidden units each layer's network."""

    num_weights: int
    num_layers: int
    width: int


class CouplingGuide(Guide):
    """The flow as a guide.

    - `location`: μ.  `log_scale`: a.  `layers`: f_1 to f_K, their arrays with a leading axis over layers.
    """

    location: Float[Array, " weight"]
    log_scale: Float[Array, " weight"]
    layers: Scan

    def sample_and_log_density(self, key: PRNGKey) -> tuple[Vector, Scalar]:
        white = jax.random.normal(key, self.location.shape, self.location.dtype)
        vector, log_determinant = self.transform(white)
        return vector, _log_standard_normal(white) - log_determinant

    def log_density(self, vector: Vector) -> Scalar:
        white, log_determinant = self.invert(vector)
        return _log_standard_normal(white) + log_determinant

    def transform(self, white: Vector) -> tuple[Vector, Scalar]:
        """The vector at z, and log |det ∂vector/∂z|."""
        inner, log_determinant = self.layers.transform_and_log_det(white)
        vector = self.location + jnp.exp(self.log_scale) * inner
        return vector, (log_determinant + jnp.sum(self.log_scale)).astype(white.dtype)

    def invert(self, vector: Vector) -> tuple[Vector, Scalar]:
        """z at the vector, and log |det ∂z/∂vector|."""
        inner = (vector - self.location) * jnp.exp(-self.log_scale)
        white, log_determinant = self.layers.inverse_and_log_det(inner)
        return white, (log_determinant - jnp.sum(self.log_scale)).astype(vector.dtype)


class ScaleAndShift(AbstractBijection):
    """v ↦ v exp(s) + t of one coordinate, with s = 3 tanh(r / 3).  `raw_log_scale`: r.  `shift`: t."""

    shift: Float[Array, "*coordinate"]
    raw_log_scale: Float[Array, "*coordinate"]
    shape: tuple[int, ...] = ()
    cond_shape: tuple[int, ...] | None = None

    def transform_and_log_det(self, x: ArrayLike, condition: ArrayLike | None = None) -> tuple[Array, Array]:
        log_scale = self._log_scale()
        return jnp.asarray(x) * jnp.exp(log_scale) + self.shift, log_scale

    def inverse_and_log_det(self, y: ArrayLike, condition: ArrayLike | None = None) -> tuple[Array, Array]:
        log_scale = self._log_scale()
        return (jnp.asarray(y) - self.shift) * jnp.exp(-log_scale), -log_scale

    def _log_scale(self) -> Float[Array, "*coordinate"]:
        return _LARGEST_LOG_SCALE * jnp.tanh(self.raw_log_scale / _LARGEST_LOG_SCALE)


class Conditioner(eqx.Module):
    """The network of one layer: (t, r) = W₂ silu(W₁ u / √n + b₁) / √width + b₂, of n coordinates u.

    The roots make a step of η in every weight change the outputs by about η, at every width and number of coordinates:
    Adam's steps have one size for all numbers. As x = silu(x) − silu(−x), linear maps are in the family, and with them
    Gaussians of any covariance.
    """

    hidden_weight: Float[Array, "*layer width fixed"]
    hidden_bias: Float[Array, "*layer width"]
    last_weight: Float[Array, "*layer output width"]
    last_bias: Float[Array, "*layer output"]

    def __call__(self, fixed: Float[Array, " fixed"]) -> Float[Array, " output"]:
        width, num_fixed = self.hidden_weight.shape
        hidden = jax.nn.silu(self.hidden_weight @ fixed / num_fixed**0.5 + self.hidden_bias)
        return self.last_weight @ hidden / width**0.5 + self.last_bias


@eqx.filter_jit
def coupling_layers(key: PRNGKey, sizes: FlowSizes, dtype: np.dtype) -> Scan:
    """Layers that are the identity, with random hidden units and random halves."""
    key_orders, key_coupling = jax.random.split(key)
    orders = _orders(key_orders, sizes)
    # The arrays of one layer give way to those of all.
    permute = Permute(np.arange(sizes.num_weights))
    places = lambda permute: (permute.permutation, permute.inverse_permutation)
    permute = eqx.tree_at(places, permute, ((orders,), (jnp.argsort(orders, axis=1),)))
    return Scan(Chain([_coupling(key_coupling, sizes, dtype), permute]))


def require_inverse(key: PRNGKey, guide: CouplingGuide) -> None:
    """Raise where rounding has destroyed the inverse, as densities of given points would then be wrong."""
    error = float(jnp.max(_differences(jax.random.split(key, _NUM_TRIALS), guide)))
    asked = f"log q of a trained flow must be the same in both directions, within {_LARGEST_ERROR} nats"
    remedy = "Lower `learning_rate`, take fewer layers, or compute in double precision."
    require(error < _LARGEST_ERROR, asked, f"a difference of {error:.2g}", remedy)


@eqx.filter_jit
def _differences(keys: Key[Array, " draw"], guide: CouplingGuide) -> Float[Array, " draw"]:
    def one(key):
        vector, log_density = guide.sample_and_log_density(key)
        return jnp.abs(guide.log_density(vector) - log_density)

    return jax.lax.map(one, keys)


def layer_arrays(layers: Scan) -> dict[str, Any]:
    """All arrays of the layers, by names of our own."""
    return dict(zip(_ARRAYS, _arrays(layers), strict=True))


def layers_of(arrays: Mapping[str, np.ndarray], sizes: FlowSizes, dtype: np.dtype) -> Scan:
    """The layers that have these arrays; raises where one is missing or of another shape than `sizes` say."""
    like = eqx.filter_eval_shape(coupling_layers, jax.random.key(0), sizes, dtype)
    wanted = {name: leaf.shape for name, leaf in layer_arrays(like).items()}
    came = {name: shape_of(leaf) for name, leaf in arrays.items()}
    remedy = "The folder is damaged or was written by another version; run again."
    require(came == wanted, f"The arrays of a flow of {sizes} must have the shapes {wanted}", came, remedy)
    return eqx.tree_at(_arrays, like, tuple(jnp.asarray(arrays[name]) for name in _ARRAYS))


def _arrays(layers: Scan) -> tuple[Any, ...]:
    """The arrays, or their shapes, in the order of `_ARRAYS`."""
    chain = layers.bijection
    assert isinstance(chain, Chain)
    coupling, permute = chain.bijections
    assert isinstance(coupling, Coupling) and isinstance(permute, Permute)
    return (*jax.tree.leaves(coupling.conditioner), permute.permutation[0], permute.inverse_permutation[0])


def _coupling(key: PRNGKey, sizes: FlowSizes, dtype: np.dtype) -> Coupling:
    """The couplings of all layers. Last weights of zero make s = 0 and t = 0."""
    num_weights, num_layers, width = sizes
    num_fixed = num_weights // 2
    num_outputs = 2 * (num_weights - num_fixed)
    transformer = ScaleAndShift(shift=jnp.zeros(()), raw_log_scale=jnp.zeros(()))
    coupling = Coupling(
        jax.random.key(0), transformer=transformer, untransformed_dim=num_fixed, dim=num_weights, nn_width=1, nn_depth=1
    )
    conditioner = Conditioner(
        jax.random.normal(key, (num_layers, width, num_fixed), dtype),
        jnp.zeros((num_layers, width), dtype),
        jnp.zeros((num_layers, num_outputs, width), dtype),
        jnp.zeros((num_layers, num_outputs), dtype),
    )
    # Its network gives way to ours, so its key does not matter; its function, which holds arrays that are traced here,
    # to one that holds none.
    own = lambda coupling: (coupling.conditioner, coupling.transformer_constructor)
    return eqx.tree_at(own, coupling, (conditioner, _scale_and_shift))


def _scale_and_shift(numbers: Float[Array, "2"]) -> ScaleAndShift:
    return ScaleAndShift(shift=numbers[0], raw_log_scale=numbers[1])


def _orders(key: PRNGKey, sizes: FlowSizes) -> Int[Array, "layer weight"]:
    """The order of coordinates after each layer: rolled until each was in the fixed half, then shuffled."""
    num_weights, num_layers, _ = sizes
    shuffle = lambda key: jax.random.permutation(key, num_weights)
    shuffled = jax.vmap(shuffle)(jax.random.split(key, num_layers))
    rolled = jnp.roll(jnp.arange(num_weights), -(num_weights // 2))
    period = 2 + num_weights % 2
    is_last = jnp.arange(num_layers)[:, None] % period == period - 1
    return jnp.where(is_last, shuffled, rolled[None, :])


def _log_standard_normal(white: Vector) -> Scalar:
    return -0.5 * jnp.sum(white**2) - 0.5 * white.size * float(np.log(2 * np.pi))
