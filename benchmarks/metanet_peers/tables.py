"""The tables of `metanet.py`: times, resources and growth of each contender beside Metanet."""

from typing import NamedTuple

import jax
import numpy as np

from .programs import TASKS, Program

OURS, PEER, TORCH = "Metanet", "edge list", "torch-geometric"
NUM_FITTED = 3


class Case(NamedTuple):
    """A size of network, measured.

    `num_numbers` are the trainable numbers of each contender; `seconds` are for one network, by contender and task,
    with a row for each round: by the clock and by the processor.
    """

    name: str
    size: int
    num_weights: int
    num_networks: int
    num_numbers: dict[str, int]
    programs: dict[tuple[str, str], Program]
    seconds: dict[tuple[str, str], np.ndarray]


def ratio(case: Case, name: str, task: str) -> str:
    """How many times as long as Metanet it takes: median and range over rounds; on CPU, by the processor too."""
    found = case.seconds[name, task] / case.seconds[OURS, task]
    clock, processor = np.median(found, axis=0)
    beside = f"; processor {processor:.2f}" if jax.default_backend() == "cpu" else ""
    return f"{clock:.2f} ({found[:, 0].min():.2f}–{found[:, 0].max():.2f}){beside}"


def print_times(cases: list[Case], peers: list[str]) -> None:
    titles = [title for name in peers for title in (f"{name}, ms", f"÷ {OURS}")]
    print()
    print_row("network", "weights", "networks", "task", f"{OURS}, ms", *titles)
    print_row(*["---"] * (5 + len(titles)))
    for case in cases:
        for task in TASKS:
            shown = lambda name, case=case, task=task: f"{1e3 * np.median(case.seconds[name, task][:, 0]):.3g}"
            beside = [text for name in peers for text in (shown(name), ratio(case, name, task))]
            print_row(case.name, f"{case.num_weights:,}", case.num_networks, task, shown(OURS), *beside)


def print_resources(cases: list[Case], peers: list[str]) -> None:
    titles = [title for name in peers for title in (f"{name}, KiB", f"÷ {OURS}")]
    counts = [f"{name}, MFLOP" for name in (OURS, PEER)] + [f"{name}, numbers" for name in (OURS, PEER)]
    print()
    print_row("network", "task", f"{OURS}, KiB", *titles, *counts)
    print_row(*["---"] * (3 + len(titles) + len(counts)))
    for case in cases:
        for task in TASKS:
            of = lambda name, case=case, task=task: case.programs[name, task]
            ours = of(OURS).num_bytes
            beside = [t for name in peers for t in (kib(of(name).num_bytes), f"{of(name).num_bytes / ours:.2f}")]
            operations = [f"{of(name).num_operations / 1e6:,.1f}" for name in (OURS, PEER)]
            numbers = [f"{case.num_numbers[name]:,}" for name in (OURS, PEER)]
            print_row(case.name, task, kib(ours), *beside, *operations, *numbers)


def kib(num_bytes: float) -> str:
    return f"{num_bytes / 1024:,.0f}"


def print_growth(cases: list[Case], names: list[str], what: str) -> None:
    """The exponents a of (size)^a: of time and memory, for each contender."""
    last = cases[-NUM_FITTED:]
    print()
    print_row(f"growth with {what}", *(f"{kind}, {task}" for kind in ("time", "memory") for task in TASKS))
    print_row(*["---"] * 5)
    for name in ["weights", *names]:
        if name == "weights":
            series = [[case.num_weights for case in last]] * 4
        else:
            times = [[np.median(case.seconds[name, task][:, 0]) for case in last] for task in TASKS]
            series = times + [[case.programs[name, task].num_bytes for case in last] for task in TASKS]
        logarithms = np.log([case.size for case in last])
        print_row(name, *(f"{np.polyfit(logarithms, np.log(one), 1)[0]:.2f}" for one in series))


def print_row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
