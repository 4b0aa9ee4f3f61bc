"""Stored flows have the same densities; those that look at the data ask for them."""

import dataclasses

import jax
import numpy as np
import pytest
from tests.flow import tiny

import weightscape as ws
from weightscape.core import InputError
from weightscape.flow import Equivariant, FixedSteps, Hutchinson, Principal

pytestmark = pytest.mark.usefixtures("x64")
GUIDED = tiny.METHOD
UNGUIDED = dataclasses.replace(tiny.METHOD, architecture=Equivariant(tiny.SIZES, guided=False))
PRINCIPAL = dataclasses.replace(tiny.METHOD, architecture=Principal(tiny.SIZES))
METHODS = {"guided": GUIDED, "unguided": UNGUIDED, "principal": PRINCIPAL}


def flow(name):
    return tiny.shaken(tiny.untrained(METHODS[name]))


@pytest.mark.parametrize("name", ["guided", pytest.param("unguided", marks=pytest.mark.slow), "principal"])
def test_a_loaded_flow_has_the_same_density(name, tmp_path):
    ours = flow(name)
    ours = dataclasses.replace(ours, facts=ours.facts.plus(seconds=3.5))
    ours.save(tmp_path)
    loaded = ws.Flow.load(tmp_path, tiny.posterior())
    draws = tiny.draws()[:2, :8]
    assert np.ptp(ours.log_densities(draws)) > 0.1
    np.testing.assert_array_equal(loaded.log_densities(draws), ours.log_densities(draws))
    assert loaded.facts == ours.facts and loaded.posterior is not None
    assert jax.tree.structure(loaded.bare()) == jax.tree.structure(ours.bare())


def test_a_flow_that_looks_at_the_data_must_be_given_them(tmp_path):
    flow("guided").save(tmp_path)
    with pytest.raises(InputError, match="must be loaded with them, got none. Pass `load.path, posterior.`"):
        ws.Flow.load(tmp_path)


def test_others_are_loaded_without(tmp_path):
    ours = flow("unguided")
    ours.save(tmp_path)
    loaded = ws.Flow.load(tmp_path)
    assert loaded.posterior is None
    draws = tiny.draws()[:2, :8]
    np.testing.assert_array_equal(loaded.log_densities(draws), ours.log_densities(draws))
    with pytest.raises(InputError, match="`evidence` must know the data"):
        loaded.evidence(jax.random.key(0), 10)


def test_solver_and_divergence_are_kept(tmp_path):
    flow("unguided").with_solver(FixedSteps(3)).with_divergence(Hutchinson(5)).save(tmp_path)
    loaded = ws.Flow.load(tmp_path)
    assert float(loaded.solver.num_steps) == 3 and loaded.divergence.num_probes == 5
    assert loaded.method.architecture == UNGUIDED.architecture


def test_numbers_of_another_model_are_refused(tmp_path):
    flow("unguided").save(tmp_path)
    manifest = (tmp_path / "approximation.json").read_text()
    assert '"edge_width": 4' in manifest
    (tmp_path / "approximation.json").write_text(manifest.replace('"edge_width": 4', '"edge_width": 6'))
    with pytest.raises(InputError, match="must hold the numbers of its model"):
        ws.Flow.load(tmp_path)
