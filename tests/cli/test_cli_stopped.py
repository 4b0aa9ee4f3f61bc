"""Runs that end early: by a time limit, or because the user stopped them."""

import time

import numpy as np
from tests.cli.tables import write_csv

import weightscape as ws
from weightscape.cli.fit import _bounded
from weightscape.cli.main import run_command
from weightscape.core import Silent

ENDLESS = ["fit", "noisy_line", "--method", "hmc", "--draws", "1000000", "--hidden", "2", "--chains", "2"]


def test_a_time_limit_ends_the_run_promptly(tmp_path, capsys):
    began = time.monotonic()
    assert run_command(["fit", "noisy_line", "--minutes", "0.1", "--hidden", "2", "--out", str(tmp_path / "run")]) == 0
    assert time.monotonic() - began < 60
    assert "Method: a deep ensemble, since HMC" in capsys.readouterr().out
    assert ws.Draws.load(tmp_path / "run").facts["complete"]


def test_a_part_of_the_time_is_kept_for_the_report():
    began = time.monotonic()
    np.testing.assert_allclose(_bounded(Silent(), 10.0, began).seconds_left(), 600 - 20, atol=1)
    np.testing.assert_allclose(_bounded(Silent(), 0.1, began - 1).seconds_left(), 0.7 * 6 - 1, atol=1)
    assert _bounded(Silent(), 0.1, began - 100).seconds_left() <= 0
    assert _bounded(Silent(), None, began).seconds_left() == float("inf")


def test_an_interruption_keeps_the_draws_so_far(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("weightscape.cli.screen.Silent", Impatient)
    folder = tmp_path / "run"
    assert run_command([*ENDLESS, "--out", str(folder), "--quiet"]) == 130
    complaint = capsys.readouterr().err
    assert complaint.splitlines() == [
        f"weightscape: Stopped. The draws so far are kept in `{folder}`: see `weightscape report {folder}`, or "
        "repeat the command with `--resume` to go on."
    ]
    draws = ws.Draws.load(folder)
    assert len(draws) > 0 and draws.facts["complete"] is False
    new = write_csv(tmp_path / "new.csv", ["x"], [[0.5]])
    assert run_command(["predict", str(folder), str(new)]) == 0
    assert "The run was stopped early" in capsys.readouterr().out


class Impatient(Silent):
    """Interrupts the run at the second chunk of sampling, as Ctrl-C does."""

    def start(self, label, total):
        self.label, self.num_chunks = label, 0

    def advance(self, done, facts):
        self.num_chunks += 1
        if self.label == "sampling" and self.num_chunks == 2:
            raise KeyboardInterrupt
