"""Methods that end in a density, on the command line: fit, predict, resume; and evidences side by side."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.tables import price, write_csv

import weightscape as ws
from weightscape.cli.main import run_command
from weightscape.inference import Gaussian

OPTIONS = ["--target", "price", "--hidden", "4", "--noise", "0.5", "--quiet"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    generator = np.random.default_rng(0)
    a, colour = generator.uniform(-2, 2, 60), generator.choice(["red", "blue"], 60)
    rows = [list(row) for row in zip(a, colour, price(a, colour) + 0.5 * generator.standard_normal(60), strict=True)]
    return write_csv(tmp_path_factory.mktemp("densities") / "sales.csv", ["a", "colour", "price"], rows)


def test_laplace_is_fitted_kept_and_predicts_in_closed_form(table, tmp_path):
    run, file = tmp_path / "run", tmp_path / "new.csv"
    settings = ["--method", "laplace", "--set", "structure=kronecker", "--draws", "30"]
    assert run_command(["fit", str(table), *OPTIONS, *settings, "--out", str(run)]) == 0
    result = json.loads((run / "result.json").read_text())
    assert result["predictions"] == "by the network linearised around the mode"
    assert result["draws"]["draws"] == 30
    assert result["draws"]["log_evidence"]["kind"] == "Laplace"
    gaussian = Gaussian.load(run)
    assert result["draws"]["log_evidence"]["value"] == float(gaussian.estimate.value)
    assert run_command(["predict", str(run), str(table), "--out", str(file), "--quiet"]) == 0
    shown = pd.read_csv(file)
    x = np.stack([shown["mean"], shown["epistemic_std"]], axis=1)
    assert np.all(np.isfinite(x)) and np.all(x[:, 1] > 0)


@pytest.mark.slow
def test_a_density_is_resumed_in_the_same_bits_and_replaced(table, tmp_path):
    run, settings = tmp_path / "run", ["--method", "laplace", "--set", "structure=diagonal", "--draws", "30"]
    assert run_command(["fit", str(table), *OPTIONS, *settings, "--out", str(run)]) == 0
    bits = (run / "draws-0001-00000.safetensors").read_bytes()
    assert run_command(["fit", str(table), *OPTIONS, *settings, "--out", str(run), "--resume"]) == 0
    assert next(run.glob("draws-*.safetensors")).read_bytes() == bits
    other = ["--method", "map", "--overwrite"]
    assert run_command(["fit", str(table), *OPTIONS, *other, "--out", str(run)]) == 0
    assert not list(run.glob("approximation*")) and not (run / "stages").exists()
    assert json.loads((run / "result.json").read_text())["predictions"] == "by the networks drawn"


def test_an_unknown_structure_is_one_line(table, tmp_path, capsys):
    settings = ["--method", "laplace", "--set", "structure=kroneker"]
    assert run_command(["fit", str(table), *OPTIONS, *settings, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "Did you mean 'kronecker'?" in error and error.count("\n") == 1


@pytest.mark.slow
def test_evidences_are_compared_in_a_table_a_picture_and_json(table, tmp_path, capsys):
    command = ["evidence", str(table), "--target", "price", "--noise", "0.5", "--widths", "1,3"]
    assert run_command([*command, "--methods", "laplace,neurallinear", "--draws", "50", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "prefers" in printed and printed.splitlines()[-1] == str(tmp_path / "report.html")
    rows = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert [(row["model"], row["method"]) for row in rows] == [
        ("1 units", "laplace"), ("1 units", "neurallinear"), ("3 units", "laplace"), ("3 units", "neurallinear"),
    ]  # fmt: skip
    assert all(np.isfinite(row["own"]["value"]) and np.isfinite(row["test_log_density"]) for row in rows)
    assert rows[0]["weighed"]["efficiency"] > 0 and rows[1]["weighed"] is None  # of some weights only: nothing to weigh
    assert (tmp_path / "figures" / "evidence.png").exists()
    assert ws.__version__ in (tmp_path / "result.json").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--widths", "2,x"], "`--widths` must be numbers, got '2,x'"),
        (["--prior-scales", "-1"], "`--prior-scales` must be positive numbers"),
        (["--methods", "laplac"], "Did you mean 'laplace'?"),
    ],
)
def test_mistakes_are_one_line(table, tmp_path, capsys, options, message):
    assert run_command(["evidence", str(table), "--target", "price", *options, "--out", str(tmp_path / "e")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
