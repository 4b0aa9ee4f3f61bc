"""Resuming on the command line: real processes, really killed."""

import json
from pathlib import Path

import pytest
from benchmarks.kills import WORK, arguments, await_work, finish, same_bits, start
from tests.cli.test_cli_stopped import Impatient

import weightscape as ws
from weightscape.cli.finish import Finished
from weightscape.cli.main import run_command
from weightscape.report import Table

FIT = ["fit", "noisy_line", "--method", "hmc", "--draws", "400", "--hidden", "2", "--chains", "2", "--quiet"]


@pytest.fixture
def no_report(monkeypatch):
    """Leave out what comes after the draws: it takes longer than they do."""
    nothing = Finished("", "", Table("", (), ()), Path("nowhere"))
    monkeypatch.setattr("weightscape.cli.fit.finish_run", lambda *_: nothing)


@pytest.mark.slow
def test_killed_processes_end_in_the_same_bits(tmp_path, monkeypatch, no_report):
    """A kill as soon as there is something on disk, one a little later; `benchmarks/kills.py` does fifty."""
    monkeypatch.setitem(WORK, "hmc", ["--chains", "2", "--draws", "2000"])
    for delay in (0.0, 0.7):
        process = start("hmc", tmp_path / "killed")
        await_work(process, tmp_path / "killed")
        assert finish(process, delay), "the run was done before the kill"
    for folder in ("killed", "untouched"):
        assert run_command(arguments("hmc", tmp_path / folder)) == 0
    assert same_bits(tmp_path / "killed", tmp_path / "untouched")


def test_an_interrupted_fit_is_resumed(tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("weightscape.cli.screen.Silent", Impatient)
        assert run_command([*FIT, "--out", str(tmp_path / "run")]) == 130
    assert "repeat the command with `--resume` to go on" in capsys.readouterr().err
    assert run_command([*FIT, "--out", str(tmp_path / "run"), "--resume"]) == 0
    monkeypatch.setattr("weightscape.cli.fit.finish_run", lambda *_: Finished("", "", Table("", (), ()), tmp_path))
    assert run_command([*FIT, "--out", str(tmp_path / "whole"), "--resume"]) == 0  # begins where there is none
    left, right = ws.Draws.load(tmp_path / "run"), ws.Draws.load(tmp_path / "whole")
    assert left.facts["complete"] and (left.log_density == right.log_density).all()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["draws"]["complete"] and result["draws"]["draws"] == 400


def test_what_cannot_be_resumed_is_one_line(tmp_path, capsys, no_report):
    folder = str(tmp_path / "run")
    assert run_command([*FIT, "--out", folder]) == 0
    assert run_command([*FIT, "--out", folder]) == 2
    assert "Pass `--resume` to go on with it" in capsys.readouterr().err
    assert run_command([*FIT, "--out", folder, "--resume", "--overwrite"]) == 2
    assert "must not both be given" in capsys.readouterr().err
    assert run_command([*FIT, "--out", folder, "--resume", "--seed", "1"]) == 2
    complaint = capsys.readouterr().err
    assert "Repeat the first command's options" in complaint and len(complaint.splitlines()) == 1


def test_settings_starts_and_conduct_reach_the_method(tmp_path, capsys, no_report):
    run = ["fit", "noisy_line", "--method", "hmc", "--draws", "5", "--hidden", "2", "--chains", "2", "--quiet"]
    options = ["--set", "num_warmup=30", "--set", "num_leapfrog=3", "--set", "step_size=0.01", "--start", "prior"]
    assert run_command([*run, *options, "--keep-all", "--out", str(tmp_path / "run")]) == 0
    fields = ws.Draws.load(tmp_path / "run").facts["settings"]["fields"]
    assert fields["num_warmup"] == 30 and fields["num_leapfrog"] == 3
    for wrong, message in {
        ("--set", "num_warmups=3"): "Did you mean 'num_warmup'?",
        ("--set", "num_warmup=many"): "must have a number, true, false or null, got 'many'",
        ("--start", "nowhere"): "Known: ensemble, map, network, prior",
        ("--restart", "later"): "Known: nearby, prior",
        ("--progress", "loud"): "Known: bar, json, none",
    }.items():
        assert run_command([*run, *wrong, "--out", str(tmp_path / "other")]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "other").exists()


def test_progress_as_json_lines(tmp_path, capsys, no_report):
    assert run_command([*FIT, "--progress", "json", "--out", str(tmp_path / "run")]) == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {event["event"] for event in events} == {"start", "advance", "finish"}
    assert events[-1]["done"] == 400
