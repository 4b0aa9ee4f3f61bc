"""The table of networks, each small, with the shape of its inputs. Two lines enrol a new network in all laws."""

import equinox as eqx
import jax

from weightscape import networks as nn

# Networks whose output size is open.
NETWORKS = {
    "mlp": (nn.MLP(hidden=(5, 4)), (7, 4)),
    "mlp_layer_norm": (nn.MLP(hidden=(5, 5), skip=True, normalisation=nn.LayerNorm()), (7, 4)),
    "mlp_rms_norm": (nn.MLP(hidden=(6,), activation="silu", normalisation=nn.RMSNorm()), (7, 4)),
    "convnet": (nn.ConvNet(channels=(3, 4), kernel=3, hidden=(5,), activation="tanh"), (7, 8, 9, 2)),
    "convnet_valid": (nn.ConvNet((3,), 3, pool=nn.MaxPool(2), hidden=(), padding="valid"), (7, 8, 6, 1)),
    "convnet_unpooled": (nn.ConvNet(channels=(3,), kernel=2, pool=None, hidden=()), (7, 4, 4, 1)),
    "resnet": (nn.ResNet(blocks=(1, 1), width=4), (7, 8, 6, 3)),
    "lstm": (nn.LSTM(hidden=5), (7, 6, 3)),
    "cnn_lstm": (nn.CNNLSTM(channels=(4, 3), kernel=3, hidden=5, pool=nn.MaxPool(2)), (7, 18, 3)),
    "p4": (nn.P4ConvNet(channels=(3, 4), pool=nn.AveragePool(2)), (7, 6, 6, 2)),
}


def make_module(key):
    """An Equinox module with dropout, which importing switches off."""
    key_first, key_second = jax.random.split(key)
    first, second = eqx.nn.Linear(4, 6, key=key_first), eqx.nn.Linear(6, 3, key=key_second)
    return eqx.nn.Sequential([first, eqx.nn.Lambda(jax.nn.silu), eqx.nn.Dropout(0.5), eqx.nn.LayerNorm(6), second])


# Networks from other libraries, whose output size of three is their own affair.
IMPORTED = {
    "equinox": (nn.from_equinox(make_module(jax.random.key(9)), make=make_module), (7, 4)),
    "equinox_as_is": (nn.from_equinox(make_module(jax.random.key(9))), (7, 4)),
}
