"""Devices, progress and facts."""

import io
import subprocess
import sys
import time

import jax
import pytest
from rich.console import Console

from weightscape.core import Bar, Deadline, InputError, Silent, chain_mesh, devices
from weightscape.core.facts import Facts


def test_chains_share_devices_equally():
    assert len(jax.devices()) == 2  # set in conftest
    assert [chain_mesh(n).size for n in (1, 2, 3, 4, 5)] == [1, 2, 1, 2, 1]


def test_devices_after_the_backend_started_must_agree():
    jax.devices()
    assert len(devices(2)) == 2
    with pytest.raises(InputError, match=r"`devices\(3\)` must be called before the first computation"):
        devices(3)


def test_cores_count_as_devices_in_a_fresh_process():
    code = "import weightscape as ws; print(len(ws.devices(3)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"


def test_deadline_counts_down_and_passes_everything_on():
    heard = []

    class Listener(Silent):
        def start(self, label, total):
            heard.append((label, total))

    deadline = Deadline(0.2, Listener())
    deadline.start("phase", 3)
    assert heard == [("phase", 3)]
    assert 0 < deadline.seconds_left() <= 0.2
    time.sleep(0.25)
    assert deadline.seconds_left() < 0


def test_bar_shows_label_and_facts():
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=120))
    bar.start("sampling", 10)
    bar.advance(10, {"acceptance": 0.8123})
    bar.finish()
    assert "sampling" in screen.getvalue() and "acceptance 0.812" in screen.getvalue()


def test_facts_are_immutable_json_with_value_equality():
    facts = Facts(b=1, a={"x": (1, 2)})
    assert facts == Facts(a={"x": [1, 2]}, b=1) and hash(facts) == hash(Facts(a={"x": [1, 2]}, b=1))
    assert facts.plus(b=2)["b"] == 2 and facts["b"] == 1
    with pytest.raises(TypeError):
        Facts(bad=object())


def test_importing_the_library_starts_no_backend():
    """A default that holds an array, made while a class is read, would: then `devices()` comes too late."""
    program = "import weightscape; from jax._src import xla_bridge; assert not xla_bridge.backends_are_initialized()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
