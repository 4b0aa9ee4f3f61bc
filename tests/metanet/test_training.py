"""Training: closed forms, the average, epochs, one program, and what it says when things go wrong."""

import math
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from weightscape.core import Deadline, InputError, Progress, Silent
from weightscape.metanet import training
from weightscape.metanet.adam import adam_with_warmup
from weightscape.metanet.training import train

KEY = jax.random.key(0)


class Point(eqx.Module):
    """A model of one vector, with parts that are not trained."""

    place: jax.Array
    count: jax.Array
    name: str = "point"


class Recorder(Progress):
    """Remembers what it heard."""

    def __init__(self):
        self.heard = []

    def start(self, label: str, total: int) -> None:
        self.heard.append(("start", label, total))

    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        self.heard.append((done, facts["loss"]))

    def finish(self) -> None:
        self.heard.append("finish")

    def seconds_left(self) -> float:
        return math.inf


def point(*values: float) -> Point:
    return Point(jnp.asarray(values, float), jnp.arange(3))


def pull(model: Point, key, batch) -> jax.Array:
    """½ ‖place − c‖², with rows c that are all the same, so that batches do not matter."""
    return 0.5 * jnp.mean(jnp.sum((model.place[None] - batch) ** 2, axis=-1))


def noisy_pull(model: Point, key, batch) -> jax.Array:
    return pull(model, key, batch) + jax.random.normal(key) * jnp.sum(model.place)


def row_number(model: Point, key, batch) -> jax.Array:
    return jnp.sum(batch) + 0 * jnp.sum(model.place)


def test_linear_regression_ends_at_the_closed_form(x64):
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(60, 3)) * [1.0, 2.0, 0.5], rng.normal(size=(60, 2))
    y = x @ rng.normal(size=(3, 2)) + 0.7 + noise
    line = eqx.nn.Linear(3, 2, key=KEY)
    loss = lambda model, key, batch: 0.5 * jnp.mean(jnp.sum((jax.vmap(model)(batch[0]) - batch[1]) ** 2, axis=-1))
    trained = train(KEY, line, loss, (x, y), num_steps=400, optimiser=optax.sgd(0.2), average=0.5)
    design = np.c_[x, np.ones(60)]
    least = np.linalg.lstsq(design, y)[0]
    smallest, largest = np.linalg.eigvalsh(design.T @ design / 60)[[0, -1]]
    assert 0.2 * largest < 1
    assert (1 - 0.2 * smallest) ** 380 < 1e-6  # what is left of the start; the average forgets in some ten steps
    assert np.allclose(trained.model.weight, least[:3].T, atol=1e-5)
    assert np.allclose(trained.model.bias, least[3], atol=1e-5)
    left = y - design @ least
    assert np.isclose(trained.losses[-1], 0.5 * np.mean(np.sum(left**2, axis=1)), atol=1e-9)


@pytest.mark.parametrize("average", [0.6, 0.9, 0.999])
def test_the_average_is_the_recursion_written_by_hand(average, x64):
    start, centre, rate = np.array([3.0, -1.0]), np.array([0.5, 2.0]), 0.3
    trained = train(
        KEY, point(*start), pull, np.tile(centre, (4, 1)), num_steps=37, optimiser=optax.sgd(rate), average=average
    )
    here, mean, losses = start, start, []
    for i in range(37):
        losses.append(0.5 * np.sum((here - centre) ** 2))
        here = here - rate * (here - centre)
        kept = min(average, (1 + i) / (10 + i))
        mean = kept * mean + (1 - kept) * here
    assert np.allclose(trained.model.place, mean, rtol=0, atol=1e-13)
    assert np.allclose(trained.losses, losses, rtol=1e-12, atol=0)
    assert np.array_equal(trained.model.count, [0, 1, 2])
    assert trained.model.name == "point"


def test_adam_with_warmup_is_the_chain_of_its_parts(x64):
    """Against optax's own parts, with the step size as a table, over gradients of very different length."""
    params = {"matrix": jnp.ones((2, 3)), "vector": jnp.ones((3,))}
    ours = adam_with_warmup(0.02, 40, warmup=0.2, weight_decay=0.3, largest_norm=2.0)
    rates = [0.02 * min(1, (i + 1) / 8) * (1 + math.cos(math.pi * i / 40)) / 2 for i in range(40)]
    theirs = optax.chain(
        optax.clip_by_global_norm(2.0),
        optax.adamw(lambda i: jnp.array(rates)[i], weight_decay=0.3, mask={"matrix": True, "vector": False}),
    )
    mine, other = ours.init(params), theirs.init(params)
    for i in range(40):
        length = 10.0 ** jax.random.uniform(jax.random.fold_in(KEY, i), minval=-2.0, maxval=2.0)
        draw = lambda leaf, i=i, length=length: length * jax.random.normal(jax.random.fold_in(KEY, i), leaf.shape)
        gradient = jax.tree.map(draw, params)
        update, mine = ours.update(gradient, mine, params)
        expected, other = theirs.update(gradient, other, params)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-15), update, expected)
        params = optax.apply_updates(params, update)


def test_an_epoch_takes_every_row_at_most_once(x64):
    """Rows are powers of two, so the loss of a batch says which rows are in it."""
    rows = 2.0 ** np.arange(11)
    losses = train(KEY, point(0.0), row_number, rows, num_steps=30, batch_size=2).losses.astype(int)
    epochs = losses.reshape(6, 5)
    assert all(int(loss).bit_count() == 2 for loss in losses)
    assert all(np.bitwise_or.reduce(epoch).item().bit_count() == 10 for epoch in epochs)
    assert np.bitwise_or.reduce(losses) == 2**11 - 1
    assert len({tuple(epoch) for epoch in epochs}) == 6


def test_every_step_has_a_key_of_its_own():
    drawn = lambda model, key, batch: jax.random.normal(key) + 0 * jnp.sum(model.place)
    losses = train(KEY, point(0.0), drawn, np.ones(4, np.float32), num_steps=40, batch_size=2).losses
    assert len(set(losses.tolist())) == 40


def test_a_batch_larger_than_the_examples_is_all_of_them(x64):
    losses = train(KEY, point(0.0), row_number, np.arange(5.0), num_steps=3).losses
    assert np.array_equal(losses, [10.0, 10.0, 10.0])


def test_stretches_and_new_numbers_compile_nothing(monkeypatch):
    traces = []

    def counted(model, key, batch):
        traces.append(1)
        return pull(model, key, batch)

    centre = np.zeros((6, 2), np.float32)
    train(KEY, point(1.0, 2.0), counted, centre, num_steps=3, batch_size=2)
    before = len(traces)
    progress = Recorder()
    monkeypatch.setattr(training, "_STRETCH_SECONDS", 1e-9)
    optimiser = adam_with_warmup(0.5, 30, warmup=0.3, weight_decay=0.2, largest_norm=3.0)
    train(jax.random.key(5), point(3.0, 2.0), counted, centre + 1, num_steps=30, batch_size=2, optimiser=optimiser,
          average=0.5, progress=progress)  # fmt: skip
    assert len(progress.heard) > 20
    assert len(traces) == before


def test_a_key_gives_one_result_however_it_is_cut(monkeypatch):
    centre = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    run = lambda key: train(key, point(1.0, 2.0), noisy_pull, centre, num_steps=50, batch_size=3)
    first, again, other = run(KEY), run(KEY), run(jax.random.key(1))
    monkeypatch.setattr(training, "_STRETCH_SECONDS", 1e-9)
    pieces = run(KEY)
    for same in (again, pieces):
        assert np.array_equal(first.losses, same.losses)
        assert np.array_equal(first.model.place, same.model.place)
    assert not np.array_equal(first.losses, other.losses)


def test_progress_hears_every_stretch(monkeypatch):
    monkeypatch.setattr(training, "_STRETCH_SECONDS", 1e-9)
    progress = Recorder()
    losses = train(KEY, point(1.0), pull, np.zeros((4, 1), np.float32), num_steps=9, progress=progress).losses
    assert progress.heard[0] == ("start", "training", 9)
    assert progress.heard[-1] == "finish"
    told = progress.heard[1:-1]
    ends = [done for done, _ in told]
    assert ends[-1] == 9 and len(ends) > 3
    starts = [0, *ends[:-1]]
    assert np.allclose([loss for _, loss in told], [losses[a:b].mean() for a, b in zip(starts, ends, strict=True)])


def test_training_ends_with_its_time():
    trained = train(
        KEY, point(1.0), pull, np.zeros((4, 1), np.float32), num_steps=10_000, progress=Deadline(0.0, Silent())
    )
    assert 0 < len(trained.losses) < 10_000


def test_a_loss_that_is_not_finite_stops_training_at_its_step():
    rows = np.arange(8.0, dtype=np.float32)
    order = train(KEY, point(0.0), row_number, rows, num_steps=8, batch_size=1).losses
    rows[int(order[6])] = np.nan  # after the first stretch, which has four steps
    progress = Recorder()
    with pytest.raises(InputError, match=r"must stay finite, got nan at step 6\. Lower the step size"):
        train(KEY, point(0.0), row_number, rows, num_steps=8, batch_size=1, progress=progress)
    assert progress.heard[-1] == "finish"


def test_weights_that_end_non_finite_are_refused():
    rooted = lambda model, key, batch: jnp.sum(jnp.sqrt(model.place)) + jnp.sum(batch)
    with pytest.raises(InputError, match="Training must end at finite weights"):
        train(KEY, point(0.0), rooted, np.ones((2, 1), np.float32), num_steps=1)


@pytest.mark.parametrize("examples", [(np.ones(3), np.ones(4)), np.ones((0, 2)), np.ones(()), ()])
def test_examples_need_rows(examples):
    with pytest.raises(InputError, match="must have the same number of rows, at least one"):
        train(KEY, point(0.0), row_number, examples, num_steps=1)
