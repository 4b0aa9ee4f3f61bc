"""Variational runs that are killed, finished, cut short, repeated with other numbers."""

import dataclasses

import jax
import numpy as np
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError, Silent, loop
from weightscape.inference import load_approximation
from weightscape.inference.variational.mean_field import MeanFieldGuide

METHODS = {
    "mean field": ws.MeanFieldVI(num_steps=600, batch_size=10, num_evidence_draws=5),
    "student": ws.MeanFieldVI(num_steps=600, family=ws.families.StudentT(5.0), num_evidence_draws=5),
    "layerwise": ws.LayerwiseVI(num_steps=600, kl_warmup=200, num_evidence_draws=5),
}


class Killed(BaseException):
    """Ends a run at once: nobody catches it, nothing is written after it."""


class Ending(Silent):
    """Ends the run at the given event."""

    def __init__(self, event):
        self.event, self.heard = event, 0

    def advance(self, done, facts):
        self.heard += 1
        assert np.isfinite(facts["ELBO"])
        if self.heard == self.event:
            raise Killed


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of seven, however fast the machine is, so that there are moments to stop at."""
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 7)


def assert_same_bits(left, right):
    first, second = left.bare(), right.bare()
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert jax.tree.all(jax.tree.map(np.array_equal, first, second))
    assert left.estimate == right.estimate


@pytest.mark.parametrize("name", METHODS)
def test_a_killed_run_ends_in_the_same_bits(name, tmp_path):
    method, posterior, key = METHODS[name], linear().posterior, jax.random.key(3)
    whole = method.run(key, posterior)
    for event in (1, 3, 8):
        folder = tmp_path / str(event)
        with pytest.raises(Killed):
            method.run(key, posterior, store=folder, progress=Ending(event))
        resumed = method.run(key, posterior, store=folder, resume=True)
        assert_same_bits(resumed, whole)
        assert_same_bits(load_approximation(folder, posterior), whole)
        assert resumed.facts["complete"] and resumed.facts["num_steps"] == 600
        # Once finished it is loaded: there is no step at which it could be killed.
        assert_same_bits(method.run(key, posterior, store=folder, resume=True, progress=Ending(1)), whole)


def test_another_run_is_not_continued(tmp_path):
    method, posterior, key = METHODS["mean field"], linear().posterior, jax.random.key(3)
    with pytest.raises(Killed):
        method.run(key, posterior, store=tmp_path / "killed", progress=Ending(3))
    method.run(key, posterior, store=tmp_path / "finished")
    for folder in ("killed", "finished"):
        with pytest.raises(InputError, match="must have the settings"):
            dataclasses.replace(method, learning_rate=0.01).run(key, posterior, store=tmp_path / folder, resume=True)
        with pytest.raises(InputError, match="must have the key"):
            method.run(jax.random.key(4), posterior, store=tmp_path / folder, resume=True)


def test_a_run_that_ran_out_of_time_goes_on(tmp_path):
    class Late(Silent):
        def seconds_left(self):
            return 0.0

    method, posterior, key = METHODS["layerwise"], linear().posterior, jax.random.key(5)
    short = method.run(key, posterior, store=tmp_path, progress=Late())
    assert not short.facts["complete"] and short.facts["num_steps"] < 600
    assert_same_bits(method.run(key, posterior, store=tmp_path, resume=True), method.run(key, posterior))


def test_new_numbers_compile_nothing(monkeypatch):
    traces = []
    original = MeanFieldGuide.sample_and_log_density
    counted = lambda self, key: (traces.append(1), original(self, key))[1]
    monkeypatch.setattr(MeanFieldGuide, "sample_and_log_density", counted)
    base = ws.MeanFieldVI(num_steps=20, family=ws.families.StudentT(5.0), num_evidence_draws=3)
    base.run(jax.random.key(0), linear().posterior)
    changes = [{"learning_rate": 0.5}, {"initial_scale": 0.1}, {"family": ws.families.StudentT(4.0)}, {"num_steps": 15}]
    for change in changes:
        before = len(traces)
        dataclasses.replace(base, **change).run(jax.random.key(1), linear(noise=0.4, prior_scale=2.0).posterior)
        assert len(traces) - before <= 1  # the driver asks for the shapes of a step, and compiles none
