"""Networks whose symmetries are known, each small, with its inputs and its groups: sizes and kinds in the order of the
program. Two lines enrol a network in all laws."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from weightscape import networks as nn

P, PS, PF, PSF = (
    ("permutation",),
    ("permutation", "scaling"),
    ("permutation", "sign"),
    ("permutation", "scaling", "sign"),
)
S, F, SF = ("scaling",), ("sign",), ("scaling", "sign")  # of one unit, which has nothing to permute


class Case(NamedTuple):
    """A network, its inputs, and what should be found: (size, kinds) of each group."""

    network: nn.Network
    x: np.ndarray
    groups: tuple[tuple[int, tuple[str, ...]], ...]


def normal(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def function(apply, **shapes):
    """A network from a function and the shapes of its weights."""

    def init(key, x):
        keys = jax.random.split(key, len(shapes))
        draw = lambda k, s: jax.random.normal(k, s, x.dtype) / max(s[0], 1) ** 0.5
        return {name: draw(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}

    return nn.Function(init, apply)


def at(vector, like):
    """A vector along the last axis of an array: ranks are never promoted."""
    return vector.reshape((1,) * (like.ndim - 1) + vector.shape)


def split_lstm(params, x):
    """Gates side by side along one axis, and inputs and state in one product."""

    def step(state, now):
        h, c = state
        z = jnp.concatenate([now, h], -1) @ params["weight"]
        i, f, g, o = jnp.split(z + at(params["bias"], z), 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[0], params["output"].shape[0]), x.dtype)
    (h, _), _ = jax.lax.scan(step, (zeros, zeros), jnp.moveaxis(x, 1, 0))
    return h @ params["output"]


def single_precision_state(params, x):
    """A recurrent network whose state starts in single precision, whatever its inputs are."""
    step = lambda h, now: (jnp.tanh(now @ params["weight"] + h @ params["recurrent"]), None)
    h, _ = jax.lax.scan(step, jnp.zeros((x.shape[0], 4), jnp.float32), jnp.moveaxis(x, 1, 0))
    return h @ params["output"]


def reshaped_lstm(params, x):
    """The same with the gates put on an axis of their own by a reshape."""
    hidden = params["output"].shape[0]
    h = c = jnp.zeros((x.shape[0], hidden), x.dtype)
    for t in range(x.shape[1]):
        z = x[:, t] @ params["weight"][: x.shape[2]] + h @ params["weight"][x.shape[2] :]
        i, f, g, o = jnp.moveaxis((z + at(params["bias"], z)).reshape(-1, 4, hidden), 1, 0)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h @ params["output"]


LSTM_SHAPES = {"weight": (3 + 5, 20), "bias": (20,), "output": (5, 2)}


def attend(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bths,buhs->bhtu", q, k) / q.shape[-1] ** 0.5, -1)
    return jnp.einsum("bhtu,buhs->bths", weights, v)


def layer_norm(params, h):
    centred = h - h.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * at(params, h)


def block(params, x):
    """Attention with heads and entries as axes, a layer norm, and a dense block, all with skip connections."""
    h = x @ params["embed"]
    q, k, v = (jnp.einsum("btm,mhs->bths", h, params[name]) for name in ("query", "key", "value"))
    h = h + jnp.einsum("bths,hsm->btm", attend(q, k, v), params["out"])
    h = layer_norm(params["norm"], h)
    h = h + jax.nn.gelu(h @ params["up"]) @ params["down"]
    return h.mean(1) @ params["head"]


BLOCK_SHAPES = {
    "embed": (4, 6), "query": (6, 3, 2), "key": (6, 3, 2), "value": (6, 3, 2), "out": (3, 2, 6), "norm": (6,),
    "up": (6, 7), "down": (7, 6), "head": (6, 2),
}  # fmt: skip


LONE_SHAPES = {
    "query": (6, 1, 2), "key": (6, 1, 2), "value": (6, 1, 2), "out": (1, 2, 6), "up": (6, 1), "down": (1, 6),
}  # fmt: skip


def fused(params, x):
    """Queries, keys and values in one matrix, heads found by a reshape."""
    h = x @ params["embed"]
    parts = jnp.split(h @ params["qkv"], 3, -1)
    q, k, v = (part.reshape(*part.shape[:-1], 3, 2) for part in parts)
    h = h + attend(q, k, v).reshape(*h.shape[:-1], 6) @ params["out"]
    return h.mean(1) @ params["head"]


def tied(params, tokens):
    """Embeddings, a hidden layer, and logits over tokens by the same embeddings."""
    h = params["table"][tokens.astype(int)].mean(1)
    return jnp.tanh(h @ params["weight"]) @ params["table"].T


def scaled_channels(params, x):
    """A convolution by channel, then one that mixes them, with a scale for each channel."""
    numbers = ("NHWC", "HWIO", "NHWC")
    h = jax.lax.conv_general_dilated(x, params["first"], (1, 1), "SAME", dimension_numbers=numbers)
    h = jax.lax.conv_general_dilated(
        h, params["by_channel"], (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=h.shape[-1]
    )
    h = jax.nn.relu(h * at(params["scale"], h))
    return h.mean((1, 2)) @ params["head"]


def gated(params, x):
    """A product of two branches (SwiGLU)."""
    return (jax.nn.silu(x @ params["gate"]) * (x @ params["up"])) @ params["down"]


def dense_net(params, x):
    """Layers whose outputs are put side by side."""
    first = jnp.tanh(x @ params["first"])
    second = jax.nn.relu(jnp.concatenate([x, first], 1) @ params["second"])
    return jnp.concatenate([first, second], 1) @ params["head"]


def factored(params, x):
    """A matrix that is a product of two."""
    return x @ (params["left"] @ params["right"])


def make_equinox(key):
    keys = jax.random.split(key, 2)
    layers = [eqx.nn.Conv2d(1, 3, 3, key=keys[0]), eqx.nn.Lambda(jax.nn.relu), eqx.nn.AvgPool2d(2, 2)]
    return eqx.nn.Sequential([*layers, eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(3 * 2 * 2, 2, key=keys[1])])


def mlp(**options):
    return nn.MLP(outputs=3, **options)


CASES = {
    "tanh": Case(mlp(hidden=(5, 4)), normal(6, 3), ((5, PF), (4, PF))),
    "relu": Case(mlp(hidden=(5, 4), activation="relu"), normal(6, 3), ((5, PS), (4, PS))),
    "silu": Case(mlp(hidden=(5,), activation="silu"), normal(6, 3), ((5, P),)),
    "no_bias": Case(mlp(hidden=(5,), bias=False, activation="relu"), normal(6, 3), ((5, PS),)),
    "linear": Case(mlp(hidden=(5,), activation=lambda z: z), normal(6, 3), ((5, PSF),)),
    "skip": Case(mlp(hidden=(5, 5), activation="relu", skip=True), normal(6, 3), ((5, PS),)),
    "layer_norm": Case(
        mlp(hidden=(5, 4), activation="relu", normalisation=nn.LayerNorm()), normal(6, 3), ((5, PS), (4, PS))
    ),
    "rms_norm": Case(mlp(hidden=(5,), activation="tanh", normalisation=nn.RMSNorm()), normal(6, 3), ((5, PF),)),
    "lone_tanh": Case(mlp(hidden=(1, 2)), normal(6, 3), ((1, F), (2, PF))),
    "lone_relu": Case(mlp(hidden=(3, 1), activation="relu"), normal(6, 3), ((3, PS), (1, S))),
    "convnet": Case(
        nn.ConvNet(channels=(3, 4), kernel=3, hidden=(5,), outputs=2),
        normal(3, 8, 8, 2),
        ((3, PS), (4, PS), (5, PS)),
    ),
    "resnet": Case(
        nn.ResNet(blocks=(1, 1), width=3, outputs=2), normal(3, 8, 6, 2), ((3, PF), (3, PF), (6, PF), (6, PF))
    ),
    "resnet20": Case(
        nn.ResNet(outputs=2), normal(2, 16, 16, 3), tuple((n, PF) for n in (16, 32, 64) for _ in range(4))
    ),
    "lstm": Case(nn.LSTM(hidden=5, outputs=2), normal(4, 6, 3), ((5, P),)),
    "split_lstm": Case(function(split_lstm, **LSTM_SHAPES), normal(4, 6, 3), ((5, PF),)),
    "reshaped_lstm": Case(function(reshaped_lstm, **LSTM_SHAPES), normal(4, 3, 3), ((5, P),)),
    "attention": Case(
        function(block, **BLOCK_SHAPES),
        normal(3, 5, 4),
        ((6, PSF), (3, PSF), (2, PSF), (2, PSF), (7, P)),
    ),
    "lone_head": Case(
        function(block, **BLOCK_SHAPES | LONE_SHAPES),
        normal(3, 5, 4),
        ((6, PSF), (1, SF), (2, PSF), (2, PSF)),
    ),
    "fused_attention": Case(
        function(fused, embed=(4, 6), qkv=(6, 18), out=(6, 6), head=(6, 2)),
        normal(3, 5, 4),
        ((6, PSF), (3, PSF), (2, PF)),
    ),
    "tied": Case(
        function(tied, table=(7, 4), weight=(4, 4)), np.arange(12.0, dtype=np.float32).reshape(4, 3) % 7, ((4, PF),)
    ),
    "scaled_channels": Case(
        function(scaled_channels, first=(3, 3, 2, 4), by_channel=(3, 3, 1, 4), scale=(4,), head=(4, 2)),
        normal(2, 5, 5, 2),
        ((4, PSF),),
    ),
    "gated": Case(function(gated, gate=(3, 5), up=(3, 5), down=(5, 2)), normal(6, 3), ((5, PSF),)),
    "dense_net": Case(function(dense_net, first=(3, 4), second=(7, 5), head=(9, 2)), normal(6, 3), ((4, PF), (5, PS))),
    "factored": Case(function(factored, left=(3, 4), right=(4, 2)), normal(6, 3), ((4, PSF),)),
    "p4": Case(nn.P4ConvNet(channels=(3, 4), outputs=2), normal(2, 6, 6, 2), ((3, PS), (4, PS))),
    "cnn_lstm": Case(nn.CNNLSTM(channels=(3,), kernel=3, hidden=4, outputs=2), normal(2, 9, 3), ((3, PS), (4, P))),
    "equinox": Case(
        nn.from_equinox(make_equinox(jax.random.key(9)), make=make_equinox), normal(4, 1, 6, 6), ((3, PS),)
    ),
}


SLOW = ("resnet20",)
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]


def weights(case: Case, key: int = 0):
    """Weights of a case whose entries are all different from zero."""
    x = jnp.asarray(case.x)
    params = case.network.init(jax.random.key(key), x)
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(key + 1), len(leaves))
    noise = [0.3 * jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, [leaf + z for leaf, z in zip(leaves, noise, strict=True)])
