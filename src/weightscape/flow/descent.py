"""Training of a flow's model, as a walk that the driver takes in chunks and a recorder can store.

    θ ← θ − η_i AdamW(∇ loss),      θ̄ ← β θ̄ + (1 − β) θ

with new pairs, new couplings and new times at each step. Every few steps the loss of θ̄ on held-out draws is taken, for
the same sources and times each time, and the θ̄ where it was least is what training ends in: few draws are learned by
heart after a while, and from then on it rises.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from weightscape.core import PRNGKey, Scalar, Tree, Walk
from weightscape.flow.couplings import Coupling
from weightscape.flow.objective import Objective
from weightscape.flow.source import Source
from weightscape.flow.swing import Swing
from weightscape.flow.training_set import TrainingSet
from weightscape.metanet.adam import AdamWithWarmup, adam_with_warmup
from weightscape.metanet.fixed import split_trained

STEPS_PER_NOTE = 20
"""Steps between two looks at the held-out loss."""


class Examples(NamedTuple):
    """Target vectors, gradients of the likelihood there, where pulls are learned, and contexts, where some are told."""

    z: Float[Array, "draw weight"]
    gradients: Float[Array, "draw weight"] | None = None
    contexts: Float[Array, "draw context"] | None = None


class State(NamedTuple):
    """θ, θ̄, what Adam remembers, the θ̄ of the least held-out loss, that loss, and the newest one."""

    numbers: Tree
    averaged: Tree
    memory: Any
    best: Tree
    best_loss: Scalar
    held_out_loss: Scalar


class Losses(NamedTuple):
    """The loss of the last step, and that of θ̄ on what is held out."""

    train: Scalar
    held_out: Scalar


class Descent(Walk):
    """One step; `rest` is all of the model that is not trained.

    - `cumulative`: sums of the importance weights of the examples, by which they are drawn; the last is 1.
    - `held_out`: some held-out examples.  `average`: β.
    - `swing`: what targets are averaged over, if they are.
    - `dropped`: the share of contexts that are not told.
    """

    rest: Any
    objective: Objective
    source: Source
    coupling: Coupling
    optimiser: AdamWithWarmup
    average: Scalar
    examples: Examples
    cumulative: Float[Array, " draw"]
    held_out: Examples
    swing: Swing | None
    batch_size: int = eqx.field(static=True)
    dropped: Scalar | float = 0.0

    def begin(self, model: Any) -> State:
        """The state of a model that has not been trained."""
        numbers, _ = split_trained(model)
        numbers = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), numbers)
        none = jnp.full((), jnp.inf, self.cumulative.dtype)
        return State(numbers, numbers, self.optimiser.init(numbers), numbers, none, none)

    def step(self, key: PRNGKey, state: State, index: Int[Array, ""]) -> tuple[State, Scalar]:
        key_rows, key_pairs = jax.random.split(key)
        shares = jax.random.uniform(key_rows, (self.batch_size,), self.cumulative.dtype)
        rows = jnp.minimum(jnp.searchsorted(self.cumulative, shares, side="right"), len(self.cumulative) - 1)
        batch = jax.tree.map(lambda leaf: leaf[rows], self.examples)
        loss, gradient = jax.value_and_grad(lambda numbers: self._loss(key_pairs, numbers, batch))(state.numbers)
        update, memory = self.optimiser.update(gradient, state.memory, state.numbers)
        numbers = optax.apply_updates(state.numbers, update)
        kept = jnp.minimum(self.average, (1 + index) / (10 + index))
        mixed = lambda old, new: (kept * old + (1 - kept) * new).astype(old.dtype)
        averaged = jax.tree.map(mixed, state.averaged, numbers)
        state = state._replace(numbers=numbers, averaged=averaged, memory=memory)
        is_due = (index + 1) % STEPS_PER_NOTE == 0
        return jax.lax.cond(is_due, lambda state: self._compared(state), lambda state: state, state), loss

    def observe(self, state: State, notes: Scalar) -> Losses:
        return Losses(notes, state.held_out_loss)

    def rows(self) -> tuple[Array, ...]:
        return ()

    def _compared(self, state: State) -> State:
        """The state with the held-out loss of θ̄, which is kept where it is the least so far."""
        loss = self._loss(jax.random.key(0), state.averaged, self.held_out).astype(state.best_loss.dtype)
        better = loss < state.best_loss
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), state.averaged, state.best)
        return state._replace(best=best, best_loss=jnp.minimum(loss, state.best_loss), held_out_loss=loss)

    def _loss(self, key: PRNGKey, numbers: Tree, batch: Examples) -> Scalar:
        options: dict[str, Any] = {} if self.swing is None else {"averaged": self.swing}
        if batch.contexts is not None:
            key, key_dropped = jax.random.split(key)
            is_told = jax.random.bernoulli(key_dropped, 1 - self.dropped, (len(batch.contexts), 1))
            options["contexts"] = jnp.where(is_told, batch.contexts, 0)
        key_sources, key_coupling, key_times = jax.random.split(key, 3)
        sources = jax.vmap(self.source.sample)(jax.random.split(key_sources, len(batch.z)))
        targets = self.coupling.pair(key_coupling, sources, batch.z)
        model = eqx.combine(numbers, self.rest)
        return self.objective.loss(key_times, model, sources, targets, batch.gradients, **options)


def descent_of(
    method: Any,
    flow: Any,
    coupling: Coupling,
    given: TrainingSet,
    examples: Examples,
    held_out: Examples,
    *,
    swing: Swing | None = None,
    dropped: Scalar | float = 0.0,
) -> Descent:
    """The training that a method's settings ask for, of a flow's model with examples that go by their weights."""
    return Descent(
        split_trained(flow.model)[1],
        flow.objective,
        flow.source,
        coupling,
        adam_with_warmup(method.learning_rate, method.num_steps, weight_decay=0.0, largest_norm=method.largest_norm),
        method.average,
        examples,
        jnp.asarray(np.cumsum(given.train_weights), examples.z.dtype),
        held_out,
        swing,
        method.batch_size,
        dropped,
    )
