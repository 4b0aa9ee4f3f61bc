"""A fit that is killed at any moment leaves a run that loads, or one without draws."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weightscape as ws
from weightscape.cli.main import run_command
from weightscape.cli.run_folder import read_run

SOURCE = str(Path(ws.__file__).parents[1])
MOMENTS = {
    "settings are there": lambda folder: (folder / "run.json").exists(),
    "first draws are there": lambda folder: (folder / "draws.json").exists(),
    "several chunks are there": lambda folder: len(list(folder.glob("draws-*.safetensors"))) > 2,
}


def start(arguments: list[str]) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-m", "weightscape.cli.main", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(condition, process: subprocess.Popen, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < end, process.communicate(timeout=5)
        time.sleep(0.005)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One endless fit for each moment, side by side."""
    folders = {moment: tmp_path_factory.mktemp("killed") / "run" for moment in MOMENTS}
    options = ["--method", "hmc", "--draws", "1000000", "--hidden", "2", "--chains", "2"]
    processes = {moment: start(["fit", "noisy_line", *options, "--out", str(f)]) for moment, f in folders.items()}
    yield {moment: (processes[moment], folders[moment]) for moment in MOMENTS}
    for process in processes.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed(running, moment, tmp_path, capsys):
    process, folder = running[moment]
    wait_until(lambda: MOMENTS[moment](folder), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert read_run(folder).name == "noisy_line"
    if not (folder / "draws.json").exists():
        assert run_command(["report", str(folder)]) == 2
        assert "must hold draws.json" in capsys.readouterr().err
        return
    draws = ws.Draws.load(folder)
    assert len(draws) > 0 and draws.facts["complete"] is False
    assert run_command(["report", str(folder), "--out", str(tmp_path)]) == 0
    assert "the run was stopped" in (tmp_path / "report.html").read_text()


def test_an_interrupted_fit_keeps_its_draws(tmp_path):
    options = ["--method", "hmc", "--draws", "1000000", "--hidden", "2", "--chains", "2"]
    process = start(["fit", "noisy_line", *options, "--out", str(tmp_path / "run")])
    wait_until(lambda: (tmp_path / "run" / "draws.json").exists(), process)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(complaint.splitlines()) == 1 and "The draws so far are kept" in complaint
    assert len(ws.Draws.load(tmp_path / "run")) > 0


def test_mistakes_of_a_real_process_have_no_trace(tmp_path):
    process = start(["fit", str(tmp_path / "none.csv"), "--target", "y"])
    printed, complaint = process.communicate(timeout=60)
    assert process.returncode == 2 and printed == ""
    assert complaint.startswith("weightscape: ") and len(complaint.splitlines()) == 1
