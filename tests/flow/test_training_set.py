"""What a flow learns from: no dead chain, nothing held out, and each draw by its weight."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import Header
from weightscape.flow import Independent, Straight, WhitenedSource
from weightscape.flow.descent import Descent, Examples
from weightscape.flow.objective import Objective
from weightscape.flow.training_set import padded, training_set
from weightscape.metanet import adam_with_warmup
from weightscape.metanet.fixed import split_trained

POSTERIOR = linear().posterior
SOURCE = WhitenedSource.of(POSTERIOR)


def draws_with(weights, log_density=None, log_weights=None, info=None):
    """Draws of the linear model whose weights have the shape (chain, draw, 3)."""
    weights = np.asarray(weights, np.float32)
    like = POSTERIOR.constrain(POSTERIOR.start_position(jax.random.key(0)))
    params = jax.tree.map(lambda leaf: weights.reshape(*weights.shape[:2], *leaf.shape), like)
    log_density = weights.sum(axis=-1) if log_density is None else np.asarray(log_density, np.float32)
    return ws.Draws(params, log_density, *Header.of(POSTERIOR), info or {}, log_weights)


def numbered(num_chains, num_draws):
    """Weights that say where they come from: chain, draw, and one more."""
    chain, draw = np.meshgrid(np.arange(num_chains), np.arange(num_draws), indexing="ij")
    return np.stack([chain, draw, np.sin(chain + 7 * draw)], axis=-1)


def places(rows):
    return {(round(float(row[0])), round(float(row[1]))) for row in rows}


def test_dead_chains_are_left_out_and_chains_are_not_torn():
    weights = numbered(8, 12)
    weights[2] = weights[2, :1]  # does not move
    log_density = weights.sum(axis=-1)
    log_density[4, 3] = np.nan
    weights[6, 5, 2] = np.inf  # a log density alone does not tell
    given = training_set(SOURCE, draws_with(weights, log_density), 0.4)
    assert given.num_left_out == 3
    # Five chains are healthy, and 0.4 · 5 of them are held out: the last.
    assert places(given.train) == {(chain, draw) for chain in (0, 1, 3) for draw in range(12)}
    assert places(given.held_out) == {(chain, draw) for chain in (5, 7) for draw in range(12)}
    assert (len(given.train), len(given.held_out)) == (36, 24)
    np.testing.assert_allclose(given.train_weights, 1 / 36)
    # The first held-out rows are of all chains, and not of the beginning of one.
    assert {chain for chain, _ in places(given.held_out[:2])} == {5, 7}
    assert given.held_out[::2, 1].tolist() != sorted(given.held_out[::2, 1])


def test_chains_that_never_accepted_are_left_out():
    accepted = np.ones((4, 12), bool)
    accepted[1] = False
    given = training_set(SOURCE, draws_with(numbered(4, 12), info={"is_accepted": accepted}), 0.3)
    assert {chain for chain, _ in places(given.train)} == {0, 2} and given.num_left_out == 1
    assert {chain for chain, _ in places(given.held_out)} == {3}


def test_vectors_are_those_of_the_source():
    source = WhitenedSource(2.0 * SOURCE.scale, SOURCE.layout)
    given = training_set(source, draws_with(numbered(3, 10)), 0.1)
    np.testing.assert_allclose(given.train[13], [0.5, 1.5, np.sin(1 + 21) / 2], rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1)])
def test_one_chain_is_cut_near_its_end(shape):
    weights = numbered(*shape)
    weights.reshape(40, 3)[7, 2] = np.nan
    given = training_set(SOURCE, draws_with(weights, np.sin(np.arange(40.0)).reshape(shape)), 0.1)
    axis = shape.index(40)
    assert [row[axis] for row in given.train] == [i for i in range(35 + 1) if i != 7][: len(given.train)]
    assert sorted(row[axis] for row in given.held_out) == [36, 37, 38, 39]
    assert given.num_left_out == 1


def test_importance_weights_go_with_their_draws():
    log_weights = np.log(1.0 + np.arange(60.0)).reshape(5, 12) + 300
    weights = numbered(5, 12)
    weights[1] = weights[1, :1]
    given = training_set(SOURCE, draws_with(weights, log_weights=log_weights), 0.2)
    expected = np.array([1.0 + 12 * float(chain) + float(draw) for chain, draw, _ in given.train])
    assert places(given.train) == {(chain, draw) for chain in (0, 2, 3) for draw in range(12)}
    np.testing.assert_allclose(given.train_weights, expected / expected.sum(), rtol=1e-9)


def test_too_few_draws_are_refused():
    with pytest.raises(InputError, match="must learn from 10 healthy draws, got 8"):
        training_set(SOURCE, draws_with(numbered(3, 4)), 0.3)
    still = np.repeat(numbered(3, 1), 9, axis=1)
    with pytest.raises(
        InputError, match="must learn from 10 healthy draws, got 0. Pass more draws, or chains that move"
    ):
        training_set(SOURCE, draws_with(still), 0.3)


def test_rows_are_repeated_in_turn():
    assert padded(np.arange(3.0)[:, None], 7)[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert padded(np.arange(3.0)[:, None], 2)[:, 0].tolist() == [0, 1]


class Numbers(eqx.Module):
    """A model that says what it was trained to."""

    value: Array

    def __call__(self, time, x):
        return self.value


class MeanTarget(Objective):
    """A loss that tells which targets a step has seen, and pulls the model to them."""

    def loss(self, key, model, sources, targets, gradients=None):
        return jnp.mean(targets[:, 0]) + jnp.mean((model.value[None] - targets) ** 2)


def descent(model, weights, average=0.9):
    z = jnp.asarray([[1.0, 0.0, 0.0], [10.0, 0.0, 0.0], [100.0, 0.0, 0.0]])
    examples = Examples(z, z)
    optimiser = adam_with_warmup(1e-2, 100, weight_decay=0.0, largest_norm=1.0)
    cumulative = jnp.cumsum(jnp.asarray(weights))
    rest, objective = split_trained(model)[1], MeanTarget(Straight())
    return Descent(
        rest,
        objective,
        SOURCE,
        Independent(),
        optimiser,
        jnp.asarray(average),
        examples,
        cumulative,
        examples,
        None,
        50,
    )


def test_a_step_sees_each_draw_as_often_as_its_weight_says():
    model, weights = Numbers(jnp.zeros(3)), np.array([0.5, 0.3, 0.2])
    walk = descent(model, weights)
    step = lambda key: walk.step(key, walk.begin(model), jnp.asarray(0))[1]
    losses = np.asarray(jax.jit(jax.vmap(step))(jax.random.split(jax.random.key(0), 2000)))
    values = np.array([1.0, 10.0, 100.0])
    expected = weights @ (values + values**2 / 3)
    spread = np.sqrt(weights @ (values + values**2 / 3 - expected) ** 2)
    assert abs(losses.mean() - expected) < 5.5 * spread / np.sqrt(2000 * 50)
    assert 5.5 * spread / np.sqrt(2000 * 50) < 0.05 * expected


@pytest.mark.parametrize(("index", "kept"), [(0, 0.1), (1000, 0.9)])
def test_the_average_follows_and_early_steps_are_forgotten(index, kept):
    model = Numbers(jnp.ones(3))
    walk = descent(model, [0.5, 0.3, 0.2])
    begin = walk.begin(model)
    old = jax.tree.map(lambda leaf: leaf + 5.0, begin.numbers)
    state, _ = walk.step(jax.random.key(0), begin._replace(averaged=old), jnp.asarray(index))
    moved, averaged = state.numbers.value, state.averaged.value
    assert not np.array_equal(moved, begin.numbers.value)
    np.testing.assert_allclose(averaged, kept * 6.0 + (1 - kept) * moved, rtol=1e-5)


@pytest.mark.parametrize(("index", "earlier", "is_kept"), [(19, np.inf, True), (19, -1.0, False), (18, np.inf, False)])
def test_the_average_of_the_least_held_out_loss_is_kept(index, earlier, is_kept):
    model = Numbers(jnp.ones(3))
    walk = descent(model, [0.5, 0.3, 0.2])
    begin = walk.begin(model)._replace(best_loss=jnp.asarray(earlier, jnp.float32))
    state, _ = walk.step(jax.random.key(0), begin, jnp.asarray(index))
    kept = state.averaged if is_kept else begin.best
    assert not np.array_equal(state.averaged.value, begin.best.value)
    np.testing.assert_array_equal(state.best.value, kept.value)
    if index == 19:
        targets = np.asarray(walk.held_out.z)
        loss = targets[:, 0].mean() + np.mean((np.asarray(state.averaged.value)[None] - targets) ** 2)
        np.testing.assert_allclose(state.held_out_loss, loss, rtol=1e-5)
        np.testing.assert_allclose(state.best_loss, min(loss, earlier), rtol=1e-5)
