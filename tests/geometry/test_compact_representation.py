"""The small version of the experiment that repeats the poster."""

import jax
import numpy as np
import pytest
from experiments.compact import training
from experiments.compact.settings import SMALL, problem
from experiments.compact_representation import main


@pytest.mark.slow
def test_the_small_version_runs_and_writes_everything(tmp_path):
    main(tmp_path, SMALL, {"table", "training"})
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    names = ["HMC samples", "HMC q_d", "HMC q_r (weights, centre)", "Ensemble q_r (activations)", "VI"]
    assert all(f"| {name} |" in text for name in (*names, *map(str, SMALL.transpositions)))
    assert {path.name for path in tmp_path.glob("*.png")} == {
        f"{name}.png" for name in ("figure2", "figure3", "figure5_spread", "figure5_pruning")
    }
    row = next(line for line in text.splitlines() if line.startswith("| HMC samples"))
    agreement, variation, accuracy = (float(cell) for cell in row.split("|")[2:5])
    assert (agreement, variation) == (1.0, 0.0)
    assert accuracy > 90


@pytest.mark.slow
def test_planted_transpositions_are_found_and_cost_no_barrier_after_rebase():
    """Hardly trained, a permuted start is a permuted network: rebase finds all transpositions and the old distance."""
    pairs = training.pairs(jax.random.key(1), problem(SMALL), SMALL)
    assert [pair.found for pair in pairs] == [pair.planted for pair in pairs]
    assert np.allclose([pair.distance_rebased for pair in pairs], pairs[0].distance_rebased, atol=0.02)
    assert all(pair.distance > 10 for pair in pairs if pair.planted)
