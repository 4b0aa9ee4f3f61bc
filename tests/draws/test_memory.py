"""Memory stays flat while draws go to disk; `benchmarks/memory.py` shows it for 100,000 of them."""

import sys

import numpy as np
import pytest
from benchmarks.memory import sample


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_draws(tmp_path, monkeypatch):
    monkeypatch.setattr("weightscape.core.loop._MOST_OUTPUTS", 64)  # chunks of 2.5 MB
    monkeypatch.setattr("weightscape.draws.recorder._MOST_BYTES", 5 * 2**20)
    draws, memory = sample(2000, tmp_path)
    size = sum(file.stat().st_size for file in tmp_path.glob("draws-*.safetensors")) / 1e6
    assert size > 75
    assert memory.at(1.0) - memory.at(0.25) < size / 4
    assert isinstance(draws.params.network["layer1"]["weight"], np.memmap)
