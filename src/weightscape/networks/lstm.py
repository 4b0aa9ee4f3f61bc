"""The long short-term memory network for sequences.

    (a_i, a_f, a_g, a_o) = x_t W + h_{t-1} U + b
    c_t = σ(a_f) c_{t-1} + σ(a_i) tanh(a_g),    h_t = σ(a_o) tanh(c_t),    outputs = h_T V + d

from h_0 = c_0 = 0, with i the input gate, f the forget gate, g the candidate and o the output gate. The gates are an
axis of their own, in this order: W has shape (feature, 4, hidden), U (hidden, 4, hidden), b (4, hidden). So a prior can
treat gates apart, and a permutation of the hidden units is one permutation of every axis called hidden.

References: Hochreiter & Schmidhuber (1997); Gers, Schmidhuber & Cummins (2000) for the forget gate.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require_count
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Tree
from weightscape.networks.convolution import require_axes
from weightscape.networks.dense import apply_dense, init_dense
from weightscape.networks.initial import scaled_normal
from weightscape.networks.network import Network
from weightscape.networks.sizes import check_outputs, known_outputs, settle_outputs

GATES = ("input", "forget", "candidate", "output")
"""The gates in the order of their axis."""

_INPUT, _FORGET, _CANDIDATE, _OUTPUT = range(len(GATES))


@registered("networks.LSTM")
class LSTM(Network):
    """One recurrent layer that reads a sequence, and a dense layer on its last state.

    - `hidden`: size of the state h_t.
    - `outputs`: the output size; None leaves it open.

    Parameters: `{"lstm": {"input_weight": W, "recurrent_weight": U, "bias": b}, "output": {"weight": V, "bias": d}}`.
    The forget gate's bias starts at one, so that memory lasts (Jozefowicz et al. 2015); a prior knows nothing of that.

    Example:
    >>> network = LSTM(hidden=8, outputs=1)
    >>> series = jnp.ones((2, 5, 3))
    >>> network.apply(network.init(jax.random.key(0), series), series).shape
    (2, 1)
    """

    hidden: int = eqx.field(static=True, default=32)
    outputs: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_count("`hidden` of LSTM", self.hidden)
        check_outputs("LSTM", self.outputs)

    def init(self, key: PRNGKey, x: Float[Array, "point time feature"]) -> Tree:
        """Weights of variance 1 / inputs, shifts of zero, but one for the forget gate."""
        require_axes("LSTM", x, ("point", "time", "feature"))
        num_outputs = known_outputs("LSTM", self.outputs)
        key_lstm, key_output = jax.random.split(key)
        recurrent = init_recurrence(key_lstm, x.shape[-1], self.hidden, x.dtype)
        return {"lstm": recurrent, "output": init_dense(key_output, self.hidden, num_outputs, x.dtype)}

    def apply(self, params: Tree, x: Float[Array, "point time feature"]) -> Float[Array, "point output"]:
        return apply_dense(params["output"], last_state(params["lstm"], x))

    def bind(self, num_outputs: int) -> "LSTM":
        return dataclasses.replace(self, outputs=settle_outputs("LSTM", self.outputs, num_outputs))


def init_recurrence(key: PRNGKey, num_features: int, hidden: int, dtype: np.dtype) -> Tree:
    """W, U and b by name."""
    key_input, key_recurrent = jax.random.split(key)
    num_gates = len(GATES)
    return {
        "input_weight": scaled_normal(key_input, (num_features, num_gates, hidden), num_features, dtype),
        "recurrent_weight": scaled_normal(key_recurrent, (hidden, num_gates, hidden), hidden, dtype),
        "bias": jnp.zeros((num_gates, hidden), dtype).at[_FORGET].set(1.0),
    }


def last_state(params: Tree, x: Float[Array, "point time feature"]) -> Float[Array, "point hidden"]:
    """h_T, the state after the whole sequence."""
    inputs = jnp.tensordot(x, params["input_weight"], axes=1) + params["bias"][None, None]
    zeros = jnp.zeros((inputs.shape[0], inputs.shape[-1]), inputs.dtype)

    def step(state, inputs_now):
        h, c = state
        gates = inputs_now + jnp.tensordot(h, params["recurrent_weight"], axes=1)
        written = jax.nn.sigmoid(gates[:, _INPUT]) * jnp.tanh(gates[:, _CANDIDATE])
        c = jax.nn.sigmoid(gates[:, _FORGET]) * c + written
        return (jax.nn.sigmoid(gates[:, _OUTPUT]) * jnp.tanh(c), c), None

    (h, _), _ = jax.lax.scan(step, (zeros, zeros), jnp.moveaxis(inputs, 1, 0))
    return h
