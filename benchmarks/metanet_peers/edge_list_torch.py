"""The network of `edge_list.py` with torch-geometric, from the same numbers: many networks are one disjoint graph."""

import math
import os
import timeit
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import torch
from torch_geometric.nn import MessagePassing

from .edge_list import EdgeList
from .programs import Program, times_of

Weights = dict[str, dict[str, torch.Tensor]]


class TorchBlock(MessagePassing):
    """One update of the edges from their ends, then of the nodes from their edges."""

    def __init__(self, block: Any):
        super().__init__(aggr="sum")
        self.node_norm, self.sums_norm = norm(block.node_norm), norm(block.sums_norm)
        self.edge_mlp, self.node_mlp = mlp(block.edge_mlp), mlp(block.node_mlp)
        self.from_time = linear(block.from_time)

    def forward(
        self, ends: torch.Tensor, edges: torch.Tensor, nodes: torch.Tensor, embedded_time: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        normed = self.node_norm(nodes)
        edges = edges + self.edge_mlp(torch.cat([edges, normed[ends[0]], normed[ends[1]]], dim=1))
        size = (len(nodes), len(nodes))
        into, out_of = (self.propagate(way, edges=edges, size=size) for way in (ends, ends.flip(0)))
        shifts = self.from_time(embedded_time).repeat_interleave(len(nodes) // len(embedded_time), dim=0)
        seen = torch.cat([normed + shifts, self.sums_norm(torch.cat([into, out_of], dim=1))], dim=1)
        return edges, nodes + self.node_mlp(seen)

    def message(self, edges: torch.Tensor) -> torch.Tensor:
        return edges


class EdgeListTorch(torch.nn.Module):
    """`field(times, weights)` for as many networks as the field was made for; leaves have one leading axis."""

    def __init__(self, field: Any, num_networks: int):
        super().__init__()
        ends = tensor(np.stack([field.senders, field.receivers]))
        starts = torch.arange(num_networks).repeat_interleave(ends.shape[1]) * len(field.places)
        self.register_buffer("ends", ends.repeat(1, num_networks) + starts)
        self.register_buffer("places", tensor(field.places).repeat(num_networks))
        self.embeddings = torch.nn.Parameter(tensor(field.embeddings))
        self.from_weight, self.from_bias = linear(field.from_weight), linear(field.from_bias)
        self.to_weight, self.to_bias = linear(field.to_weight), linear(field.to_bias)
        self.time_mlp = mlp(field.time_mlp)
        self.blocks = torch.nn.ModuleList(TorchBlock(block) for block in field.blocks)

    def forward(self, times: torch.Tensor, weights: Weights) -> Weights:
        layers = [weights[f"layer{i}"] for i in range(len(weights))]
        inputs = torch.zeros_like(layers[0]["weight"][:, :, 0])
        edges = self.from_weight(torch.cat([layer["weight"].flatten(1) for layer in layers], dim=1).reshape(-1, 1))
        biases = torch.cat([inputs, *(layer["bias"] for layer in layers)], dim=1).reshape(-1, 1)
        nodes = self.from_bias(biases) + self.embeddings[self.places]
        frequencies = 2.0 ** torch.arange(self.time_mlp[0].in_features // 2, device=times.device) * (np.pi / 2)
        angles = times[:, None] * frequencies
        embedded_time = self.time_mlp(torch.cat([torch.sin(angles), torch.cos(angles)], dim=1))
        for block in self.blocks:
            edges, nodes = block(self.ends, edges, nodes, embedded_time)
        made_edges = self.to_weight(edges).reshape(len(times), -1)
        made_nodes = self.to_bias(nodes).reshape(len(times), -1)[:, inputs.shape[1] :]
        by_weight = made_edges.split([layer["weight"][0].numel() for layer in layers], dim=1)
        by_bias = made_nodes.split([layer["bias"].shape[1] for layer in layers], dim=1)
        return {
            f"layer{i}": {"bias": by_bias[i], "weight": by_weight[i].reshape(layer["weight"].shape)}
            for i, layer in enumerate(layers)
        }


def tensor(array: jax.Array | np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def linear(layer: eqx.nn.Linear) -> torch.nn.Linear:
    made = torch.nn.Linear(layer.in_features, layer.out_features, bias=layer.use_bias)
    made.weight.data = tensor(layer.weight)
    if layer.use_bias:
        made.bias.data = tensor(layer.bias)
    return made


def mlp(layers: eqx.nn.MLP) -> torch.nn.Sequential:
    first, second = layers.layers
    return torch.nn.Sequential(linear(first), torch.nn.SiLU(), linear(second))


def norm(layer: eqx.nn.LayerNorm) -> torch.nn.LayerNorm:
    made = torch.nn.LayerNorm(layer.shape, eps=layer.eps)
    made.weight.data, made.bias.data = tensor(layer.weight), tensor(layer.bias)
    return made


def programs(field: EdgeList, networks: Any) -> dict[str, Program]:
    """The tasks of the twin of `field` on these networks; an error where its velocities are not those of `field`."""
    num_networks = len(jax.tree.leaves(networks)[0])
    here = lambda leaf: tensor(leaf).to("cuda" if torch.cuda.is_available() else "cpu")
    twin = EdgeListTorch(field, num_networks).to(here(np.zeros(())).device)
    times, weights = here(times_of(num_networks)), jax.tree.map(here, networks)

    def forward() -> Weights:
        with torch.no_grad():
            return finished(twin(times, weights))

    def gradient() -> None:
        twin.zero_grad()
        pairs = zip(jax.tree.leaves(twin(times, weights)), jax.tree.leaves(weights), strict=True)
        finished(sum(((one - other) ** 2).sum() for one, other in pairs).backward())

    check_same(jax.vmap(field)(times_of(num_networks), networks), forward())
    choose_num_threads(gradient)
    calls = {"forward": forward, "gradient": gradient}
    return {task: Program(call, peak_bytes(call) / num_networks, math.nan) for task, call in calls.items()}


def choose_num_threads(call: Callable[[], Any]) -> None:
    """One thread or one for each core, whichever is faster: threads that wait for each other suffer from other load."""
    seconds = {}
    for num_threads in (1, len(os.sched_getaffinity(0))):
        torch.set_num_threads(num_threads)
        seconds[num_threads] = min(timeit.repeat(call, number=1, repeat=3))
    torch.set_num_threads(min(seconds, key=lambda num_threads: seconds[num_threads]))


def finished(made: Any) -> Any:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return made


def check_same(wanted: Any, made: Weights) -> None:
    for one, other in zip(jax.tree.leaves(wanted), jax.tree.leaves(made), strict=True):
        apart = np.max(np.abs(np.asarray(one) - other.cpu().numpy()))
        assert apart < 1e-2 * np.max(np.abs(one)), f"the twin in torch differs by {apart}"  # TF32 rounds to 1e-3


def peak_bytes(call: Callable[[], Any]) -> float:
    """What is allocated at most beyond what lay there before."""
    call()
    if torch.cuda.is_available():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        call()
    changes = [event.nbytes() for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    return float(np.max(np.cumsum(changes)))
