"""A flow that makes its own training set: anneal, train, draw, correct, add, go on.

    draws ← networks of the prior, led to the posterior by raising the power of the likelihood (`from_prior`)
    repeat:   train the flow on all draws so far, from where it was
              draw from it, choose among the draws by their weights, move these by a few transitions of HMC

Raising the power gives every mode that the first networks see the share of the draws that it should have. Weights put
shares right once more, as far as the flow reaches, and moves leave the posterior invariant and mend the rest.

What is checked: J of each round's flow against draws that it has not seen, which start from it and so cannot show what
it misses; and the evidence of the way from the prior, which can. A flow whose own evidence is lower, by more than the
errors of both, misses networks.

Instead of the prior, `starts` may be given; chains then go straight to the posterior, and settle in the modes in whose
basins they start. A mode that no start leads to stays unseen, and nothing here shows it.

Reference: Gabrié, Rotskoff & Vanden-Eijnden (2022), Adaptive Monte Carlo augmented with normalizing flows.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from weightscape.core import PRNGKey, Progress, default_progress
from weightscape.core.checks import require, require_count
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Header, Health, systematic
from weightscape.flow.correction.from_prior import annealed_from_prior
from weightscape.flow.correction.moves import moved
from weightscape.flow.flow import Flow
from weightscape.flow.flow_matching import FlowMatching
from weightscape.flow.gap import Gap, gap_of
from weightscape.inference import HMC, LogEvidence
from weightscape.posterior import Posterior

_FEWEST = 16
_NUM_GAP_DRAWS = 64


class Growth(eqx.Module):
    """How a flow grows.

    - `num_rounds`, `num_draws`: how often, and how many draws are made each time, the first time from the prior.
    - `num_transitions`: of HMC for each of them in a round, half as many at each power on the way from the prior.
    - `num_first`: of HMC for starts that are given, which may be far away.
    - `kernel`: HMC's settings, as for `moved`.
    """

    num_rounds: int = eqx.field(static=True, default=3)
    num_draws: int = eqx.field(static=True, default=256)
    num_transitions: int = eqx.field(static=True, default=10)
    num_first: int = eqx.field(static=True, default=50)
    kernel: HMC = eqx.field(default_factory=lambda: HMC(num_warmup=10))

    def __check_init__(self) -> None:
        require_count("`num_rounds` of Growth", self.num_rounds)
        require_count("`num_draws` of Growth", self.num_draws, least=_FEWEST)
        require_count("`num_transitions` of Growth", self.num_transitions)
        require_count("`num_first` of Growth", self.num_first)


class Round(NamedTuple):
    """One round.

    - `num_draws`: how many draws its flow was trained on.  `gap`: J of that flow, on draws that were made next.
    - `has_converged`, `num_dead`: whether these had arrived at the posterior, and how many of them never moved.
    - `num_gradients`: that they took.
    """

    num_draws: int
    gap: Gap
    has_converged: bool
    num_dead: int
    num_gradients: int


class Grown(NamedTuple):
    """The last flow and what it came from.

    - `draws`: those of the last round.  `rounds`: what was seen in each.
    - `starts`: the draws it began with; their facts know the `gradients` they took.
    - `log_evidence`: log p(D) of the way from the prior, to compare with `flow.evidence`; None where starts were given.
    """

    flow: Flow
    draws: Draws
    rounds: tuple[Round, ...]
    starts: Draws
    log_evidence: LogEvidence | None


def grow_flow(
    key: PRNGKey,
    method: FlowMatching,
    posterior: Posterior,
    starts: Draws | None = None,
    *,
    growth: Growth | None = None,
    progress: Progress | None = None,
) -> Grown:
    """A flow of the posterior, from nothing or from a few networks.

    - `starts`: None for the prior, or at least 16 draws: `DeepEnsemble(num_members=32).run(...)`, draws of an
      approximation, or of short chains.

    Example:
    >>> grown = grow_flow(key, FlowMatching(num_steps=1000), posterior)           # doctest: +SKIP
    >>> print(grown.log_evidence, grown.flow.evidence(key_draws, 1000))           # doctest: +SKIP
    """
    require_key(key, "grow_flow")
    growth, progress = growth or Growth(), default_progress(progress)
    key_first, key_rounds = jax.random.split(key)
    first, log_evidence = _first(key_first, posterior, starts, growth, progress)
    sets, rounds = [first], []
    flow: Flow | None = None
    for i in range(growth.num_rounds):
        key_train, key_draw, key_move = jax.random.split(jax.random.fold_in(key_rounds, i), 3)
        together = _joined(sets)
        trained = method.run(key_train, posterior, draws=together, init=flow, progress=progress)
        assert isinstance(trained, Flow)
        flow, fresh = trained, trained.sample(key_draw, 2 * growth.num_draws)
        chosen, count, kernel = _chosen(fresh, growth.num_draws), growth.num_transitions, growth.kernel
        now = moved(key_move, posterior, chosen, num_transitions=count, kernel=kernel, progress=progress)
        gap = gap_of(flow.log_weights(now.draws[:, :_NUM_GAP_DRAWS]), _log_weights(fresh))
        cost = now.draws.facts["gradients"]
        rounds.append(Round(len(together), gap, now.has_converged, now.num_dead, cost))
        # Draws that never moved are kept: their weights chose them, and it is in narrow places that chains are stuck.
        sets.append(_Set(now.draws, now.at_the_end.is_still and now.between_halves.is_still))
    assert flow is not None
    return Grown(flow, sets[-1].draws, tuple(rounds), first.draws, log_evidence)


class _Set(NamedTuple):
    """Draws to train on, and whether they had arrived at the posterior."""

    draws: Draws
    has_arrived: bool


def _first(
    key: PRNGKey, posterior: Posterior, starts: Draws | None, growth: Growth, progress: Progress
) -> tuple[_Set, LogEvidence | None]:
    """The draws before the first round."""
    if starts is None:
        way = annealed_from_prior(
            key,
            posterior,
            num_draws=growth.num_draws,
            num_transitions=-(-growth.num_transitions // 2),
            kernel=growth.kernel,
            progress=progress,
        )
        return _Set(way.draws, has_arrived=True), way.log_evidence
    asked, remedy = f"`starts` of grow_flow must be at least {_FEWEST} draws", "Pass a larger ensemble, or none."
    require(len(starts) >= _FEWEST, asked, len(starts), remedy)
    count, kernel = growth.num_first, growth.kernel
    there = moved(key, posterior, _plain(starts), num_transitions=count, kernel=kernel, progress=progress)
    living = there.draws[:, np.flatnonzero(~there.is_dead)]
    return _Set(living, there.has_converged), None


def _joined(sets: list[_Set]) -> Draws:
    """What to train on: the newest set, and all earlier ones that had arrived at the posterior."""
    *earlier, newest = sets
    first, *others = [each.draws for each in (*(each for each in earlier if each.has_arrived), newest)]
    join = lambda *leaves: np.concatenate(leaves, axis=1)
    plain = lambda draws: (draws.params, draws.log_density)
    params, log_density = jax.tree.map(join, plain(first), *(plain(each) for each in others))
    return Draws(params, log_density, *_header(first), health=Health(1), facts=first.facts)


def _chosen(draws: Draws, count: int) -> Draws:
    """`count` of the draws, as often as their weights say; no weight counts for more than √n times the mean."""
    log_weights = _log_weights(draws)
    weights = np.exp(log_weights - np.max(log_weights))
    weights = np.minimum(weights, np.mean(weights) * len(draws) ** 0.5)
    return _plain(draws[:, systematic(0.5, weights, count)])


def _log_weights(draws: Draws) -> Float[np.ndarray, " draw"]:
    """log p(D, θ) − log q(θ) of a flow's own draws."""
    assert draws.log_proposal is not None
    return np.ravel(draws.log_density).astype(np.float64) - np.ravel(draws.log_proposal)


def _plain(draws: Draws) -> Draws:
    """Draws as they are, without densities or notes."""
    return Draws(draws.params, draws.log_density, *_header(draws), health=draws.health, facts=draws.facts)


def _header(draws: Draws) -> Header:
    return Header(draws.model, draws.scaling, draws.example)
