"""The experiment that holds stochastic-gradient MCMC against HMC: its table, its counts, and a tiny run."""

import json

import numpy as np
import pytest
from experiments import sgmcmc_table
from experiments.sgmcmc import measure, rows
from experiments.sgmcmc.settings import FULL, TINY, methods, problem

import weightscape as ws


def row(method, **values):
    return {**dict.fromkeys(rows.COLUMNS, 0.5), "networks": 3, "method": method, **values}


def test_rows_are_kept_by_method_and_a_longer_reference_drops_them(tmp_path):
    read = lambda: {each["method"]: each["nll"] for each in json.loads((tmp_path / "results.json").read_text())}
    for each in (row(rows.REFERENCE), row("SGLD", nll=1.0), row("MAP"), row("SGLD", nll=2.0, epochs=12345.6)):
        rows.keep(tmp_path, each)
    assert list(read().items()) == [(rows.REFERENCE, 0.5), ("SGLD", 2.0), ("MAP", 0.5)]
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert len(lines) == 5 and len({line.count("|") for line in lines}) == 1
    assert lines[3] == "| SGLD | 0.5 | 2 | 0.5 | 0.5 | 0.5 | 0.5 | 3 | 12,346 | 0.5 |"
    rows.keep(tmp_path, row(rows.REFERENCE))
    assert len(read()) == 3
    rows.keep(tmp_path, row(rows.REFERENCE, networks=4))
    assert list(read()) == [rows.REFERENCE]


def test_epochs_count_every_gradient_of_every_chain():
    """By hand: points in all gradients over the points of the data."""
    given = problem(TINY)
    num_points = given.posterior.num_points
    count = lambda method, num_draws: measure.num_epochs(method, num_draws, given) * num_points
    assert count(ws.HMC(4, 10, num_warmup=20, num_leapfrog=8, thin=3), 7) == 4 * (20 + 7 * 3) * 8 * num_points
    assert count(ws.SGLD(2, 5, num_warmup=6, thin=4, batch_size=10), 5) == pytest.approx(2 * (6 + 5 * 4) * 10)
    cyclical = ws.Cyclical(1e-3, cycle_length=30, draws_per_cycle=2)
    method = ws.SGHMC(3, 4, num_warmup=30, thin=2, batch_size=10, step_size=cyclical)
    assert count(method, 4) == pytest.approx(3 * (30 + 2 * 30) * 10)
    assert count(ws.DeepEnsemble(6, num_steps=7, batch_size=10), 1) == pytest.approx(6 * 7 * 10)
    assert count(ws.MAP(num_steps=7), 1) == pytest.approx(7 * num_points)


@pytest.mark.parametrize("settings", [FULL, TINY], ids=["full", "tiny"])
def test_chains_with_minibatches_take_equally_many_steps(settings):
    """Of which cycles are whole: `Cyclical` would refuse others."""
    chains = [each for each in methods(settings).values() if isinstance(each, ws.SGLD | ws.SGHMC)]
    gaps = [each.step_size.gaps(each.thin) for each in chains]
    steps = {each.num_warmup + each.num_draws * np.mean(gap) for each, gap in zip(chains, gaps, strict=True)}
    assert len(chains) == 4 and steps == {(settings.warmup + settings.sampling) * settings.steps}


@pytest.mark.slow
def test_a_tiny_run_measures_every_method_and_repeats_from_its_folder(tmp_path):
    sgmcmc_table.main(tmp_path, TINY, list(methods(TINY)))
    first = json.loads((tmp_path / "results.json").read_text())
    assert [each["method"] for each in first] == [rows.REFERENCE, *methods(TINY)]
    assert all(0 <= each["tv_test"] <= 1 and np.isfinite(each["nll"]) for each in first)
    assert first[0]["accuracy"] > 0.9 and first[0]["rhat_test"] > 1
    assert [each["networks"] for each in first] == [40, 1, 4, 16, 16, 16, 16, 16]
    sgmcmc_table.main(tmp_path, TINY, ["SGLD", "mean-field VI"])
    assert json.loads((tmp_path / "results.json").read_text()) == first


def test_unknown_methods_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ws.InputError, match=r"`--methods` must be a known name, got 'SGDL'. Did you mean 'SGLD'"):
        sgmcmc_table.main(tmp_path, TINY, ["SGDL"])
    assert not list(tmp_path.iterdir())
