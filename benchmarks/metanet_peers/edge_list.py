"""The peer of `metanet.py`: a neural graph network over an edge list, written in the most direct way.

A multilayer perceptron is a graph: each neuron, inputs and outputs among them, is a node with its bias as feature, each
weight an edge. With ∥ for concatenation, s and r for the sender and receiver of an edge, and c for the embedded time,

    e_sr ← e_sr + MLP(e_sr ∥ N(h_s) ∥ N(h_r))
    h_i  ← h_i  + MLP(N(h_i) + A c ∥ N(Σ_s e_si ∥ Σ_r e_ir))

Sums run over the edge list with `jax.ops.segment_sum`; N is a layer norm. Inputs and outputs have an embedding each,
hidden neurons one for each layer, so the network is equivariant under the permutations of hidden neurons and no others.
It knows nothing of sign flips.

Kofinas et al. (2024), Graph neural networks for learning equivariant representations of neural networks, section 3;
Lim et al. (2024), Graph metanetworks for processing diverse neural architectures, section 3.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

Params = dict[str, dict[str, Array]]
NUM_FREQUENCIES = 16


class Block(eqx.Module):
    """One update of the edges from their ends, then of the nodes from their edges."""

    node_norm: eqx.nn.LayerNorm
    edge_mlp: eqx.nn.MLP
    sums_norm: eqx.nn.LayerNorm
    from_time: eqx.nn.Linear
    node_mlp: eqx.nn.MLP

    def __init__(self, key: PRNGKeyArray, width: int, edge_width: int, node_hidden: int):
        key_edge, key_time, key_node = jax.random.split(key, 3)
        self.node_norm = eqx.nn.LayerNorm(width)
        self.edge_mlp = eqx.nn.MLP(edge_width + 2 * width, edge_width, 2 * edge_width, 1, jax.nn.silu, key=key_edge)
        self.sums_norm = eqx.nn.LayerNorm(2 * edge_width)
        self.from_time = eqx.nn.Linear(width, width, use_bias=False, key=key_time)
        self.node_mlp = eqx.nn.MLP(width + 2 * edge_width, width, node_hidden, 1, jax.nn.silu, key=key_node)


class EdgeList(eqx.Module):
    """A velocity over the weights of multilayer perceptrons: `field(time, params)` is a tree like `params`.

    `senders` and `receivers` are the ends of each edge, weights in row-major order, layer after layer; `places` says
    which embedding a node has.
    """

    senders: Int[Array, " edge"]
    receivers: Int[Array, " edge"]
    places: Int[Array, " node"]
    embeddings: Float[Array, "place width"]
    from_weight: eqx.nn.Linear
    from_bias: eqx.nn.Linear
    time_mlp: eqx.nn.MLP
    blocks: tuple[Block, ...]
    to_weight: eqx.nn.Linear
    to_bias: eqx.nn.Linear

    def __init__(self, key: PRNGKeyArray, params: Params, *, width: int, edge_width: int, num_blocks: int, hidden: int):
        layers = in_order(params)
        layer_sizes = [layers[0]["weight"].shape[0], *(len(layer["bias"]) for layer in layers)]
        self.senders, self.receivers = edge_ends(layer_sizes)
        self.places = node_places(layer_sizes)
        key_place, key_weight, key_bias, key_time, key_blocks, key_out = jax.random.split(key, 6)
        self.embeddings = jax.random.normal(key_place, (int(self.places[-1]) + 1, width))
        self.from_weight = eqx.nn.Linear(1, edge_width, key=key_weight)
        self.from_bias = eqx.nn.Linear(1, width, key=key_bias)
        self.time_mlp = eqx.nn.MLP(2 * NUM_FREQUENCIES, width, width, 1, jax.nn.silu, key=key_time)
        keys = jax.random.split(key_blocks, num_blocks)
        self.blocks = tuple(Block(key, width, edge_width, hidden) for key in keys)
        key_to_weight, key_to_bias = jax.random.split(key_out)
        self.to_weight = eqx.nn.Linear(edge_width, 1, key=key_to_weight)
        self.to_bias = eqx.nn.Linear(width, 1, key=key_to_bias)

    def __call__(self, time: Float[Array, ""], params: Params) -> Params:
        layers = in_order(params)
        inputs = jnp.zeros((layers[0]["weight"].shape[0], 1))
        weights = jnp.concatenate([layer["weight"].reshape(-1, 1) for layer in layers])
        biases = jnp.concatenate([inputs, *(layer["bias"][:, None] for layer in layers)])
        edges = jax.vmap(self.from_weight)(weights)
        nodes = jax.vmap(self.from_bias)(biases) + self.embeddings[self.places]
        angles = time * 2.0 ** jnp.arange(NUM_FREQUENCIES) * (np.pi / 2)
        embedded_time = self.time_mlp(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)]))
        for block in self.blocks:
            edges, nodes = self._update(block, edges, nodes, embedded_time)
        return like(params, jax.vmap(self.to_weight)(edges)[:, 0], jax.vmap(self.to_bias)(nodes)[len(inputs) :, 0])

    def _update(
        self,
        block: Block,
        edges: Float[Array, "edge edge_width"],
        nodes: Float[Array, "node width"],
        embedded_time: Float[Array, " width"],
    ) -> tuple[Float[Array, "edge edge_width"], Float[Array, "node width"]]:
        normed = jax.vmap(block.node_norm)(nodes)
        ends = jnp.concatenate([edges, normed[self.senders], normed[self.receivers]], axis=1)
        edges = edges + jax.vmap(block.edge_mlp)(ends)
        into = jax.ops.segment_sum(edges, self.receivers, num_segments=len(nodes))
        out_of = jax.ops.segment_sum(edges, self.senders, num_segments=len(nodes))
        sums = jax.vmap(block.sums_norm)(jnp.concatenate([into, out_of], axis=1))
        seen = jnp.concatenate([normed + block.from_time(embedded_time)[None, :], sums], axis=1)
        return edges, nodes + jax.vmap(block.node_mlp)(seen)


def in_order(params: Params) -> list[dict[str, Array]]:
    return [params[f"layer{i}"] for i in range(len(params))]


def edge_ends(layer_sizes: list[int]) -> tuple[Int[Array, " edge"], Int[Array, " edge"]]:
    """Sender and receiver of each weight, nodes numbered layer after layer."""
    starts = np.concatenate([[0], np.cumsum(layer_sizes)])
    ends = [
        np.indices((layer_sizes[i], layer_sizes[i + 1])).reshape(2, -1) + starts[i : i + 2, None]
        for i in range(len(layer_sizes) - 1)
    ]
    senders, receivers = np.concatenate(ends, axis=1)
    return jnp.asarray(senders, jnp.int32), jnp.asarray(receivers, jnp.int32)


def node_places(layer_sizes: list[int]) -> Int[Array, " node"]:
    """A place of its own for each input and output, one for each hidden layer."""
    steps = [np.ones(layer_sizes[0], int)]
    steps += [np.eye(1, size, dtype=int)[0] for size in layer_sizes[1:-1]]
    steps += [np.ones(layer_sizes[-1], int)]
    return jnp.asarray(np.cumsum(np.concatenate(steps)) - 1, jnp.int32)


def like(params: Params, weights: Float[Array, " edge"], biases: Float[Array, " node"]) -> Params:
    """The tree with these weights and biases, both in the order of the graph."""
    made, num_weights, num_biases = {}, 0, 0
    for i, layer in enumerate(in_order(params)):
        size, units = layer["weight"].size, len(layer["bias"])
        weight = weights[num_weights : num_weights + size].reshape(layer["weight"].shape)
        made[f"layer{i}"] = {"bias": biases[num_biases : num_biases + units], "weight": weight}
        num_weights, num_biases = num_weights + size, num_biases + units
    return made
