"""From a CSV file to predictions: near the known function, honest about noise, the same for the same seed."""

import json

import numpy as np
import pytest
from tests.cli.tables import price, read_csv, write_csv

import weightscape as ws
from weightscape.cli.finish import Finished
from weightscape.cli.main import run_command
from weightscape.cli.run_folder import read_run
from weightscape.report import Table

NUMBER_COLUMNS = ["row", "mean", "std", "epistemic_std", "lower", "upper", "outside", "outside_reason"]


@pytest.fixture(scope="module")
def predicted(regression, tmp_path_factory):
    """Predictions for new rows with targets that the run has not seen."""
    folder = tmp_path_factory.mktemp("predicted")
    generator = np.random.default_rng(7)
    a, colour = generator.uniform(-1.8, 1.8, 300), generator.choice(["red", "blue"], 300)
    rows = [["left out", first, second] for first, second in zip(colour, a, strict=True)]
    table = write_csv(folder / "new.csv", ["note", "colour", "a"], [*rows, ["far", "red", 9.0]])
    assert run_command(["predict", str(regression.folder), str(table), "--out", str(folder / "p.csv"), "--quiet"]) == 0
    truth = price(a, colour)
    return read_csv(folder / "p.csv"), truth, truth + 0.5 * generator.standard_normal(300)


def numbers(rows, column):
    return np.array([float(row[column]) for row in rows])


def test_columns_and_order_are_as_promised(predicted):
    rows, _, _ = predicted
    assert list(rows[0]) == NUMBER_COLUMNS
    assert [int(row["row"]) for row in rows] == list(range(2, 303))


def test_means_are_near_the_known_function(predicted):
    rows, truth, _ = predicted
    error = numbers(rows[:-1], "mean") - truth
    # 128 rows, noise 0.5 and about ten effective parameters: 0.5 √(10 / 128) = 0.14.
    assert np.sqrt(np.mean(error**2)) < 0.25


def test_intervals_hold_about_nine_targets_in_ten(predicted):
    rows, _, y = predicted
    inside = (y >= numbers(rows[:-1], "lower")) & (y <= numbers(rows[:-1], "upper"))
    # Binomial error of 300 rows: 0.017; the noise scale itself is known to 0.5 / √(2 · 128), worth 0.02.
    assert 0.82 < inside.mean() < 0.97


def test_total_spread_is_noise_and_doubt(predicted):
    rows, _, _ = predicted
    noise = np.sqrt(numbers(rows, "std") ** 2 - numbers(rows, "epistemic_std") ** 2)
    np.testing.assert_allclose(noise, noise[0], rtol=1e-3)
    assert 0.4 < noise[0] < 0.65


def test_a_far_row_is_flagged_and_doubtful(predicted):
    rows, _, _ = predicted
    assert [row["outside"] for row in rows] == ["false"] * 300 + ["true"]
    assert rows[-1]["outside_reason"].startswith("a = 9 lies outside")
    assert rows[0]["outside_reason"] == ""
    assert float(rows[-1]["epistemic_std"]) > 5 * float(rows[0]["epistemic_std"])


def test_predictions_equal_those_of_the_library(regression, tmp_path):
    draws = ws.Draws.load(regression.folder)
    x = read_run(regression.folder).schema.encode(regression.table)
    assert run_command(["predict", str(regression.folder), str(regression.table), "-q", "--out", f"{tmp_path}/p"]) == 0
    np.testing.assert_allclose(numbers(read_csv(tmp_path / "p"), "mean"), ws.predict(draws, x).mean, rtol=1e-5)


def test_classes_are_predicted_by_name(classification, tmp_path):
    new = write_csv(tmp_path / "new.csv", ["u", "<script>v</script>"], [[2.0, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    assert run_command(["predict", str(classification.folder), str(new), "--quiet"]) == 0
    rows = read_csv(tmp_path / "pred.csv")
    classes = ["<script>", "no", "yes"]
    ending = ["entropy", "mutual_information", "outside", "outside_reason"]
    assert list(rows[0]) == ["row", "prediction", *(f"probability_{name}" for name in classes), *ending]
    assert [row["prediction"] for row in rows] == ["yes", "no", "<script>"]
    total = sum(numbers(rows, f"probability_{name}") for name in classes)
    np.testing.assert_allclose(total, 1, atol=1e-5)
    assert np.all(numbers(rows, "mutual_information") <= numbers(rows, "entropy"))


def test_result_holds_scores_that_a_machine_can_read(regression, classification):
    result = json.loads((regression.folder / "result.json").read_text())
    assert set(result["scores"]) == {"rmse", "nll", "crps", "coverage_90"}
    assert result["rows"] == {"train": 128, "test": 32}
    assert result["draws"]["method"] == "HMC" and result["draws"]["complete"] is True
    scores = json.loads((classification.folder / "result.json").read_text())["scores"]
    assert scores["accuracy"] > 0.85


def test_the_same_seed_gives_the_same_predictions(regression, tmp_path, monkeypatch):
    skipped = Finished("", "", Table("", (), ()), tmp_path)  # the report takes longer than the fit
    monkeypatch.setattr("weightscape.cli.fit.finish_run", lambda *_: skipped)
    made = {}
    options = ["--target", "price", "--method", "map", "--hidden", "4", "--quiet"]
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        folder = tmp_path / name
        assert run_command(["fit", str(regression.table), *options, "--seed", seed, "--out", str(folder)]) == 0
        assert run_command(["predict", str(folder), str(regression.table), "-q", "--out", f"{folder}/p.csv"]) == 0
        made[name] = (folder / "p.csv").read_bytes()
    assert made["a"] == made["b"]
    assert made["a"] != made["c"]


def test_a_run_on_a_known_data_set_reads_named_and_plain_columns(tmp_path, capsys):
    folder = tmp_path / "run"
    assert run_command(["fit", "noisy_line", "--method", "map", "--hidden", "", "--out", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "map was asked for" in printed and printed.splitlines()[-1] == str(folder / "report.html")
    named = write_csv(tmp_path / "named.csv", ["other", "x"], [[5, 0.5], [5, -0.5]])
    plain = write_csv(tmp_path / "plain.csv", ["whatever"], [[0.5], [-0.5]])
    for table in (named, plain):
        assert run_command(["predict", str(folder), str(table), "-q", "--out", str(tmp_path / "p.csv")]) == 0
        # y = 3x with noise 0.3 and 60 points: the slope's error is 0.3 / √(60 / 3), and 0.1 at x = 0.5 is 3 of them.
        np.testing.assert_allclose(numbers(read_csv(tmp_path / "p.csv"), "mean"), [1.5, -1.5], atol=0.2)
    headless = write_csv(tmp_path / "headless.csv", ["0.5"], [[0.1], [0.2]])
    assert run_command(["predict", str(folder), str(headless)]) == 2
    assert "must begin with the names of its columns" in capsys.readouterr().err
