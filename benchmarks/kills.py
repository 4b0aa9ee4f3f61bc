"""Does a killed run end in the same bits? Runs are killed at random moments and resumed until they are done.

    .venv/bin/python benchmarks/kills.py [number of kills, 50 by default]

For each method in turn: one fit that nobody touches, then the same fit in another folder, killed (kill -9) after a
random time and resumed, over and over; two methods at a time. Prints a row for each method; exits with 1 where
any bit differs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

import weightscape as ws
from weightscape.inference import METHODS

WORK = {
    "map": ["--set", "num_steps=60000"],
    "ensemble": ["--chains", "2", "--set", "num_steps=40000"],
    "hmc": ["--chains", "2", "--draws", "3000"],
    "metropolishastings": ["--chains", "2", "--draws", "8000"],
    "nuts": ["--chains", "2", "--draws", "1500"],
    "paralleltempering": ["--chains", "2", "--draws", "300"],
}
"""Settings that keep a method busy for some seconds; `OTHERS` serve the rest."""

OTHERS = ["--chains", "2", "--draws", "4000", "--set", "thin=20"]


def arguments(name: str, folder: Path) -> list[str]:
    """A fit of that method, resumed where it was begun."""
    fit = ["fit", "noisy_line", "--hidden", "2", "--quiet", "--resume", "--method", name]
    return [*fit, *WORK.get(name, OTHERS), "--out", str(folder)]


def start(name: str, folder: Path) -> subprocess.Popen:
    """The fit as a process of its own."""
    command = [sys.executable, "-m", "weightscape.cli.main", *arguments(name, folder)]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "programs")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen, seconds: float | None = None) -> bool:
    """Let a fit go on for `seconds`, then kill it; whether it was killed."""
    try:
        _, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    if process.returncode != 0:
        raise RuntimeError(f"the fit ended with code {process.returncode}: {complaint[-2000:]}")
    return False


def await_work(process: subprocess.Popen, folder: Path) -> float:
    """Wait until this process has written its first state or draws, and return the time."""
    manifest, began = folder / "draws.json", time.time()
    while process.poll() is None and not (manifest.exists() and manifest.stat().st_mtime > began):
        time.sleep(0.01)
    return time.monotonic()


def same_bits(left: Path, right: Path) -> bool:
    """Whether two runs hold the same draws to the bit."""
    one, other = (jax.tree.leaves(ws.Draws.load(folder).sampled()) for folder in (left, right))
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def kill_and_compare(name: str, num_kills: int, seed: int, folder: Path) -> tuple[int, float, bool]:
    """Kill a run `num_kills` times: kills, seconds of undisturbed work, and whether the bits are the same.

    Two kills in three come at a random moment after the run has begun to write, the others at any time, also while
    the program starts. A run that is done before its kill is compared, and the kills go on with a new one.
    """
    generator = np.random.default_rng(seed)
    untouched, killed = folder / f"{name}-untouched", folder / f"{name}-killed"
    process = start(name, untouched)
    began = await_work(process, untouched)
    finish(process)
    seconds, kills, same = time.monotonic() - began, 0, True
    while kills < num_kills:
        process = start(name, killed)
        if generator.uniform() < 2 / 3:
            await_work(process, killed)
        if finish(process, generator.uniform(0, seconds / 2)):
            kills += 1
        else:
            same = same and same_bits(untouched, killed)
            shutil.rmtree(killed)
    finish(start(name, killed))
    return kills, seconds, same and same_bits(untouched, killed)


def main() -> None:
    wanted, names = int(sys.argv[1]) if len(sys.argv) > 1 else 50, sorted(METHODS)
    shares = {name: wanted // len(names) + (i < wanted % len(names)) for i, name in enumerate(names)}
    print("| method | kills | seconds of work | same bits |\n|---|---|---|---|")
    done, failures = 0, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        task = lambda name: kill_and_compare(name, shares[name], names.index(name), Path(folder))
        for name, (kills, seconds, same) in zip(names, pool.map(task, names), strict=True):
            done, failures = done + kills, failures + (not same)
            print(f"| {name} | {kills} | {seconds:.0f} | {'yes' if same else 'NO'} |", flush=True)
    print(f"\n{done} kills, {failures} methods with other bits.")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
