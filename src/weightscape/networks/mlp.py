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
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation, activation
from weightscape.networks.dense import apply_dense, init_dense
from weightscape.networks.network import Network
from weightscape.networks.normalisation import Normalisation
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

    def __check_init__(self):
        check_sizes("`hidden` of MLP", self.hidden)
        check_outputs("MLP", self.outputs)
        skips = any(self._skips(i) for i in range(len(self.hidden)))
        asked = "`hidden` of MLP(skip=True) must have neighbouring layers of equal width"
        require(skips or not self.skip, asked, self.hidden, "Repeat a width, such as (16, 16), or drop `skip`.")

    def init(self, key: PRNGKey, x: Float[Array, "point feature"]) -> Tree:
        """Weights of variance 1 / inputs (LeCun), shifts of zero."""
        sizes = (x.shape[-1], *self.hidden, known_outputs("MLP", self.outputs))
        keys = jax.random.split(key, len(sizes) - 1)
        layers = {
            f"layer{i}": init_dense(keys[i], sizes[i], sizes[i + 1], x.dtype, bias=self.bias)
            for i in range(len(sizes) - 1)
        }
        return layers if self.normalisation is None else layers | self._init_norms(self.normalisation, x)

    def apply(self, params: Tree, x: Float[Array, "point feature"]) -> Float[Array, "point output"]:
        h = x
        for i in range(len(self.hidden)):
            z = apply_dense(params[f"layer{i}"], h)
            if self.normalisation is not None:
                z = self.normalisation.apply(params[f"norm{i}"], z)
            h = h + self.activation(z) if self._skips(i) else self.activation(z)
        return apply_dense(params[f"layer{len(self.hidden)}"], h)

    def bind(self, num_outputs: int) -> "MLP":
        return dataclasses.replace(self, outputs=settle_outputs("MLP", self.outputs, num_outputs))

    def _skips(self, i: int) -> bool:
        return self.skip and i > 0 and self.hidden[i - 1] == self.hidden[i]

    def _init_norms(self, normalisation: Normalisation, x: Array) -> Tree:
        return {f"norm{i}": normalisation.init(width, x.dtype) for i, width in enumerate(self.hidden)}
