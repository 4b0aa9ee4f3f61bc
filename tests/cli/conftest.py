"""Small tables with known answers, and runs that many tests look at."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.cli.tables import price, write_csv
from weightscape.cli.main import run_command


class Fit(NamedTuple):
    """A CSV file, and the folder of a run on it."""

    table: Path
    folder: Path


@pytest.fixture(scope="session")
def regression(tmp_path_factory) -> Fit:
    """A run of HMC on a number and a category."""
    folder = tmp_path_factory.mktemp("regression")
    generator = np.random.default_rng(0)
    a, colour = generator.uniform(-2, 2, 160), generator.choice(["red", "blue"], 160)
    y = price(a, colour) + 0.5 * generator.standard_normal(160)
    table = write_csv(
        folder / "sales.csv", ["a", "colour", "price"], [list(row) for row in zip(a, colour, y, strict=True)]
    )
    options = ["--target", "price", "--method", "hmc", "--chains", "2", "--draws", "60", "--hidden", "8", "--quiet"]
    assert run_command(["fit", str(table), *options, "--out", str(folder / "run")]) == 0
    return Fit(table, folder / "run")


@pytest.fixture(scope="session")
def classification(tmp_path_factory) -> Fit:
    """A run of an ensemble on three text labels, one of them hostile, as is a column."""
    folder = tmp_path_factory.mktemp("classification")
    u = np.random.default_rng(1).standard_normal((150, 2))
    labels = np.where(u[:, 0] > 0.4, "yes", np.where(u[:, 0] < -0.4, "<script>", "no"))
    rows = [[first, second, label] for (first, second), label in zip(u, labels, strict=True)]
    table = write_csv(folder / "votes.csv", ["u", "<script>v</script>", "label"], rows)
    options = ["--target", "label", "--method", "ensemble", "--chains", "4", "--quiet"]
    assert run_command(["fit", str(table), *options, "--out", str(folder / "run")]) == 0
    return Fit(table, folder / "run")
