"""Large data are refused where the compiler would sum them wrongly."""

import subprocess
import sys

import jax
import pytest

from weightscape.core import InputError, compiler

CONDITION = """
import numpy as np
model = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(1.0), ws.priors.Normal(1.0))
model.condition(ws.Batch(np.ones(({rows}, 3)), np.ones({rows})))
"""


def run(code, rows):
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    whole = f"{code}\n{CONDITION.format(rows=rows)}"
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, env=environment)


@pytest.mark.skipif(jax.__version_info__ >= (0, 11), reason="this jax sums rightly without help")
def test_a_backend_that_started_too_early_is_found_out():
    early = "import jax, jax.numpy as jnp\njnp.zeros(3) + 1\nimport weightscape as ws"
    assert "Import weightscape before the first computation" in run(early, 40_000).stderr
    assert run(early, 100).returncode == 0


def test_importing_first_is_enough():
    assert run("import weightscape as ws", 40_000).returncode == 0


def test_only_large_data_are_looked_at(monkeypatch):
    monkeypatch.setattr(compiler, "_sums_are_right", lambda: False)
    monkeypatch.setattr(compiler, "_may_be_faulty", lambda: True)
    compiler.require_right_sums(16_384)
    with pytest.raises(InputError, match="Data of 16385 rows must be summed rightly"):
        compiler.require_right_sums(16_385)
