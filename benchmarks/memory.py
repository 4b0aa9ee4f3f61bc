"""Does memory stay flat? 100,000 draws of a network of 10,000 weights, stored as they are made.

    .venv/bin/python benchmarks/memory.py [draws, 100,000 by default] [folder, a temporary one by default]

The draws take 4 GB on disk. Prints the memory of the process at tenths of the run, then with the stored draws loaded
and a prediction made from a stretch of them.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import weightscape as ws
from weightscape.core import Silent
from weightscape.networks import parameter_count


class Memory(Silent):
    """Notes the memory at each report of sampling."""

    def __init__(self):
        self.notes: list[tuple[float, float]] = []

    def start(self, label, total):
        self.total = total if label == "sampling" else 0

    def advance(self, done, facts):
        if self.total:
            self.notes.append((done / self.total, resident()))

    def at(self, share: float) -> float:
        """The memory when that share of the draws had been made, in MB."""
        return next(memory for done, memory in self.notes if done >= share)


def resident() -> float:
    """Memory of this process that is no file's, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("RssAnon"))


def posterior() -> ws.Posterior:
    """A perceptron of about 10,000 weights on eight points."""
    model = ws.Model(ws.networks.MLP(hidden=(98, 98)), ws.likelihoods.Gaussian(0.3), ws.priors.FanInNormal(1.0))
    x = np.linspace(-1, 1, 8)[:, None]
    return model.condition(ws.Batch(x, np.sin(3 * x[:, 0])))


def sample(num_draws: int, folder: Path) -> tuple[ws.Draws, Memory]:
    """Draws of one chain, cheap ones: what is measured is what becomes of them."""
    memory = Memory()
    method = ws.HMC(num_chains=1, num_draws=num_draws, num_warmup=100, num_leapfrog=2, jitter=0)
    return method.run(jax.random.key(0), posterior(), store=folder, progress=memory), memory


def main() -> None:
    num_draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    began = time.monotonic()
    draws, memory = sample(num_draws, folder)
    seconds = time.monotonic() - began
    on_disk = sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e6
    weights = parameter_count(draws.model.network, draws.example.x)
    print(f"{num_draws} draws of {weights} weights in {seconds:.0f} s, {on_disk:.0f} MB on disk\n")
    print("| after | memory, MB |\n|---|---|")
    for tenth in range(1, 11):
        print(f"| {10 * tenth} % | {memory.at(tenth / 10):.0f} |")
    print(f"| joined and loaded | {resident():.0f} |")
    ws.predict(draws[:, -1000:], np.zeros((4, 1)))
    print(f"| 1,000 draws used | {resident():.0f} |")
    if len(sys.argv) <= 2:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
