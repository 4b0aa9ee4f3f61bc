"""A fit that is killed at any moment leaves a run that loads, or one without draws."""

import json
import os
import shutil
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
    "a header is there": lambda folder: len(list(folder.glob("header-*"))) > 0,
    "a chunk is there": lambda folder: len(list(folder.glob("draws-*.safetensors"))) > 0,
    "first draws are there": lambda folder: has_draws(folder),
    "several chunks are there": lambda folder: len(list(folder.glob("draws-*.safetensors"))) > 2,
}


def has_draws(folder: Path) -> bool:
    """Whether the manifest lists any chunk; before the first it holds only the state of warm-up."""
    manifest = folder / "draws.json"
    return manifest.exists() and bool(json.loads(manifest.read_text())["chunks"])


ENDLESS = ["--method", "hmc", "--draws", "1000000", "--hidden", "2", "--chains", "2"]


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
def killed(tmp_path_factory):
    """Copies of a run's folder as a kill at each moment leaves it, from one endless fit that is killed at the last.

    The process is frozen while it is copied, so a copy holds exactly what was written by then.
    """
    folder, copies = tmp_path_factory.mktemp("killed") / "run", {}
    process = start(["fit", "noisy_line", *ENDLESS, "--out", str(folder)])
    for moment, reached in MOMENTS.items():
        wait_until(lambda reached=reached: reached(folder), process)
        process.send_signal(signal.SIGSTOP)
        copies[moment] = Path(shutil.copytree(folder, tmp_path_factory.mktemp("copy") / "run"))
        process.send_signal(signal.SIGCONT)
    process.kill()
    process.communicate()
    return copies | {"the end": folder}


@pytest.mark.parametrize("moment", [*MOMENTS, "the end"])
def test_killed(killed, moment, tmp_path, capsys):
    folder = killed[moment]
    assert read_run(folder).name == "noisy_line"
    if not has_draws(folder):
        assert run_command(["report", str(folder)]) == 2
        complaint = capsys.readouterr().err
        assert "must hold draws.json" in complaint or "must hold draws, got none" in complaint
        return
    draws = ws.Draws.load(folder)
    assert len(draws) > 0 and draws.facts["complete"] is False
    if moment == "the end":
        assert run_command(["report", str(folder), "--out", str(tmp_path), "--quiet"]) == 0
        assert "the run was stopped" in (tmp_path / "report.html").read_text()


def test_mistakes_of_a_real_process_have_no_trace(tmp_path):
    process = start(["fit", str(tmp_path / "none.csv"), "--target", "y"])
    printed, complaint = process.communicate(timeout=60)
    assert process.returncode == 2 and printed == "", complaint
    assert complaint.startswith("weightscape: ") and len(complaint.splitlines()) == 1
