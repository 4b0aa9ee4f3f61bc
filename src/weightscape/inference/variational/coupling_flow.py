"""A coupling flow: a density made from a standard normal by invertible layers that each move half the coordinates.

    z ~ N(0, I),   vector = μ + e^a ⊙ (f_K ∘ … ∘ f_1)(z),   log q(vector) = log N(z) − log |det ∂vector/∂z|

    f_k(u, v) = π_k(u, v ⊙ exp s_k(u) + t_k(u)),            log |det ∂f_k| = Σ s_k(u)

s_k and t_k are small networks of the half u that a layer leaves alone, so that both directions of f_k, and its
determinant, cost one pass through them. The permutations π_k exchange the halves, until each coordinate has been in u,
and then choose new halves at random. A new flow is the identity: q starts as N(μ, e^{2a}).

Reference: Dinh, Sohl-Dickstein & Bengio (2017), Density estimation using Real NVP, equations 6 to 8.
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flowjax.bijections import AbstractBijection, Chain, Coupling, Permute, Scan
from jaxtyping import Array, ArrayLike, Float, Int

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


def coupling_layers(key: PRNGKey, sizes: FlowSizes, dtype: np.dtype) -> Scan:
    """Layers that are the identity, with random hidden units and random halves."""
    key_halves, key_networks = jax.random.split(key)
    one = lambda key, order: Chain([_coupling(key, sizes, dtype), Permute(order)])
    keys = jax.random.split(key_networks, sizes.num_layers)
    return Scan(eqx.filter_vmap(one)(keys, _orders(key_halves, sizes)))


def require_inverse(key: PRNGKey, guide: CouplingGuide) -> None:
    """Raise where rounding has destroyed the inverse, as densities of given points would then be wrong."""
    vectors, there = jax.lax.map(guide.sample_and_log_density, jax.random.split(key, _NUM_TRIALS))
    back = jax.lax.map(guide.log_density, vectors)
    error = float(jnp.max(jnp.abs(back - there)))
    asked = f"log q of a trained flow must be the same in both directions, within {_LARGEST_ERROR} nats"
    remedy = "Lower `learning_rate`, take fewer layers, or compute in double precision."
    require(error < _LARGEST_ERROR, asked, f"a difference of {error:.2g}", remedy)


def layer_arrays(layers: Scan) -> dict[str, Array]:
    """All arrays of the layers, by names of our own."""
    return dict(zip(_ARRAYS, _arrays(layers), strict=True))


def layers_of(arrays: Mapping[str, Array], sizes: FlowSizes, dtype: np.dtype) -> Scan:
    """The layers that have these arrays; raises where one is missing or of another shape than `sizes` say."""
    like = eqx.filter_eval_shape(coupling_layers, jax.random.key(0), sizes, dtype)
    wanted = {name: (leaf.shape, str(leaf.dtype)) for name, leaf in layer_arrays(like).items()}
    came = {name: (shape_of(leaf), str(leaf.dtype)) for name, leaf in arrays.items()}
    remedy = "The folder is damaged or was written by another version; run again."
    require(came == wanted, f"The arrays of a flow of {sizes} must be {wanted}", came, remedy)
    return eqx.tree_at(_arrays, like, tuple(jnp.asarray(arrays[name]) for name in _ARRAYS))


def _arrays(layers: Scan) -> tuple[Array, ...]:
    chain = layers.bijection
    assert isinstance(chain, Chain)
    coupling, permute = chain.bijections
    assert isinstance(coupling, Coupling) and isinstance(permute, Permute)
    return (*jax.tree.leaves(coupling.conditioner), permute.permutation[0], permute.inverse_permutation[0])


def _coupling(key: PRNGKey, sizes: FlowSizes, dtype: np.dtype) -> Coupling:
    num_fixed = sizes.num_weights // 2
    coupling = Coupling(
        key,
        transformer=ScaleAndShift(shift=jnp.zeros(()), raw_log_scale=jnp.zeros(())),
        untransformed_dim=num_fixed,
        dim=sizes.num_weights,
        nn_width=1,  # its network is replaced
        nn_depth=1,
    )
    num_outputs = 2 * (sizes.num_weights - num_fixed)
    network = Conditioner(
        jax.random.normal(key, (sizes.width, num_fixed), dtype),
        jnp.zeros((sizes.width,), dtype),
        jnp.zeros((num_outputs, sizes.width), dtype),
        jnp.zeros((num_outputs,), dtype),
    )
    # A function of this module in place of one made anew for each layer: equal flows then share compiled programs.
    made = lambda coupling: (coupling.conditioner, coupling.transformer_constructor)
    return eqx.tree_at(made, coupling, (network, _scale_and_shift))


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
