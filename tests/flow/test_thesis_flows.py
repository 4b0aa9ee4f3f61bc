"""The experiment on the thesis's flows: its configurations, what flows are shown, its table, and one tiny run."""

import dataclasses

import numpy as np
import pytest
from experiments import thesis_flows
from experiments.thesis import populations, settings, tables
from experiments.thesis.settings import PROBLEMS, configurations

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.files import read_json
from weightscape.flow import Aligned, Chained, Equivariant, Geometric, Independent, OptimalTransport, Plain, Revised

ASKED = ["geometric-equivariant-aligned-transport", "normalized-plain-aligned"]


def test_configurations_are_all_different_and_mean_what_they_say():
    known = configurations()
    assert len(known) == 24 + 3 + 6 + 10
    methods = [each.method(PROBLEMS["small"]) for each in known.values() if not each.is_long]
    kinds = 3 * (4 + 2 + 1) + 10  # plain fields are aligned by what they are shown
    assert len({str(method) for method in methods}) == kinds
    short, long = (known[name].method(PROBLEMS["mnist"]) for name in ("euclidean-revised", "euclidean-revised-long"))
    assert isinstance(long.architecture, Revised) and long.num_steps > short.num_steps
    method = known[ASKED[0]].method(PROBLEMS["cancer"])
    assert isinstance(method.geometry, Geometric) and isinstance(method.architecture, Equivariant)
    assert method.coupling == Chained(OptimalTransport(), Aligned())
    shifted = known["geometric-with-shifts-equivariant"].method(PROBLEMS["cancer"])
    assert shifted.geometry.with_shifts and not method.geometry.with_shifts
    plain = known[ASKED[1]].method(PROBLEMS["cancer"])
    assert isinstance(plain.architecture, Plain) and plain.coupling == Independent()
    assert {name for rows in tables.THESIS.values() for name in rows} <= {*known, "training networks"}


def test_the_thesis_stands_beside_ours():
    audit = {"ratio": 0.95, "z_u": -0.3}
    found = {"accuracy": 0.9, "loss": 0.2, "bma": {"2": {"accuracy": 0.91, "loss": 0.3}, "64": {"accuracy": 0.95,
             "loss": 0.1}}, "ece": 0.01, "jensen_shannon": 0.02, "overlap": 0.5, "functions": audit,
             "weights": audit}  # fmt: skip
    _, _, ours = tables.table("mnist", {"geometric-equivariant-transport": found})
    cells = [cell.strip() for cell in ours.strip("|").split("|")]
    assert cells[1:5] == ["0.900 (0.786)", "0.200 (1.443)", "0.950 (0.943)", "0.100"]
    assert cells[8:] == ["0.95", "-0.3", "0.95", "-0.3"]


def test_baselines_are_compared_at_the_same_distance():
    """Linear in the distance between the rows on both sides; none beyond the farthest."""
    row = lambda accuracy, ratio: {"accuracy": accuracy, "loss": 1 - accuracy, "functions": {"ratio": ratio}}
    known = {
        "training networks": row(0.9, 0.0),
        "training network plus noise 0.2": row(0.5, 2.0),
        "training network plus noise 0.1": row(0.8, 1.0),
        "re-based blend 0.5": row(0.1, 0.5),
    }
    assert tables.as_far_off(known, tables.NOISY, 1.5) == pytest.approx((0.65, 0.35))
    assert tables.as_far_off(known, tables.NOISY, 0.25) == pytest.approx((0.875, 0.125))
    assert tables.as_far_off(known, tables.BLENDED, 0.25) == pytest.approx((0.5, 0.5))
    assert tables.as_far_off(known, tables.BLENDED, 1.5) is None and tables.as_far_off({}, tables.NOISY, 1.0) is None


def test_moved_images_go_one_pixel_each_way_and_keep_their_labels():
    images = np.random.default_rng(0).normal(size=(3, 28 * 28))
    batch = settings._with_moved(ws.Batch(images, np.arange(3)))
    square = np.asarray(batch.x).reshape(5, 3, 28, 28)
    found = [(dy, dx) for each in square for dy in (-1, 0, 1) for dx in (-1, 0, 1)
             if np.array_equal(each[:, 5 + dy, 7 + dx], square[0][:, 5, 7])]  # fmt: skip
    assert found == [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
    assert np.array_equal(batch.y, np.tile(np.arange(3), 5))


@pytest.fixture
def tiny(monkeypatch):
    """The small problem, smaller still."""
    small = PROBLEMS["small"]
    population = dataclasses.replace(small.population, num_runs=30, num_steps=20)
    flow = dataclasses.replace(small.short[0], num_steps=20, batch_size=8)
    problem = dataclasses.replace(small, population=population, short=(flow, small.short[1]), num_generated=8)
    monkeypatch.setitem(settings.PROBLEMS, "small", problem)
    return problem


@pytest.mark.slow
def test_a_tiny_run_judges_all_networks_and_does_nothing_twice(tiny, tmp_path, capsys, monkeypatch):
    thesis_flows.main(tmp_path, "small", ["population", *ASKED])
    read = lambda name: read_json(tmp_path / "small" / "results" / f"{name}.json")["results"]
    results, baselines = {name: read(name)[name] for name in ASKED}, read("population")
    assert len(baselines) == 5
    for found in (*results.values(), *baselines.values()):
        assert 0 <= found["accuracy"] <= 1 and list(found["bma"])[:3] == ["1", "2", "4"]
        assert np.isfinite([found["loss"], found["ece"], found["jensen_shannon"], found["overlap"]]).all()
    assert baselines["training networks"]["functions"]["ratio"] == 0.0
    assert baselines["held-out networks"]["weights"]["ratio"] == 1.0
    text = (tmp_path / "small" / "results.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in text for name in (*results, *baselines))
    monkeypatch.setattr(thesis_flows.judging, "judged", None)
    thesis_flows.main(tmp_path, "small", ASKED)
    with pytest.raises(InputError, match="What is asked for must be a known name"):
        thesis_flows.main(tmp_path, "small", ["spherical"])


@pytest.mark.slow
def test_plain_fields_are_shown_networks_in_one_place(tiny, tmp_path):
    train, _ = populations.population(tmp_path, tiny)
    known, x = configurations(), tiny.data().test.x
    assert populations.shown(train, tiny, known[ASKED[0]]) is train
    moved = populations.shown(train, tiny, known[ASKED[1]])
    first = moved.params.network["layer0"]
    squares = np.sum(np.asarray(first["weight"]) ** 2, axis=2) + np.asarray(first["bias"]) ** 2
    np.testing.assert_allclose(squares, 1.0, rtol=1e-5)
    np.testing.assert_allclose(ws.predict(moved, x).probabilities, ws.predict(train, x).probabilities, atol=1e-4)
    spread = lambda draws: np.var(np.asarray(draws.params.network["layer1"]["weight"]), axis=(0, 1)).sum()
    unmoved = populations.rebased(train[:1], tiny, normalised=True)
    assert len(unmoved) == 1 and spread(moved) < spread(train)
