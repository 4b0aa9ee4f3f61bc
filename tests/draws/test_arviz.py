"""The ArviZ tree: its groups, names and units, and that ArviZ's own functions agree with ours."""

import arviz_stats
import jax
import numpy as np
import pytest
from tests.draws.made import linear_classification, linear_regression

import weightscape as ws
from weightscape.draws import function_outputs

X = np.array([[0.0, 5.0], [1.0, -20.0], [-2.0, 40.0]])


def with_info(draws: ws.Draws, **info) -> ws.Draws:
    return ws.Draws(draws.params, draws.log_density, draws.model, draws.scaling, draws.example, info)


def test_summary_equals_diagnose():
    for draws, _ in (linear_regression(memory=0.8), linear_classification()):
        found = ws.diagnose(draws, X).functions
        tree = draws.to_arviz(X)
        table = arviz_stats.summary(tree, var_names=["outputs"], round_to="none")
        for ours, theirs in ((found.rhat, "r_hat"), (found.bulk_ess, "ess_bulk"), (found.tail_ess, "ess_tail")):
            np.testing.assert_array_equal(ours.ravel(), table[theirs].to_numpy(float))
        np.testing.assert_array_equal(arviz_stats.rhat(tree)["outputs"], found.rhat)
        np.testing.assert_array_equal(arviz_stats.ess(tree)["outputs"], found.bulk_ess)


def test_summary_of_everything_has_a_row_for_each_number():
    draws, _ = linear_classification()
    table = arviz_stats.summary(draws.to_arviz(X))
    assert len(table) == 3 * 3 + 9
    mean = function_outputs(draws, X).mean(axis=(0, 1))
    assert float(table.loc["outputs[1, 2]", "mean"]) == pytest.approx(mean[1, 2], abs=0.006)


def test_groups_and_dimensions():
    draws, _ = linear_regression(3, 20)
    tree = draws.to_arviz(X)
    assert sorted(tree.children) == ["constant_data", "posterior", "sample_stats"]
    assert tree["posterior"]["outputs"].dims == ("chain", "draw", "probe", "output")
    np.testing.assert_array_equal(tree["posterior"]["outputs"], function_outputs(draws, X))
    assert tree["constant_data"]["x"].dims == ("probe", "input")
    np.testing.assert_array_equal(tree["constant_data"]["x"], X)
    assert tree["constant_data"].sizes["probe"] == tree["posterior"].sizes["probe"] == 3
    (weight,) = [name for name in tree["posterior"].data_vars if name.startswith("network.")]
    np.testing.assert_array_equal(tree["posterior"][weight], jax.tree.leaves(draws.params.network)[0])
    assert "original units" in tree["posterior"].attrs["outputs"]
    classes, _ = linear_classification(2, 8)
    assert "probability" in classes.to_arviz().attrs.get("outputs", classes.to_arviz()["posterior"].attrs["outputs"])


def test_the_example_is_the_default_probe():
    draws, _ = linear_regression(2, 8)
    np.testing.assert_array_equal(draws.to_arviz()["constant_data"]["x"], draws.example.x)
    np.testing.assert_array_equal(draws.to_arviz()["posterior"]["outputs"], function_outputs(draws))


def test_sample_stats_have_the_names_that_arviz_knows():
    draws, _ = linear_regression(3, 20)
    shape = (3, 20)
    named = {
        "acceptance": "acceptance_rate",
        "is_divergent": "diverging",
        "energy": "energy",
        "step_size": "step_size",
        "num_leapfrog": "n_steps",
        "tree_depth": "tree_depth",
        "is_accepted": "is_accepted",
    }
    info = {name: np.random.default_rng(i).normal(size=shape) for i, name in enumerate(named)}
    info["is_divergent"] = info["is_divergent"] > 1
    stats = with_info(draws, **info).to_arviz()["sample_stats"]
    assert sorted(stats.data_vars) == sorted([*named.values(), "lp"])
    for ours, theirs in named.items():
        np.testing.assert_array_equal(stats[theirs], info[ours])
    assert stats["diverging"].dtype == bool
    np.testing.assert_array_equal(stats["lp"], draws.log_density)
    np.testing.assert_allclose(arviz_stats.bfmi(with_info(draws, **info).to_arviz())["energy"].shape, (3,))


def test_points_can_be_exported():
    draws, _ = linear_regression(5, 1)
    assert draws.to_arviz()["posterior"].sizes["draw"] == 1
