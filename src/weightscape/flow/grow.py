"""A flow that makes its own training set: train, draw, correct, add, go on.

    draws ← a few starts, moved by HMC          an ensemble's members, draws of an approximation, or of the prior
    repeat:   train the flow on all draws so far, from where it was
              draw from it, choose among the draws by their weights, move these by a few transitions of HMC

Weights put the shares of modes right that short chains do not cross, as far as the flow reaches them; moves leave the
posterior invariant and mend the rest. Every round is checked: J of the new flow against draws that it has not seen, and
whether the moved draws had arrived. A mode that no start leads to stays unseen, by J and by the evidence too.

Reference: Gabrié, Rotskoff & Vanden-Eijnden (2022), Adaptive Monte Carlo augmented with normalizing flows.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from weightscape.core import PRNGKey, Progress, default_progress
from weightscape.core.checks import require, require_count
from weightscape.core.facts import Facts
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Health, systematic
from weightscape.flow.correction.moves import Moved, moved
from weightscape.flow.flow import Flow
from weightscape.flow.flow_matching import FlowMatching
from weightscape.flow.gap import Gap
from weightscape.inference import HMC
from weightscape.posterior import Parameters, Posterior

_FEWEST = 16


class Round(NamedTuple):
    """One round.

    - `num_draws`: how many draws its flow was trained on.  `gap`: J of that flow, on draws that were made next.
    - `has_converged`, `num_dead`: whether these had arrived at the posterior, and how many of them never moved.
    """

    num_draws: int
    gap: Gap
    has_converged: bool
    num_dead: int


class Grown(NamedTuple):
    """The last flow, all draws of the last round, and what was seen in each round."""

    flow: Flow
    draws: Draws
    rounds: tuple[Round, ...]


def grow_flow(  # noqa: PLR0913  one call holds a whole procedure
    key: PRNGKey,
    method: FlowMatching,
    posterior: Posterior,
    starts: Draws,
    *,
    num_rounds: int = 3,
    num_draws: int = 256,
    num_transitions: int = 10,
    num_first: int = 50,
    kernel: HMC | None = None,
    num_gap_draws: int = 64,
    progress: Progress | None = None,
) -> Grown:
    """A flow of the posterior, from a few networks.

    - `starts`: at least 16: `DeepEnsemble(num_members=32).run(...)`, `MAP` points, draws of an approximation, or
      `prior_draws(key, posterior, n)`.
    - `num_rounds`, `num_draws`: how often, and how many draws are made each time.
    - `num_transitions`: of HMC for each of them; `num_first` for the starts, which may be farther away.
    - `kernel`: HMC's settings.  `num_gap_draws`: for J, on each side.

    Example:
    >>> grown = grow_flow(key, FlowMatching(num_steps=1000), posterior, starts)  # doctest: +SKIP
    """
    require_key(key, "grow_flow")
    require_count("`num_rounds` of grow_flow", num_rounds)
    asked, remedy = f"`starts` of grow_flow must be at least {_FEWEST} draws", "Pass a larger ensemble."
    require(len(starts) >= _FEWEST, asked, len(starts), remedy)
    progress = default_progress(progress)
    key_first, key_rounds = jax.random.split(key)
    sets = [moved(key_first, posterior, _plain(starts), num_transitions=num_first, kernel=kernel, progress=progress)]
    flow: Flow | None = None
    rounds = []
    for i in range(num_rounds):
        key_train, key_draw, key_move, key_gap = jax.random.split(jax.random.fold_in(key_rounds, i), 4)
        trained = method.run(key_train, posterior, draws=_joined(sets), init=flow, progress=progress)
        assert isinstance(trained, Flow)
        flow, fresh = trained, _chosen(trained.sample(key_draw, 2 * num_draws), num_draws)
        now = moved(key_move, posterior, fresh, num_transitions=num_transitions, kernel=kernel, progress=progress)
        gap = flow.gap(key_gap, now.draws[:, :num_gap_draws], num_draws=num_gap_draws)
        rounds.append(Round(len(_joined(sets)), gap, now.has_converged, now.num_dead))
        sets.append(now)
    assert flow is not None
    return Grown(flow, _living(sets[-1]), tuple(rounds))


def prior_draws(key: PRNGKey, posterior: Posterior, num_draws: int) -> Draws:
    """Networks drawn from the prior, with their log p(D, θ)."""
    require_key(key, "prior_draws")
    require_count("`num_draws` of prior_draws", num_draws)
    params, log_density = _from_prior(posterior, jax.random.split(key, num_draws))
    one_chain = lambda leaf: np.asarray(leaf)[None]
    facts = Facts(method="prior")
    header = Header.of(posterior)
    return Draws(jax.tree.map(one_chain, params), one_chain(log_density), *header, health=Health(1), facts=facts)


@eqx.filter_jit
def _from_prior(posterior: Posterior, keys: Key[Array, " draw"]) -> tuple[Parameters, Float[Array, " draw"]]:
    positions = jax.vmap(posterior.sample_prior_position)(keys)
    return jax.vmap(posterior.constrain)(positions), jax.vmap(posterior.log_density)(positions)


def _joined(sets: list[Moved]) -> Draws:
    """What to train on: the newest set, and all earlier ones that had arrived at the posterior."""
    *earlier, newest = sets
    first, *others = [_living(each) for each in (*(each for each in earlier if each.has_converged), newest)]
    join = lambda *leaves: np.concatenate(leaves, axis=1)
    together = jax.tree.map(join, first.sampled(), *(each.sampled() for each in others))
    return Draws(together.params, together.log_density, *_header(first), health=Health(1), facts=first.facts)


def _living(moves: Moved) -> Draws:
    """The draws whose chains moved."""
    return moves.draws[:, np.flatnonzero(~moves.is_dead)]


def _chosen(draws: Draws, count: int) -> Draws:
    """`count` of the draws, as often as their weights say; no weight counts for more than √n times the mean."""
    assert draws.log_proposal is not None
    log_weights = np.ravel(draws.log_density).astype(np.float64) - np.ravel(draws.log_proposal)
    weights = np.exp(log_weights - np.max(log_weights))
    weights = np.minimum(weights, np.mean(weights) * len(draws) ** 0.5)
    return _plain(draws[:, systematic(0.5, weights, count)])


def _plain(draws: Draws) -> Draws:
    """Draws as they are, without densities or notes."""
    return Draws(draws.params, draws.log_density, *_header(draws), health=draws.health, facts=draws.facts)


def _header(draws: Draws) -> Header:
    return Header(draws.model, draws.scaling, draws.example)
