"""Small tables with known answers, and runs that many tests look at."""

import time
from collections.abc import Callable
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
def regression(tmp_path_factory, worker_id) -> Fit:
    """A run of HMC on a number and a category."""
    return made_once("regression", make_regression, tmp_path_factory, worker_id)


@pytest.fixture(scope="session")
def classification(tmp_path_factory, worker_id) -> Fit:
    """A run of an ensemble on three text labels, one of them hostile, as is a column."""
    return made_once("classification", make_classification, tmp_path_factory, worker_id)


def made_once(name: str, make: Callable[[Path], Fit], tmp_path_factory, worker_id: str) -> Fit:
    """What `make` makes in a folder that the test processes share; the first to come makes it, others wait."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / name
    try:
        folder.mkdir()
    except FileExistsError:
        end = time.monotonic() + 300
        while not (folder / "done").exists():
            assert time.monotonic() < end, f"the other process did not finish {name}"
            time.sleep(0.1)
        return Fit(next(folder.glob("*.csv")), folder / "run")
    fit = make(folder)
    (folder / "done").touch()
    return fit


def make_regression(folder: Path) -> Fit:
    generator = np.random.default_rng(0)
    a, colour = generator.uniform(-2, 2, 160), generator.choice(["red", "blue"], 160)
    y = price(a, colour) + 0.5 * generator.standard_normal(160)
    table = write_csv(
        folder / "sales.csv", ["a", "colour", "price"], [list(row) for row in zip(a, colour, y, strict=True)]
    )
    options = ["--target", "price", "--method", "hmc", "--chains", "2", "--draws", "60", "--hidden", "8", "--quiet"]
    assert run_command(["fit", str(table), *options, "--out", str(folder / "run")]) == 0
    return Fit(table, folder / "run")


def make_classification(folder: Path) -> Fit:
    u = np.random.default_rng(1).standard_normal((150, 2))
    labels = np.where(u[:, 0] > 0.4, "yes", np.where(u[:, 0] < -0.4, "<script>", "no"))
    rows = [[first, second, label] for (first, second), label in zip(u, labels, strict=True)]
    table = write_csv(folder / "votes.csv", ["u", "<script>v</script>", "label"], rows)
    options = ["--target", "label", "--method", "ensemble", "--chains", "4", "--quiet"]
    assert run_command(["fit", str(table), *options, "--out", str(folder / "run")]) == 0
    return Fit(table, folder / "run")
