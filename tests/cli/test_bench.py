"""`weightscape bench uci` on a made-up set: the protocol, what is kept, and how it goes on."""

import json
import math
import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from weightscape.cli import bench_trials, bench_uci
from weightscape.cli.main import run_command
from weightscape.core import InputError
from weightscape.data import uci

NUM_SPLITS = 3
LINEAR = ["--sets", "made_up", "--hidden", ""]


def made_up_arrays():
    """A line with noise, in units far from standard; the third split has a test row far from all others."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 2)) * [3.0, 0.01] + [100.0, 5.0]
    y = 2000.0 + x @ [7.0, -800.0] + 10 * generator.normal(size=60)
    x[0] += [40.0, 0.2]
    orders = [np.roll(np.arange(60), shift) for shift in (0, 20, 40)]
    return {"X": x, "y": y, "train_idx": np.stack(orders)[:, 6:], "test_idx": np.stack(orders)[:, :6]}


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """The set's arrays, where the command finds them."""
    folder, arrays = tmp_path_factory.mktemp("data"), made_up_arrays()
    (folder / "uci").mkdir()
    np.savez(folder / "uci" / "made_up.npz", **arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIGHTSCAPE_DATA", str(folder))
        patch.setitem(uci.BENCHMARKS, "made_up", uci.Benchmark(60, 2, "folder", "", NUM_SPLITS))
        yield arrays


@pytest.fixture(scope="module")
def finished(made_up, tmp_path_factory):
    """A folder with three methods on all splits: more than there are were asked for. Notes precisions beside it."""
    out, seen = tmp_path_factory.mktemp("bench") / "uci", {}
    score = bench_trials._scores

    def noting(trial, dataset, progress):
        seen[trial.name] = str(dataset.train.x.dtype)
        return score(trial, dataset, progress)

    methods = ["--methods", "map,ensemble,laplace", "--set", "ensemble.num_members=2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_trials, "_scores", noting)
        assert run_command(["bench", "uci", *LINEAR, *methods, "--splits", "20", "--out", str(out), "--quiet"]) == 0
    (out.parent / "precisions.json").write_text(json.dumps(seen))
    return out


def mode_of_a_line(arrays, split):
    """Scores of the mode in raw units: scaled by the training rows, then w, b ~ N(0, 1) and σ ~ Gamma(1/2, 1)."""
    rows = lambda part: (arrays["X"][arrays[f"{part}_idx"][split]], arrays["y"][arrays[f"{part}_idx"][split]])
    (x, y), (x_test, y_test) = rows("train"), rows("test")
    scaled = lambda values: (values - x.mean(axis=0)) / x.std(axis=0)
    inputs, targets = scaled(x), (y - y.mean()) / y.std()

    def loss(position):
        *weights, bias, log_scale = position
        fit = norm.logpdf(targets, inputs @ weights + bias, np.exp(log_scale)).sum()
        prior = norm.logpdf([*weights, bias]).sum() - 0.5 * log_scale - np.exp(log_scale)
        return -(fit + prior + log_scale)

    *weights, bias, log_scale = minimize(loss, np.zeros(4), tol=1e-10).x
    mean, std = y.mean() + y.std() * (scaled(x_test) @ weights + bias), y.std() * np.exp(log_scale)
    inside = np.abs(y_test - mean) < norm.ppf(0.95) * std
    nll = -norm.logpdf(y_test, mean, std).mean()
    return {"rmse": np.sqrt(np.mean((y_test - mean) ** 2)), "nll": nll, "coverage_90": inside.mean()}


def test_each_split_is_scored_in_raw_units_after_scaling_by_its_own_training_rows(finished, made_up):
    for split in range(NUM_SPLITS):
        kept = json.loads((finished / "trials" / f"made_up-{split:02d}-map.json").read_text())
        for name, value in mode_of_a_line(made_up, split).items():
            # Adam ends within 1e-5 of the mode here, in single precision.
            assert kept["scores"][name] == pytest.approx(value, rel=2e-4), (split, name)
        laplace = json.loads((finished / "trials" / f"made_up-{split:02d}-laplace.json").read_text())
        assert laplace["asked"]["double"] and not kept["asked"]["double"]
        assert laplace["scores"]["rmse"] == pytest.approx(kept["scores"]["rmse"], rel=2e-4)  # around the same mode


def test_only_curvatures_need_double_precision(finished):
    seen = json.loads((finished.parent / "precisions.json").read_text())
    assert seen == {"map": "float32", "ensemble": "float32", "laplace": "float64"}


def test_means_and_differences_are_those_of_the_trials(finished):
    result = json.loads((finished / "result.json").read_text())
    trials = {(row["method"], row["split"]): row["scores"]["nll"] for row in result["trials"]}
    assert len(trials) == 3 * NUM_SPLITS and result["command"] == "bench uci"
    differences = np.array([trials["laplace", split] - trials["ensemble", split] for split in range(NUM_SPLITS)])
    found = result["nll_differences"]["made_up"]["laplace"]
    assert found["value"] == pytest.approx(differences.mean())
    assert found["standard_error"] == pytest.approx(differences.std(ddof=1) / math.sqrt(NUM_SPLITS))
    nll = np.mean([trials["map", split] for split in range(NUM_SPLITS)])
    assert result["means"]["made_up"]["map"]["nll"]["value"] == pytest.approx(nll)
    text = (finished / "table.md").read_text()
    assert f"| laplace | {NUM_SPLITS} |" in text and f" {nll:.3f} ± " in text
    assert f"({np.sum(differences < 0)} of {NUM_SPLITS}) |" in text and "LPPD a row is minus the NLL" in text
    assert (finished / "figures" / "differences-1.png").exists() and "made_up" in (finished / "report.html").read_text()


def test_more_splits_are_added_and_those_that_are_there_are_left(finished, made_up, tmp_path, capsys):
    command = ["bench", "uci", *LINEAR, "--methods", "map", "--reference", "map", "--out", str(tmp_path), "--resume"]
    assert run_command([*command, "--splits", "1"]) == 0
    first = tmp_path / "trials" / "made_up-00-map.json"
    before, stamp = first.read_bytes(), first.stat().st_mtime_ns
    capsys.readouterr()
    assert run_command([*command, "--splits", "3"]) == 0
    said = capsys.readouterr().out
    assert "3 trials, of which 1 are there already" in said and "made_up  2 map: RMSE" in said
    assert "made_up  0 map: RMSE" not in said and "map was run alone" in said
    assert (first.read_bytes(), first.stat().st_mtime_ns) == (before, stamp)
    scores = lambda folder: json.loads((folder / "trials" / "made_up-02-map.json").read_text())["scores"]
    assert scores(tmp_path) == scores(finished)  # neither other methods nor where it began matter


def test_an_interruption_keeps_the_trials_so_far(made_up, tmp_path, monkeypatch, capsys):
    command = ["bench", "uci", *LINEAR, "--methods", "map", "--reference", "map", "--out", str(tmp_path)]
    run, calls = bench_uci.run_trial, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(bench_uci, "run_trial", interrupted)
    assert run_command(command) == 130
    assert "repeat with `--resume` to go on" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "trials").iterdir()] == ["made_up-00-map.json"]
    assert run_command(command) == 2 and "Pass `--resume` to go on" in capsys.readouterr().err
    assert run_command([*command, "--resume"]) == 0 and len(calls) == 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--set", "map.num_steps=7"], "num_steps of `.*made_up-00-map.json` must be 2000 as before, got 7"),
        (["--seed", "1"], "seed of `.*` must be 0 as before, got 1"),
        (["--prior-scale", "2"], "prior.scale of `.*` must be 1.0 as before, got 2.0"),
        (["--start", "map=prior"], "start of `.*` must be network as before, got prior"),
        (["--sets", "yachts"], "Did you mean 'yacht'?"),
        (["--methods", "maps,ensemble"], "Did you mean 'map'?"),
        (["--reference", "hmc"], "`--reference` must be a known name, got 'hmc'"),
        (["--start", "hmc=prior"], "The method of `--start METHOD=WHERE` must be a known name"),
    ],
)
def test_changed_settings_and_unknown_names_are_one_line(finished, made_up, changed, message, capsys):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*.*")}
    methods = ["--methods", "map,ensemble,laplace", "--set", "ensemble.num_members=2"]
    assert run_command(["bench", "uci", *LINEAR, *methods, "--out", str(finished), "--resume", *changed]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(message.replace("?", r"\?"), said), said
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*.*")} == before


def test_what_a_method_refuses_is_kept_and_left_out_of_the_means(made_up, tmp_path, monkeypatch, capsys):
    score, calls = bench_trials._scores, []

    def refusing(trial, dataset, progress):
        calls.append(trial)
        if (trial.name, trial.split) == ("map", 1):
            raise InputError("The curvature must be\npositive, got less.")
        return score(trial, dataset, progress)

    monkeypatch.setattr(bench_trials, "_scores", refusing)
    methods = ["--methods", "map,ensemble", "--set", "ensemble.num_members=2", "--out", str(tmp_path), "--resume"]
    assert run_command(["bench", "uci", *LINEAR, *methods]) == 0
    said = capsys.readouterr().out
    assert "made_up  1 map: failed: The curvature must be positive, got less." in said
    result, text = json.loads((tmp_path / "result.json").read_text()), (tmp_path / "table.md").read_text()
    assert "| map | 2 of 3, 1 failed |" in text
    nll = lambda method: [row["scores"].get("nll") for row in result["trials"] if row["method"] == method]
    (first, none, last), ours = nll("map"), nll("ensemble")
    assert none is None and result["means"]["made_up"]["map"]["nll"]["value"] == pytest.approx((first + last) / 2)
    difference = result["nll_differences"]["made_up"]["map"]["value"]
    assert difference == pytest.approx((first - ours[0] + last - ours[2]) / 2, abs=1e-9)
    assert run_command(["bench", "uci", *LINEAR, *methods]) == 0 and len(calls) == 6  # failures are not tried again
