"""The multilayer perceptron.

    h_0 = x,    h_l = φ(N_l(h_{l-1} W_l + b_l)),    outputs = h_{L-1} W_L + b_L

`W_l` has shape (inputs, units). Without a normalisation N_l is the identity. With skip connections a hidden layer that
follows a hidden layer of the same width adds to it: h_l = h_{l-1} + φ(N_l(h_{l-1} W_l + b_l)).

Parameters are a dict of layers: `{"layer0": {"weight": …, "bias": …}, …}`, and beside each hidden layer
`"norm0": {"scale": …, "shift": …}` where there is a normalisation.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import ACTIVATIONS, Activation, activation
from weightscape.networks.dense import apply_dense_points_last, init_dense
from weightscape.networks.network import Network
from weightscape.networks.normalisation import Normalisation
from weightscape.networks.precision import DefaultPrecision, Precision, precision
from weightscape.networks.sizes import as_sizes, check_outputs, check_sizes, known_outputs, settle_outputs


@registered("networks.MLP")
class MLP(Network):
    """A fully connected network of any depth.

    - `hidden`: units of each hidden layer; `()` is a linear model.
    - `activation`: φ, a function or a name such as "tanh" or "relu".
    - `bias`: whether layers have the shifts b_l.
    - `outputs`: the output size; None leaves it open until `Model.condition` reads it off the targets.
    - `skip`: whether hidden layers of equal width have skip connections. The first hidden layer has none: the
      width of the data is no choice of the network.
    - `normalisation`: N_l of the hidden layers, `LayerNorm()` or `RMSNorm()`; None for none.
    - `precision`: how products round, an object or one of "default", "float32", "float16" and "bfloat16".
      Parameters and outputs keep their type.

    Example:
    >>> import jax
    >>> network = MLP(hidden=(16,), activation="tanh", outputs=3)
    >>> params = network.init(jax.random.key(0), jax.numpy.ones((5, 4)))
    >>> network.apply(params, jax.numpy.ones((5, 4))).shape
    (5, 3)
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(16,), converter=as_sizes)
    activation: Activation = eqx.field(static=True, default="tanh", converter=activation)
    bias: bool = eqx.field(static=True, default=True)
    outputs: int | None = eqx.field(static=True, default=None)
    skip: bool = eqx.field(static=True, default=False)
    normalisation: Normalisation | None = None
    precision: Precision = eqx.field(default="default", converter=precision)

    def __check_init__(self):
        check_sizes("`hidden` of MLP", self.hidden)
        check_outputs("MLP", self.outputs)
        skips = any(self._skips(i) for i in range(len(self.hidden)))
        asked = "`hidden` of MLP(skip=True) must have neighbouring layers of equal width"
        require(skips or not self.skip, asked, self.hidden, "Repeat a width, such as (16, 16), or drop `skip`.")

    def init(self, key: PRNGKey, x: Float[Array, "point feature"]) -> Tree:
        """Weights of variance 1 / inputs (LeCun), shifts of zero."""
        sizes = (x.shape[-1], *self.hidden, known_outputs("MLP", self.outputs))
        dtype = jnp.promote_types(x.dtype, jnp.float32)  # inputs that are stored rounded still get whole parameters
        keys = jax.random.split(key, len(sizes) - 1)
        layers = {
            f"layer{i}": init_dense(keys[i], sizes[i], sizes[i + 1], dtype, bias=self.bias)
            for i in range(len(sizes) - 1)
        }
        return layers if self.normalisation is None else layers | self._init_norms(self.normalisation, dtype)

    def apply(self, params: Tree, x: Float[Array, "point feature"]) -> Float[Array, "point output"]:
        if self._gains_by_points_last():
            return self._apply_points_last(params, x.T).T
        h = x
        for i in range(len(self.hidden)):
            z = self._normalised(params, i, h)
            h = h + self.activation(z) if self._skips(i) else self.activation(z)
        return self.precision.dense(params[f"layer{len(self.hidden)}"], h)

    def bind(self, num_outputs: int) -> "MLP":
        return dataclasses.replace(self, outputs=settle_outputs("MLP", self.outputs, num_outputs))

    def _normalised(self, params: Tree, i: int, h: Float[Array, "point input"]) -> Float[Array, "point unit"]:
        """N_i(h W_i + b_i); statistics are taken before anything is rounded."""
        if self.normalisation is None:
            return self.precision.hidden(params[f"layer{i}"], h)
        return self.normalisation.apply(params[f"norm{i}"], self.precision.dense(params[f"layer{i}"], h))

    def _gains_by_points_last(self) -> bool:
        """Whether the other layout is faster: on CPU, where vectorised chains that share the data become one product.

        A gradient takes 0.78 of the time with 4 chains and 1.09 with one alone (`benchmarks/hmc_cpu.md`).
        """
        # Other activations may not act on each unit alone, so they are not given the units along another axis.
        each_unit_alone = self.activation in ACTIVATIONS.values() and self.normalisation is None
        return each_unit_alone and isinstance(self.precision, DefaultPrecision) and jax.default_backend() == "cpu"

    def _apply_points_last(self, params: Tree, h: Float[Array, "feature point"]) -> Float[Array, "output point"]:
        """`apply` with all its arrays transposed."""
        for i in range(len(self.hidden)):
            made = self.activation(apply_dense_points_last(params[f"layer{i}"], h))
            h = h + made if self._skips(i) else made
        return apply_dense_points_last(params[f"layer{len(self.hidden)}"], h)

    def _skips(self, i: int) -> bool:
        return self.skip and i > 0 and self.hidden[i - 1] == self.hidden[i]

    def _init_norms(self, normalisation: Normalisation, dtype: np.dtype) -> Tree:
        return {f"norm{i}": normalisation.init(width, dtype) for i, width in enumerate(self.hidden)}
