"""The experiment on barriers runs, and finds what its settings ask for."""

import pytest
from experiments.toroids import Settings, barriers, networks

TINY = Settings(num_pairs=1, num_steps=20, num_bend_steps=5, num_points=3, widths=(3, 4), channels=(2,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MLP 3", "ConvNet"])
def test_a_small_run_has_a_barrier_for_each_path(name):
    found = barriers(networks(TINY)[name], TINY)
    assert list(found) == ["linear", "re-based", "geodesic", "one bend"]
    for values in found.values():
        assert values.shape == (1, 2)
        assert (values >= 0).all()
