"""Convolutions over time, then a recurrent layer: the first sees local patterns, the second their order.

    h_0 = x,    h_l = pool(φ(K_l ∗ h_{l-1} + b_l)),    outputs = (last state of an LSTM over h_L) V + d

Reference: Izmailov et al. (2021), What Are Bayesian Neural Network Posteriors Really Like?, whose network for IMDB is,
after an embedding of the words, CNNLSTM(channels=(64,), kernel=5, pool=MaxPool(4), hidden=128, padding="valid").
"""

import dataclasses

import equinox as eqx
import jax
from jaxtyping import Array, Float

from weightscape.core.checks import require_count
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.activations import Activation, activation
from weightscape.networks.convolution import apply_convolution, check_padding, init_convolution, require_axes
from weightscape.networks.dense import apply_dense, init_dense
from weightscape.networks.lstm import init_recurrence, last_state
from weightscape.networks.network import Network
from weightscape.networks.pooling import Pool
from weightscape.networks.sizes import as_sizes, check_outputs, check_sizes, known_outputs, settle_outputs


@registered("networks.CNNLSTM")
class CNNLSTM(Network):
    """Convolutions over time with pooling, an LSTM, and a dense layer on its last state.

    - `channels`: filters of each convolution.  `kernel`: steps of time that a filter sees.
    - `pool`: after each convolution, `AveragePool(2)` or `MaxPool(2)`; None for none.
    - `hidden`: size of the LSTM's state.
    - `activation`: φ, a function or a name.
    - `padding`: "same" keeps the number of steps, "valid" loses kernel − 1.
    - `outputs`: the output size; None leaves it open.

    Parameters: `{"conv0": {"kernel": (time, in, out), "bias": …}, …, "lstm": …, "output": …}`; the last two are as in
    `LSTM`.

    Example:
    >>> network = CNNLSTM(channels=(4,), hidden=8, outputs=1)
    >>> series = jax.numpy.ones((2, 10, 3))
    >>> network.apply(network.init(jax.random.key(0), series), series).shape
    (2, 1)
    """

    channels: tuple[int, ...] = eqx.field(static=True, default=(16,), converter=as_sizes)
    kernel: int = eqx.field(static=True, default=5)
    pool: Pool | None = None
    hidden: int = eqx.field(static=True, default=32)
    activation: Activation = eqx.field(static=True, default="relu", converter=activation)
    padding: str = eqx.field(static=True, default="same")
    outputs: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_sizes("`channels` of CNNLSTM", self.channels, least=1)
        require_count("`kernel` of CNNLSTM", self.kernel)
        require_count("`hidden` of CNNLSTM", self.hidden)
        check_padding("CNNLSTM", self.padding)
        check_outputs("CNNLSTM", self.outputs)

    def init(self, key: PRNGKey, x: Float[Array, "point time feature"]) -> Tree:
        """Weights of variance 1 / inputs, shifts of zero, but one for the forget gate."""
        require_axes("CNNLSTM", x, ("point", "time", "feature"))
        num_outputs = known_outputs("CNNLSTM", self.outputs)
        key_convolutions, key_lstm, key_output = jax.random.split(key, 3)
        sizes = (x.shape[-1], *self.channels)
        keys = jax.random.split(key_convolutions, len(self.channels))
        convolutions = {
            f"conv{i}": init_convolution(keys[i], (self.kernel,), sizes[i], sizes[i + 1], x.dtype)
            for i in range(len(self.channels))
        }
        return convolutions | {
            "lstm": init_recurrence(key_lstm, sizes[-1], self.hidden, x.dtype),
            "output": init_dense(key_output, self.hidden, num_outputs, x.dtype),
        }

    def apply(self, params: Tree, x: Float[Array, "point time feature"]) -> Float[Array, "point output"]:
        h = x
        for i in range(len(self.channels)):
            h = self.activation(apply_convolution(params[f"conv{i}"], h, padding=self.padding))
            h = h if self.pool is None else self.pool.apply(h)
        return apply_dense(params["output"], last_state(params["lstm"], h))

    def bind(self, num_outputs: int) -> "CNNLSTM":
        return dataclasses.replace(self, outputs=settle_outputs("CNNLSTM", self.outputs, num_outputs))
