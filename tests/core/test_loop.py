"""The driver: its bits do not depend on chunks, and it compiles once."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from weightscape.core import Plan, Silent, Walk, drive, loop, map_chains
from weightscape.core.footprint import largest_bytes
from weightscape.core.keys import chain_keys

TRACES = []


class RandomWalk(Walk):
    """A random walk; the state's second part is weakly typed at first, as blackjax's are."""

    scale: Array

    def step(self, key, state, index):
        TRACES.append(None)
        position, count = state
        position = position + self.scale * jax.random.normal(key, position.shape)
        return (position, count + 1), {"position": position, "index": index, "is_seventh": index % 7 == 6}

    def observe(self, state, notes):
        return notes

    def rows(self):
        return ()


class Recorder(Silent):
    """Notes what it hears, and can end the run's time."""

    def __init__(self):
        self.heard = []

    def start(self, label, total):
        self.heard.append(("start", label, total))

    def advance(self, done, facts):
        self.heard.append((done, facts))

    def finish(self):
        self.heard.append("finish")


def start(num_chains):
    return jnp.zeros((num_chains, 2)), jax.vmap(lambda i: i * 0 + 1.0)(jnp.arange(num_chains))


def run(plan, num_chains=4, scale=0.5, progress=None, state=None):
    chunks = list(
        drive(
            RandomWalk(jnp.asarray(scale)),
            chain_keys(jax.random.key(0), num_chains),
            start(num_chains) if state is None else state,
            plan,
            label="walking",
            progress=progress or Silent(),
        )
    )
    outputs = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *(chunk.outputs for chunk in chunks))
    return chunks, outputs


def by_hand(num_chains, num_steps, scale=0.5):
    keys = chain_keys(jax.random.key(0), num_chains)
    steps = [
        [jax.random.normal(jax.random.fold_in(keys[c], i), (2,)) for i in range(num_steps)] for c in range(num_chains)
    ]
    return scale * np.cumsum(np.array(steps), axis=1)


def test_outputs_are_those_of_a_plain_loop():
    _, outputs = run(Plan(12))
    np.testing.assert_allclose(outputs["position"], by_hand(4, 12), rtol=1e-5, atol=1e-6)
    assert outputs["index"][0].tolist() == list(range(12))


def test_thinning_keeps_every_third_step_and_first_shifts_the_index():
    _, outputs = run(Plan(4, every=3))
    np.testing.assert_allclose(outputs["position"], by_hand(4, 12)[:, 2::3], rtol=1e-5, atol=1e-6)
    _, shifted = run(Plan(4, every=3, first=100))
    assert shifted["index"][0].tolist() == [102, 105, 108, 111]


def test_gaps_are_gone_through_in_turn_and_truths_are_collected(monkeypatch):
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 3)
    _, outputs = run(Plan(20, every=(4, 1, 2), first=10))
    ends = 9 + np.cumsum(np.tile([4, 1, 2], 7))[:20]
    assert outputs["index"][0].tolist() == ends.tolist()
    # A truth says whether any step since the last output had it: here one in seven, wherever it fell.
    starts = np.concatenate([[9], ends[:-1]]) + 1
    seventh = [any(i % 7 == 6 for i in range(low, high + 1)) for low, high in zip(starts, ends, strict=True)]
    assert outputs["is_seventh"][0].tolist() == seventh and 0 < sum(seventh) < 20


def test_a_plan_that_is_partly_done_goes_on_where_it_was():
    _, whole = run(Plan(20, every=(3, 1)))
    chunks, first = run(Plan(7, every=(3, 1)))
    rest, second = run(Plan(20, every=(3, 1), done=7), state=chunks[-1].state)
    assert np.array_equal(np.concatenate([first["position"], second["position"]], axis=1), whole["position"])
    assert rest[-1].done == 20


def test_bits_do_not_depend_on_where_chunks_end(monkeypatch):
    _, whole = run(Plan(100))
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 7)
    chunks, pieces = run(Plan(100))
    assert len(chunks) > 10
    assert np.array_equal(whole["position"], pieces["position"])


def test_a_run_continues_from_its_state():
    _, whole = run(Plan(20))
    chunks, first = run(Plan(12))
    _, second = run(Plan(8, first=12), state=chunks[-1].state)
    assert np.array_equal(np.concatenate([first["position"], second["position"]], axis=1), whole["position"])


def test_many_chunks_and_new_numbers_compile_once(monkeypatch):
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 5)
    run(Plan(60), num_chains=6)
    before = len(TRACES)
    chunks, _ = run(Plan(50, every=2, first=3), num_chains=6, scale=0.9)
    assert len(chunks) > 8
    # One trace finds the size of an output; nothing else is traced again.
    assert len(TRACES) - before == 1


def test_the_first_chunk_compiles_what_the_later_ones_use(monkeypatch):
    monkeypatch.setattr(loop, "_next_count", lambda count, seconds, capacity: 5)
    run(Plan(8), num_chains=10)
    short = len(TRACES)
    run(Plan(8), num_chains=14)
    one_chunk = len(TRACES) - short
    run(Plan(8 + 5 * 3), num_chains=22)
    assert len(TRACES) - short - one_chunk == one_chunk


class Products(Walk):
    """A walk through products of matrices, with notes of every type."""

    matrix: Array

    def step(self, key, state, index):
        moved = jnp.tanh(self.matrix @ state) + jax.random.normal(key, state.shape)
        return moved, (jnp.sum(moved), index, index % 3 == 0)

    def observe(self, state, notes):
        return {"state": state, "sum": notes[0], "index": notes[1], "is_third": notes[2]}

    def rows(self):
        return ()


@pytest.mark.usefixtures("x64")
def test_one_chain_is_not_vectorised_and_runs_as_one_of_many():
    """The only difference is the order of sums in a product: some roundings of 1e-16 in each of ten steps."""
    walk = Products(jnp.asarray(np.random.default_rng(0).normal(size=(5, 5))))
    keys, begin = chain_keys(jax.random.key(2), 3), jnp.asarray(np.random.default_rng(1).normal(size=(3, 5)))

    def outputs(which):
        run = drive(walk, keys[which], begin[which], Plan(5, every=2), label="", progress=Silent())
        chunks = [chunk.outputs for chunk in run]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *chunks)

    together = outputs(slice(None))
    for chain in range(3):
        alone = outputs(slice(chain, chain + 1))
        assert alone["state"].shape == (1, 5, 5)
        np.testing.assert_allclose(alone["state"][0], together["state"][chain], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(alone["sum"][0], together["sum"][chain], rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(alone["index"][0], [1, 3, 5, 7, 9])
        np.testing.assert_array_equal(alone["is_third"][0], [True, True, False, True, True])


def test_one_chain_has_no_batched_products():
    walk = Products(jnp.eye(5))
    products = lambda num: str(
        jax.make_jaxpr(lambda keys, state: loop._of_each(lambda k, s: walk.step(k, s, jnp.asarray(0))[0], keys, state))(
            chain_keys(jax.random.key(0), num), jnp.ones((num, 5))
        )
    )
    product = lambda num: next(line for line in products(num).splitlines() if "dot_general" in line)
    assert "f32[5] = dot_general" in product(1)
    assert "f32[5] = dot_general" not in product(2)


@pytest.mark.parametrize("num_chains", [1, 2, 3, 4])
def test_any_number_of_chains_shares_the_devices(num_chains):
    _, outputs = run(Plan(5), num_chains=num_chains)
    np.testing.assert_allclose(outputs["position"], by_hand(num_chains, 5), rtol=1e-5, atol=1e-6)


def test_progress_hears_everything_and_the_clock_stops_the_run():
    progress = Recorder()
    run(Plan(300), progress=progress)
    assert progress.heard[0] == ("start", "walking", 300)
    assert progress.heard[-2][0] == 300
    assert progress.heard[-1] == "finish"
    _, outputs = run(Plan(10_000, seconds=0.0))
    assert 0 < outputs["index"].shape[1] < 10_000


def test_interruption_leaves_whole_chunks_and_ends_the_bar():
    class Interrupting(Recorder):
        def advance(self, done, facts):
            super().advance(done, facts)
            if len(self.heard) == 4:
                raise KeyboardInterrupt

    progress, kept = Interrupting(), []
    keys = chain_keys(jax.random.key(0), 4)
    with pytest.raises(KeyboardInterrupt):
        walk = RandomWalk(jnp.asarray(0.5))
        for chunk in drive(walk, keys, start(4), Plan(5000), label="walking", progress=progress):
            kept.append(chunk.outputs["position"])
    assert progress.heard[-1] == "finish"
    together = np.concatenate(kept, axis=1)
    assert len(kept) == 2
    assert np.array_equal(together, run(Plan(5000))[1]["position"][:, : together.shape[1]])


def test_chunks_aim_at_a_second_and_stay_in_the_buffer():
    assert loop._next_count(8, 0.001, 64) == 32
    assert loop._next_count(32, 4.0, 64) == 8
    assert loop._next_count(64, 0.001, 64) == 64
    assert loop._next_count(1, math.inf, 64) == 1


def test_many_chains_are_looked_at_a_few_at_a_time(monkeypatch):
    """The same values; what is held at once is the product with the data of a few chains, not of all."""
    monkeypatch.setattr(loop, "_MOST_AT_ONCE", 4)
    values, data = jnp.arange(22.0).reshape(11, 2), jnp.ones((2, 1000))
    function = eqx.Partial(lambda data, row: jnp.sum((row @ data) ** 2), data)
    np.testing.assert_allclose(map_chains(function, values), 1000 * values.sum(axis=1) ** 2)
    shapes = str(jax.make_jaxpr(lambda values: loop._a_few_at_a_time(function, values))(values))
    assert "[4,1000]" in shapes and "[11,1000]" not in shapes


def test_so_many_chains_are_looked_at_as_fit_the_memory(monkeypatch):
    """What is largest is a thousand numbers for each chain, made inside a loop."""
    values, data = jnp.arange(22.0).reshape(11, 2), jnp.ones((2, 1000))
    inner = lambda data, row: jax.lax.fori_loop(0, 1, lambda _, total: total + jnp.sum((row @ data) ** 2), 0.0)
    function, size = eqx.Partial(inner, data), 1000 * values.dtype.itemsize
    for fitting, at_once in ((0.5, 1), (4, 4), (4.5, 4), (100, 11)):
        monkeypatch.setattr(loop, "_LARGEST_BYTES", int(fitting * size))
        looked = lambda values: loop._a_few_at_a_time(function, values)  # anew: programs of functions are remembered
        assert largest_bytes(looked, values) == at_once * size
        np.testing.assert_allclose(looked(values), 1000 * values.sum(axis=1) ** 2)


def test_map_chains_is_vmap_over_devices():
    values = jnp.arange(12.0).reshape(6, 2)
    scale = eqx.Partial(lambda factor, row: factor * jnp.sum(row), jnp.asarray(2.0))
    np.testing.assert_allclose(map_chains(scale, values), 2 * values.sum(axis=1))
