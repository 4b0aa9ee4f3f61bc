"""How do time and memory of a metanet grow with the network it reads? Beside a graph network over an edge list.

    python benchmarks/metanet.py            # --quick for a look, --widths 16,64 --depths "" for other networks

Networks are perceptrons: 30-n-n-2 for each width n, 30-32-…-32-2 for each depth. With tanh, the default, `Metanet`
commutes with permutations and signs; with --activation silu it commutes with permutations alone, as the peer does.

`Metanet` and the peer (`metanet_peers/edge_list.py`) have the same token width, edge width and number of blocks. Where
torch-geometric is installed the peer runs there too, from the same numbers, on one thread or one a core, whichever is
faster.

All are vectorised over the same networks, as many as a gradient of the slower in JAX takes half a second for. They are
called once before the clock starts and then take turns in rounds of about half a second. Times and ratios are medians
over rounds, with the range of the ratio; on CPU there is the ratio by the processor time of all threads too, which
depends less on other load. "Gradient" is a squared error and its gradient by the numbers of the field.
Memory is what the compiler sets aside for arguments, results and work, without the numbers of the field and their
gradient; for torch, the most it had allocated beyond what lay there before. The
operations of the products are counted in the traced program. Growth is the slope of a line through the logarithms of
the last three sizes.
"""

import argparse
import datetime
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from metanet_peers.edge_list import EdgeList
from metanet_peers.programs import TASKS, compiled
from metanet_peers.tables import OURS, PEER, TORCH, Case, print_growth, print_resources, print_times, ratio

import weightscape as ws
from weightscape import metanet, symmetry

try:
    from metanet_peers import edge_list_torch
except ImportError as error:
    edge_list_torch, ABSENT = None, error.name

NUM_INPUTS, NUM_OUTPUTS, UNITS_OF_DEEP = 30, 2, 32
SIZES = metanet.Sizes(width=64, edge_width=16, num_blocks=3, num_heads=4)
PEER_HIDDEN = 4 * SIZES.width
MOST_NETWORKS, MOST_BYTES = 1024, 4 * 2**30


class Rounds(NamedTuple):
    """How many rounds there are, and how many seconds each lasts, about."""

    count: int
    seconds: float


def make_networks(network: ws.networks.MLP, num_networks: int) -> Any:
    init = lambda key: network.init(key, jnp.zeros((1, NUM_INPUTS)))
    return jax.vmap(init)(jax.random.split(jax.random.key(0), num_networks))


def make_fields(network: ws.networks.MLP) -> dict[str, Any]:
    lone = jax.tree.map(lambda leaf: leaf[0], make_networks(network, 1))
    found = symmetry.discover(network, lone, jax.random.normal(jax.random.key(1), (4, NUM_INPUTS)))
    shape = {"width": SIZES.width, "edge_width": SIZES.edge_width, "num_blocks": SIZES.num_blocks}
    return {
        OURS: metanet.Metanet(jax.random.key(2), found, lone, sizes=SIZES),
        PEER: EdgeList(jax.random.key(3), lone, **shape, hidden=PEER_HIDDEN),
    }


def seconds_of(call: Callable[[], Any], num_calls: int = 1) -> np.ndarray:
    """Seconds of one call by the clock and by the processor."""
    began = np.array([time.perf_counter(), time.process_time()])
    for _ in range(num_calls):
        call()
    return (np.array([time.perf_counter(), time.process_time()]) - began) / num_calls


def choose_num_networks(fields: dict[str, Any], network: ws.networks.MLP, round_seconds: float) -> int:
    """The power of two whose gradients take the slower of the fields about a round, within bounds on memory."""
    one = make_networks(network, 1)
    programs = [compiled(field, "gradient", one) for field in fields.values()]
    for program in programs:
        program.call()
    slowest = max(min(seconds_of(program.call)[0] for _ in range(3)) for program in programs)
    largest = max(program.num_bytes for program in programs)
    most = min(MOST_NETWORKS, MOST_BYTES / largest, round_seconds / slowest)
    return 2 ** max(0, math.floor(math.log2(most)))


def measure(size: int, network: ws.networks.MLP, rounds: Rounds) -> Case:
    fields = make_fields(network)
    num_networks = choose_num_networks(fields, network, rounds.seconds)
    networks = make_networks(network, num_networks)
    programs = {(name, task): compiled(field, task, networks) for name, field in fields.items() for task in TASKS}
    if edge_list_torch:
        twins = edge_list_torch.programs(fields[PEER], networks)
        programs |= {(TORCH, task): program for task, program in twins.items()}
    for program in programs.values():
        program.call()
    num_calls = {key: math.ceil(rounds.seconds / seconds_of(one.call)[0]) for key, one in programs.items()}
    taken = [[seconds_of(one.call, num_calls[key]) for key, one in programs.items()] for _ in range(rounds.count)]
    seconds = dict(zip(programs, np.swapaxes(taken, 0, 1) / num_networks, strict=True))
    num_weights = sum(leaf[0].size for leaf in jax.tree.leaves(networks))
    num_numbers = {name: num_trainable(field) for name, field in fields.items()}
    case = Case(shown_sizes(network), size, num_weights, num_networks, num_numbers, programs, seconds)
    ratios = [f"{name} ÷ {OURS}, {task}: {ratio(case, name, task)}" for name, task in programs if name != OURS]
    print(f"{case.name}: " + "; ".join(ratios), file=sys.stderr, flush=True)
    return case


def shown_sizes(network: ws.networks.MLP) -> str:
    """30-16-16-2, or 30-32^8-2 for many layers."""
    hidden = network.hidden
    inner = "-".join(map(str, hidden)) if len(hidden) < 3 else f"{hidden[0]}^{len(hidden)}"
    return f"{NUM_INPUTS}-{inner}-{NUM_OUTPUTS}"


def num_trainable(field: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(field, eqx.is_inexact_array)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    integers = lambda text: tuple(int(part) for part in text.split(",") if part)
    parser.add_argument("--widths", type=integers, default=(16, 32, 64, 128, 256))
    parser.add_argument("--depths", type=integers, default=(1, 2, 4, 8))
    parser.add_argument("--activation", default="tanh")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a round, about")
    parser.add_argument("--quick", action="store_true", help="three short rounds of small networks")
    asked = parser.parse_args()
    if asked.quick:
        asked.widths, asked.depths, asked.rounds, asked.seconds = (16, 32), (1, 2), 3, 0.1
    return asked


def main() -> None:
    asked = arguments()
    device = f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}"
    print(f"{datetime.date.today()}, {device}; {asked.activation}; {SIZES}; {asked.rounds} rounds.")
    print(
        f"torch {edge_list_torch.torch.__version__}." if edge_list_torch else f"No torch-geometric: no {ABSENT} here."
    )
    peers = [PEER, TORCH] if edge_list_torch else [PEER]
    network = lambda *hidden: ws.networks.MLP(hidden=hidden, activation=asked.activation, outputs=NUM_OUTPUTS)
    series = {
        "width": {width: network(width, width) for width in asked.widths},
        "depth": {depth: network(*[UNITS_OF_DEEP] * depth) for depth in asked.depths},
    }
    for what, networks in series.items():
        cases = [measure(size, one, Rounds(asked.rounds, asked.seconds)) for size, one in networks.items()]
        if cases:
            print_times(cases, peers)
            print_resources(cases, peers)
        if len(cases) > 1:
            print_growth(cases, [OURS, *peers], what)


if __name__ == "__main__":
    main()
