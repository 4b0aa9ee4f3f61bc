"""Training by gradient descent on batches, with an average over the path.

    θ_{i+1} = θ_i − update(∇ loss(θ_i, batch_i)),      θ̄_{i+1} = β_i θ̄_i + (1 − β_i) θ_{i+1}

    β_i = min(β, (1 + i) / (10 + i))

The model returned has the weights θ̄. β_i grows to β, so that θ̄ is about an average over the last ninth of a short
training and forgets the start. Each epoch goes through the rows in a new order, without replacement; rows that fill no
batch are left for later epochs. Steps run in compiled stretches of about half a second; their number, step sizes and
averages are numbers, so that a new value compiles nothing.

Reference: Polyak & Juditsky (1992), Acceleration of stochastic approximation by averaging. We differ: late steps weigh
more, exponentially.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Progress, Scalar, Tree, default_progress, tree
from weightscape.core.checks import require, require_count, require_fraction
from weightscape.core.keys import require_key
from weightscape.core.numbers import number
from weightscape.metanet.adam import AdamWithWarmup, adam_with_warmup
from weightscape.metanet.fixed import split_trained

_LABEL = "training"
_MOST_STEPS = 1024
_STRETCH_SECONDS = 0.5
_FIRST_STEPS = 4


class Trained(NamedTuple):
    """A model with averaged weights θ̄, and the loss of each step's batch."""

    model: Any
    losses: Float[np.ndarray, " step"]


def train(  # noqa: PLR0913  one call holds everything that a training needs
    key: PRNGKey,
    model: Any,
    loss: Callable[[Any, PRNGKey, Tree], Scalar],
    examples: Tree,
    *,
    num_steps: int,
    batch_size: int = 256,
    optimiser: AdamWithWarmup | optax.GradientTransformation | None = None,
    progress: Progress | None = None,
    average: float = 0.999,
) -> Trained:
    """`model` after `num_steps` steps that lower `loss`.

    - `model`: an equinox module; its floating-point arrays are trained, but for those in `Fixed`.
    - `loss`: `loss(model, key, batch)`, a number; it may draw with `key`.
    - `examples`: a tree of arrays with one leading axis; a batch is a tree of rows of these.
    - `optimiser`: None takes `adam_with_warmup(1e-3, num_steps)`; those of optax work too, but a new one compiles anew.
    - `progress`: where to report; training ends early, with what it has, when its time is up.
    - `average`: β, above.

    Example:
    >>> line = eqx.nn.Linear(1, 1, key=jax.random.key(0))
    >>> loss = lambda model, key, batch: jnp.mean((jax.vmap(model)(batch) - 3 * batch) ** 2)
    >>> trained = train(jax.random.key(1), line, loss, jnp.ones((8, 1)), num_steps=20)
    >>> bool(trained.losses[-1] < trained.losses[0])
    True
    """
    require_key(key, "train")
    require_count("`num_steps` of train", num_steps)
    require_count("`batch_size` of train", batch_size)
    require_fraction("`average` of train", average)
    examples = jax.tree.map(jnp.asarray, examples)
    num_rows = _num_rows(examples)
    params, rest = split_trained(model)
    params = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), params)  # settled types: one program for all stretches
    optimiser = adam_with_warmup(1e-3, num_steps) if optimiser is None else optimiser
    descent = _Descent(key, rest, loss, examples, optimiser, number(average), min(batch_size, num_rows))
    start = _State(params, params, optimiser.init(params), jnp.arange(num_rows))
    state, losses = _run(descent, start, num_steps, default_progress(progress))
    remedy = "Lower the step size, or check the gradients of the loss."
    require(bool(tree.all_finite(state.params)), "Training must end at finite weights", "non-finite ones", remedy)
    return Trained(eqx.combine(state.averaged, rest), losses)


class _State(NamedTuple):
    """θ, θ̄, what the optimiser remembers, and this epoch's order of the rows."""

    params: Tree
    averaged: Tree
    memory: Any
    order: Int[Array, " row"]


class _Descent(eqx.Module):
    """One step, and all that it needs; `rest` is the model without its trained arrays."""

    key: PRNGKey
    rest: Any
    loss: Callable[[Any, PRNGKey, Tree], Scalar]
    examples: Tree
    optimiser: Any
    average: Scalar
    batch_size: int = eqx.field(static=True)

    def step(self, state: _State, index: Int[Array, ""]) -> tuple[_State, Scalar]:
        """The next state, and the loss at the old one."""
        key_order, key_loss = jax.random.split(self.key)
        epoch, place = jnp.divmod(index, len(state.order) // self.batch_size)
        shuffled = lambda: jax.random.permutation(jax.random.fold_in(key_order, epoch), len(state.order))
        order = jax.lax.cond(place == 0, shuffled, lambda: state.order)
        rows = jax.lax.dynamic_slice_in_dim(order, place * self.batch_size, self.batch_size)
        batch = jax.tree.map(lambda leaf: leaf[rows], self.examples)
        of = lambda params: self.loss(eqx.combine(params, self.rest), jax.random.fold_in(key_loss, index), batch)
        loss, gradient = jax.value_and_grad(of)(state.params)
        update, memory = self.optimiser.update(gradient, state.memory, state.params)
        params = optax.apply_updates(state.params, update)
        kept = jnp.minimum(self.average, (1 + index) / (10 + index))
        averaged = jax.tree.map(lambda old, new: (kept * old + (1 - kept) * new).astype(old.dtype),
                                state.averaged, params)  # fmt: skip
        return _State(params, averaged, memory, order), loss


def _run(descent: _Descent, state: _State, num_steps: int, progress: Progress) -> tuple[_State, np.ndarray]:
    done, count, losses = 0, _FIRST_STEPS, []
    progress.start(_LABEL, num_steps)
    try:
        while done < num_steps and (done == 0 or progress.seconds_left() > 0):
            count, began = min(count, num_steps - done), time.monotonic()
            state, buffer = _stretch(descent, state, jnp.asarray(done), jnp.asarray(count))
            losses.append(np.asarray(buffer)[:count])
            _require_finite(losses[-1], done)
            done += count
            progress.advance(done, {"loss": float(np.mean(losses[-1]))})
            growth = _STRETCH_SECONDS / max(time.monotonic() - began, 1e-6)
            count = max(1, min(_MOST_STEPS, round(count * min(4.0, max(0.25, growth)))))
    finally:
        progress.finish()
    return state, np.concatenate(losses)


@eqx.filter_jit
def _stretch(
    descent: _Descent, state: _State, done: Int[Array, ""], count: Int[Array, ""]
) -> tuple[_State, Float[Array, " step"]]:
    """`count` steps from step `done` on; losses beyond those are zero."""

    def one(i: Int[Array, ""], carry: tuple[_State, Array]) -> tuple[_State, Array]:
        state, losses = carry
        state, loss = descent.step(state, done + i)
        return state, losses.at[i].set(loss)

    dtype = jax.eval_shape(descent.step, state, done)[1].dtype
    return jax.lax.fori_loop(0, count, one, (state, jnp.zeros((_MOST_STEPS,), dtype)))


def _num_rows(examples: Tree) -> int:
    lengths = {tuple(leaf.shape[:1]) for leaf in jax.tree.leaves(examples)}
    asked = "Every array of `examples` of train must have the same number of rows, at least one"
    remedy = "Pass arrays with one leading axis of one length."
    require(len(lengths) == 1 and min(lengths) > (0,), asked, f"leading axes {sorted(lengths)}", remedy)
    return lengths.pop()[0]


def _require_finite(losses: Float[np.ndarray, " step"], done: int) -> None:
    bad = np.flatnonzero(~np.isfinite(losses))
    came = f"{losses[bad[0]]} at step {done + int(bad[0])}" if len(bad) else ""
    require(len(bad) == 0, "The loss of train must stay finite", came, "Lower the step size, or check the examples.")
