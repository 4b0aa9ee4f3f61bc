"""The training of a flow from beginning to end: in chunks, with losses and J on the way, stored and resumed."""

import dataclasses
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from weightscape.core import Plan, PRNGKey, drive
from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.core.keys import chain_keys
from weightscape.draws import Place
from weightscape.flow.descent import STEPS_PER_NOTE, Descent, Losses, State
from weightscape.flow.flow import Flow
from weightscape.flow.gap import Gap, gap_of
from weightscape.flow.population_flow import PopulationFlow
from weightscape.inference.method import Circumstances, open_recorder, settings

Trained = TypeVar("Trained", Flow, PopulationFlow)

_TRAINING = "training the flow"
_NUM_GAP_DRAWS = 64


class _Trace(NamedTuple):
    """Where training is, and all losses so far, in places for those of the whole training."""

    walk: State
    losses: Losses

    def after(self, walk: State, losses: Losses, done: int) -> "_Trace":
        """The trace with the losses that come last of so many."""

        def kept(known: Any, new: Any) -> np.ndarray:
            values = np.array(known)
            values[:, done - new.shape[1] : done] = new
            return values

        return _Trace(walk, jax.tree.map(kept, self.losses, losses))


def train_flow(
    key: PRNGKey,
    method: Any,
    flow: Trained,
    descent: Descent,
    held_out: Float[np.ndarray, "draw weight"],
    around: Circumstances,
) -> Trained:
    """The flow with its model trained, and what was seen on the way among its facts."""
    key_steps, key_gap = jax.random.split(key)
    begin = lambda: _Trace(descent.begin(flow.model), _no_losses(method, descent))
    gaps: list[tuple[int, Gap]] = []
    with open_recorder(key, method, _posterior(flow), around) as recorder:
        place = recorder.resumed(lambda position: begin(), 1) or Place(_TRAINING, 0, _alone(begin()))
        for stop in _stops(method, place.done):
            plan = Plan(stop, STEPS_PER_NOTE, seconds=around.progress.seconds_left(), done=place.done)
            keys = chain_keys(key_steps, 1)
            for chunk in drive(
                descent, keys, place.state.walk, plan, label=_TRAINING, progress=around.progress, facts=_shown(gaps)
            ):
                _require_finite(chunk.outputs, chunk.done)
                place = Place(_TRAINING, chunk.done, place.state.after(chunk.state, chunk.outputs, chunk.done))
                recorder.add(None, place)
            flow = _with_model(flow, descent, place)
            if isinstance(flow, Flow) and method.gap_every != 0:
                gaps.append((place.done * STEPS_PER_NOTE, _gap(key_gap, flow, held_out)))
    return dataclasses.replace(flow, facts=_facts(method, place, recorder.seconds, gaps))


def _stops(method: Any, done: int) -> list[int]:
    """How many notes there are when J is measured; the last is the end."""
    end = -(-method.num_steps // STEPS_PER_NOTE)
    every = max(1, (method.gap_every or method.num_steps) // STEPS_PER_NOTE)
    return [stop for stop in (*range(every, end, every), end) if stop > done] or [end]


def _with_model(flow: Trained, descent: Descent, place: Place) -> Trained:
    # Through the host: arrays that still lie on the run's mesh would not go together with those of other runs.
    numbers = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), place.state.walk.best)
    return dataclasses.replace(flow, model=eqx.combine(numbers, descent.rest))


def _gap(key: PRNGKey, flow: Flow, held_out: Float[np.ndarray, "draw weight"]) -> Gap:
    """J from a few draws: enough to see whether training helps."""
    drawn = flow.sample(key, _NUM_GAP_DRAWS)
    assert drawn.log_proposal is not None
    under_q = np.ravel(drawn.log_density).astype(np.float64) - np.ravel(drawn.log_proposal)
    under_p = _log_weights(flow.bare(), jnp.asarray(held_out[np.arange(_NUM_GAP_DRAWS) % len(held_out)]))
    return gap_of(np.asarray(under_p, np.float64)[None], under_q)


@eqx.filter_jit
def _log_weights(flow: Flow, vectors: Float[jax.Array, "draw weight"]) -> Float[jax.Array, " draw"]:
    def one(z):
        position = flow.source.position(z)
        return _posterior(flow).log_density(position) - flow.log_density(position)

    return jax.lax.map(one, vectors, batch_size=flow._batch_size(len(vectors)))


def _posterior(flow: Flow | PopulationFlow) -> Any:
    assert flow.posterior is not None
    return flow.posterior


def _shown(gaps: list[tuple[int, Gap]]) -> Any:
    def facts(outputs: Losses) -> dict[str, float]:
        last = {"J": gaps[-1][1].value} if gaps else {}
        return {"loss": float(np.mean(outputs.train)), "held out": float(outputs.held_out[0, -1]), **last}

    return facts


def _no_losses(method: Any, descent: Descent) -> Losses:
    none = jnp.full((_stops(method, 0)[-1],), jnp.nan, descent.cumulative.dtype)
    return Losses(none, none)


def _alone(trace: _Trace) -> _Trace:
    """As that of one chain."""
    return jax.tree.map(lambda leaf: leaf[None], trace)


def _require_finite(losses: Losses, done: int) -> None:
    names = {"loss": losses.train, "loss on held-out draws": losses.held_out}
    came = " and a ".join(name for name, values in names.items() if not np.all(np.isfinite(values)))
    remedy = "Lower `learning_rate` or `largest_norm`, or check the draws."
    asked = "Training of a flow must stay finite"
    require(not came, asked, f"a {came} that is not, before step {done * STEPS_PER_NOTE}", remedy)


def _facts(method: Any, place: Place, seconds: float, gaps: list[tuple[int, Gap]]) -> Facts:
    seen = lambda values: np.asarray(values)[0, : place.done]
    thinned = lambda values: [float(v) for v in values[:: max(1, len(values) // 200)]]
    num_steps, losses = place.done * STEPS_PER_NOTE, place.state.losses
    told = {"losses": thinned(seen(losses.train)), "held_out_losses": thinned(seen(losses.held_out))}
    measured = [{"step": step, **gap._asdict()} for step, gap in gaps]
    complete = num_steps >= method.num_steps
    return Facts(**settings(method), **told, gaps=measured, num_steps=num_steps, seconds=seconds, complete=complete)
