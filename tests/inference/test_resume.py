"""Stopped runs go on: whatever the method and the moment, in the same bits as a run that never stopped."""

import dataclasses
import json
import resource

import jax
import numpy as np
import pytest
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError, Silent, loop
from weightscape.core.files import write_atomically
from weightscape.draws import recorder

CHAINS = {"num_chains": 2, "num_draws": 60, "num_warmup": 40}
RUNS = {"num_runs": 2, "num_steps": 40, "num_draws": 60, "every": 2, "last_rate": 1e-2, "batch_size": 8}
METHODS = {
    "hmc": ws.HMC(**CHAINS, num_leapfrog=4),
    "hmc thinned": ws.HMC(**CHAINS, num_leapfrog=2, thin=3),
    "hmc low-rank": ws.HMC(**CHAINS, num_leapfrog=2, mass=ws.LowRankMass(1)),
    "nuts": ws.NUTS(**CHAINS, max_depth=3),
    "mclmc": ws.MCLMC(**CHAINS),
    "tempering": ws.ParallelTempering(**CHAINS, num_replicas=3, num_leapfrog=2),
    "metropolis": ws.MetropolisHastings(ws.RandomWalk(0.05), **CHAINS, thin=2),
    "ensemble": ws.DeepEnsemble(num_members=2, num_steps=1000),
    "population": ws.Population(**RUNS),
    "population with shared batches": ws.Population(**RUNS, share_batches=True),
}


class Killed(BaseException):
    """Ends a run at once: nobody catches it, nothing is written after it."""


class Ending(Silent):
    """Ends the run at the given event, by a kill or by an interruption."""

    def __init__(self, event, kind=Killed):
        self.event, self.kind, self.heard = event, kind, 0

    def advance(self, done, facts):
        self.heard += 1
        if self.heard == self.event:
            raise self.kind


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of seven, however fast the machine is, so that there are moments to stop at."""
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 7)


def assert_same_bits(left, right):
    assert jax.tree.structure(left.sampled()) == jax.tree.structure(right.sampled())
    for one, other in zip(jax.tree.leaves(left.sampled()), jax.tree.leaves(right.sampled()), strict=True):
        assert np.array_equal(one, other)


QUICK = ("hmc", "metropolis", "mclmc", "ensemble")
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]


@pytest.mark.parametrize("name", EACH)
def test_a_killed_run_ends_in_the_same_bits(name, tmp_path):
    method, posterior, key = METHODS[name], linear().posterior, jax.random.key(3)
    whole = method.run(key, posterior)
    for event in (1, 2, 6, 9, 13):
        folder = tmp_path / str(event)
        with pytest.raises(Killed):
            method.run(key, posterior, store=folder, progress=Ending(event))
        resumed = method.run(key, posterior, store=folder, resume=True)
        assert_same_bits(resumed, whole)
        assert_same_bits(ws.Draws.load(folder), whole)
        assert resumed.facts["complete"] and resumed.facts["seconds"] > 0


def test_many_kills_of_one_run(tmp_path):
    method, posterior, key = METHODS["hmc"], linear().posterior, jax.random.key(4)
    for _ in range(20):
        try:
            draws = method.run(key, posterior, store=tmp_path, resume=True, progress=Ending(2))
            break
        except Killed:
            continue
    assert_same_bits(draws, method.run(key, posterior))
    assert len(list(tmp_path.glob("draws-*"))) == 1 and len(list(tmp_path.glob("state-*"))) == 1


def test_an_interruption_writes_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder.Recorder, "_is_due", lambda self: False)
    method, posterior = METHODS["hmc"], linear().posterior
    with pytest.raises(KeyboardInterrupt):
        method.run(jax.random.key(5), posterior, store=tmp_path, progress=Ending(11, KeyboardInterrupt))
    kept = ws.Draws.load(tmp_path)
    assert kept.facts["complete"] is False and 0 < kept.num_draws < 60
    whole = method.run(jax.random.key(5), posterior)
    assert_same_bits(kept, whole[:, : kept.num_draws])


def test_a_complete_run_is_not_repeated_and_can_be_made_longer(tmp_path):
    method, posterior, key = METHODS["hmc"], linear().posterior, jax.random.key(6)
    first = method.run(key, posterior, store=tmp_path)
    again = method.run(key, posterior, store=tmp_path, resume=True, progress=Ending(1))
    assert_same_bits(again, first)
    longer = dataclasses.replace(method, num_draws=100)
    assert_same_bits(longer.run(key, posterior, store=tmp_path, resume=True), longer.run(key, posterior))


def test_a_run_that_ran_out_of_time_goes_on(tmp_path):
    class Late(Silent):
        def seconds_left(self):
            return 0.0

    method = dataclasses.replace(METHODS["hmc"], num_draws=500, step_size=0.01)
    start = ws.MAP(num_steps=500).run(jax.random.key(0), linear().posterior)
    short = method.run(jax.random.key(7), linear().posterior, init=start, store=tmp_path, progress=Late())
    assert not short.facts["complete"] and short.num_draws < 500
    rest = method.run(jax.random.key(7), linear().posterior, store=tmp_path, resume=True)
    assert rest.facts["complete"] and rest.num_draws == 500
    assert_same_bits(rest[:, : short.num_draws], short)


def test_another_run_is_not_continued(tmp_path):
    method, posterior, key = METHODS["hmc"], linear().posterior, jax.random.key(8)
    with pytest.raises(Killed):
        method.run(key, posterior, store=tmp_path, progress=Ending(9))
    wider = ws.Model(ws.networks.MLP(hidden=(), bias=False), ws.likelihoods.Gaussian(0.3), ws.priors.Normal(2.0))
    others = {
        "settings": (dataclasses.replace(method, num_leapfrog=5), key, posterior),
        "method": (METHODS["metropolis"], key, posterior),
        "key": (method, jax.random.key(9), posterior),
        "data": (method, key, posterior.tempered(likelihood=0.5)),
        "model": (method, key, wider.condition(ws.Batch(linear().x, linear().y))),
    }
    for what, (other, seed, target) in others.items():
        with pytest.raises(InputError, match=f"must have the {what} .* Repeat the first command's options"):
            other.run(seed, target, store=tmp_path, resume=True)
    with pytest.raises(InputError, match="A run to resume must have a store"):
        method.run(key, posterior, resume=True)


def test_a_damaged_state_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "_WRITE_SHARE", -1.0)  # writes are due at once, however slow the machine is
    monkeypatch.setattr(recorder, "_WORK_PER_WRITE", 0.0)
    method, posterior, key = METHODS["hmc"], linear().posterior, jax.random.key(10)
    with pytest.raises(Killed):
        method.run(key, posterior, store=tmp_path, progress=Ending(9))
    manifest = json.loads((tmp_path / "draws.json").read_text())
    manifest["state"]["file"] = manifest["chunks"][0]
    (tmp_path / "draws.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="stored state must hold .* damaged"):
        method.run(key, posterior, store=tmp_path, resume=True)


def test_a_full_disk_ends_the_run_with_what_was_complete(tmp_path):
    """A limit on the size of files stands for a disk that is full: the same errors, from the real libraries."""
    model = ws.Model(ws.networks.MLP(hidden=(300,)), ws.likelihoods.Gaussian(0.3), ws.priors.Normal())
    posterior = model.condition(ws.Batch(linear().x, linear().y))
    method = ws.HMC(**CHAINS, num_leapfrog=2)
    whole = method.run(jax.random.key(0), posterior)  # and compiles, which writes files of its own
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, hard))
    try:
        with pytest.raises(OSError, match="could not be written: .*Free space or choose another folder"):
            method.run(jax.random.key(0), posterior, store=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("*.part"))
    assert_same_bits(method.run(jax.random.key(0), posterior, store=tmp_path, resume=True), whole)


def test_files_that_do_not_fit_together_stay_apart(tmp_path, monkeypatch):
    method, posterior, key = METHODS["hmc"], linear().posterior, jax.random.key(11)

    def full(path, parts):
        write_atomically(path, lambda part: (_ for _ in ()).throw(OSError(28, "No space left on device")))

    monkeypatch.setattr("weightscape.draws.store.join_arrays", full)
    monkeypatch.setattr(recorder, "_WORK_PER_WRITE", 0.0)
    draws = method.run(key, posterior, store=tmp_path)
    assert len(list(tmp_path.glob("draws-*"))) > 1
    assert_same_bits(draws, method.run(key, posterior))


def test_a_kill_while_lost_chains_restart(tmp_path):
    """The far start is found lost, and its second start is the same after a kill in the middle of the search."""

    class Searching(Ending):
        def start(self, label, total):
            self.is_search = label == "looking for lost chains"

        def advance(self, done, facts):
            if self.is_search:
                super().advance(done, facts)

    posterior, key = linear().posterior, jax.random.key(12)
    start = ws.MAP(num_steps=300).run(key, posterior)
    method = ws.HMC(num_chains=2, num_draws=20, num_warmup=0, num_leapfrog=2, step_size=0.01)
    far = start.map_leaves(lambda leaf: leaf + 5 if leaf.ndim > 2 else leaf)
    options = {"init": start.merge([start, far]), "restart": ws.Nearby(1e-3)}
    method = dataclasses.replace(method, num_chains=3)
    whole = method.run(key, posterior, **options)
    assert not np.array_equal(whole.log_density, method.run(key, posterior, init=options["init"]).log_density)
    with pytest.raises(Killed):
        method.run(key, posterior, store=tmp_path, progress=Searching(5), **options)
    assert_same_bits(method.run(key, posterior, store=tmp_path, resume=True, **options), whole)


@pytest.mark.parametrize("name", ["hmc", "ensemble"])
def test_a_kill_between_the_last_draw_and_the_end(name, tmp_path, monkeypatch):
    method, posterior, key = METHODS[name], linear().posterior, jax.random.key(13)

    def killed(*arguments, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("weightscape.draws.store.Store.finish", killed)
        with pytest.raises(Killed):
            method.run(key, posterior, store=tmp_path)
    assert_same_bits(method.run(key, posterior, store=tmp_path, resume=True), method.run(key, posterior))


def test_states_that_take_long_to_write_are_written_less_often(tmp_path, monkeypatch):
    """By a clock of our own: a chunk takes a second and a write ten, so that at most a tenth of the time is writing."""
    clock = [0.0]
    monkeypatch.setattr(recorder.time, "monotonic", lambda: clock[0])
    target = recorder.Recorder(linear().posterior, tmp_path / "run", {})
    writes = []

    def append(arrays, checkpoint):
        writes.append(clock[0])
        clock[0] += 10.0

    monkeypatch.setattr(target._store, "append", append)
    for done in range(1000):
        clock[0] += 1.0
        target.add(None, recorder.Place("phase", done, {"x": np.zeros(1)}))
    assert len(writes) > 3
    gaps = np.diff(writes)
    assert np.all(gaps > 100) and np.all(gaps < 10 + max(91, 0.05 * clock[0]) + 2)
