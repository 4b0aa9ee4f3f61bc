"""Parallel tempering: replicas at several temperatures, which exchange places.

Replica k of K runs HMC on p(D | θ)^β_k p(θ) with β_k = (k / (K − 1))^a, from the prior (β = 0), where no data keep
modes apart, to the posterior (β = 1). After each transition neighbours exchange their positions with probability

    min(1, exp((β_k − β_{k+1}) (ℓ_{k+1} − ℓ_k))),      ℓ = log p(D | θ),

even pairs and odd pairs in turn. The product of all targets is invariant, so draws of the last replica target
p(θ | D), and a chain that is caught in a mode can leave it through the warmer ones. A transition costs K of HMC's.

The ladder also knows the evidence: `ladder_evidence`.

Reference: Syed, Bouchard-Côté, Deligiannidis & Doucet (2022), Non-reversible parallel tempering, section 3.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import require_count, require_positive
from weightscape.core.numbers import number
from weightscape.draws import Draws, Sampled
from weightscape.inference.chains import Schedule, run_chains
from weightscape.inference.mcmc.length import Steps
from weightscape.inference.mcmc.mass import DiagonalMass, Mass
from weightscape.inference.mcmc.settings import require_chain_settings, require_target
from weightscape.inference.mcmc.transition import Hamiltonian
from weightscape.inference.mcmc.warmup import Adaptive
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.sampler import Notes, Sampler
from weightscape.inference.start import require_gradient
from weightscape.posterior import Position, Posterior

LADDER = "log_likelihood_"
"""Notes with this prefix hold ℓ of each replica, from the warmest to the coldest."""


@registered("inference.ParallelTempering")
class ParallelTempering(Method):
    """Hamiltonian Monte Carlo on a ladder of temperatures.

    - `num_replicas`: K, how many temperatures each chain has.
    - `spacing`: a of β_k = (k / (K − 1))^a; larger puts more of them near the prior.
    - the other settings: as in HMC, learned for each temperature on its own.
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    num_replicas: int = eqx.field(static=True, default=12)
    spacing: Float[Array, ""] = eqx.field(default=3.0, converter=number)
    num_leapfrog: int = eqx.field(static=True, default=16)
    jitter: Float[Array, ""] = eqx.field(default=0.5, converter=number)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    target_acceptance: Float[Array, ""] = eqx.field(default=0.8, converter=number)
    mass: Mass = eqx.field(default_factory=DiagonalMass)
    thin: int = eqx.field(static=True, default=1)
    temperature: Float[Array, ""] = eqx.field(default=1.0, converter=number)

    def __check_init__(self):
        require_chain_settings(self)
        require_target(self)
        require_count("`num_leapfrog` of ParallelTempering", self.num_leapfrog)
        require_count("`num_replicas` of ParallelTempering", self.num_replicas, least=2)
        require_positive("`spacing` of ParallelTempering", self.spacing)

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "ParallelTempering")
        length = Steps(jnp.asarray(self.num_leapfrog), self.jitter)
        transition = Hamiltonian(posterior.at_temperature(self.temperature), length)
        num_warmup = jnp.asarray(self.num_warmup)
        replica = Adaptive(transition, self.mass, self.step_size, self.target_acceptance, num_warmup)
        sampler = Ladder(replica, ladder_powers(self.num_replicas, self.spacing))
        schedule = Schedule(self.num_chains, self.num_draws, self.num_warmup, self.thin)
        return run_chains(key, self, sampler, schedule, around)


def ladder_powers(num_replicas: int, spacing: Array) -> Float[Array, " replica"]:
    """β_k from 0 to 1."""
    return jnp.linspace(0.0, 1.0, num_replicas) ** spacing


class Ladder(Sampler):
    """Replicas of one sampler at powers β of the likelihood; a state holds those of all replicas on a leading axis."""

    replica: Adaptive
    powers: Float[Array, " replica"]

    def __init__(self, replica: Adaptive, powers: Float[Array, " replica"]):
        self.replica = replica
        self.powers = powers

    @property
    def posterior(self) -> Posterior:  # pyright: ignore[reportIncompatibleVariableOverride]  AbstractVar allows it
        """The target of the coldest replica."""
        return self.replica.posterior

    def init(self, position: Position) -> Any:
        """All replicas at one position."""
        return jax.vmap(lambda power: self._at(power).init(position))(self.powers)

    def adapt(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        """Every replica learns its own tuning, then neighbours may exchange places."""
        key_moves, key_swaps = jax.random.split(key)
        adapt = lambda power, key, state: self._at(power).adapt(key, state, index)
        state, notes = jax.vmap(adapt)(self.powers, self._keys(key_moves), state)
        return self._swap(key_swaps, state, notes, index)

    def settle(self, state: Any) -> Any:
        return jax.vmap(lambda power, state: self._at(power).settle(state))(self.powers, state)

    def move(self, key: PRNGKey, state: Any, index: Int[Array, ""]) -> tuple[Any, Notes]:
        """A transition of every replica, then neighbours may exchange places."""
        key_moves, key_swaps = jax.random.split(key)
        move = lambda power, key, state: self._at(power).move(key, state, index)
        state, notes = jax.vmap(move)(self.powers, self._keys(key_moves), state)
        return self._swap(key_swaps, state, notes, index)

    def observe(self, state: Any, notes: Notes) -> Sampled:
        return self.replica.observe(_coldest(state), notes)

    def position(self, state: Any) -> Position:
        return self.replica.position(_coldest(state))

    def place(self, state: Any, position: Position) -> Any:
        return jax.vmap(lambda power, state: self._at(power).place(state, position))(self.powers, state)

    def _at(self, power: Float[Array, ""]) -> Adaptive:
        where = lambda replica: replica.transition.posterior.likelihood_power
        return eqx.tree_at(where, self.replica, power * where(self.replica))

    def _keys(self, key: PRNGKey) -> Any:
        return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(self.powers)))

    def _swap(self, key: PRNGKey, state: Any, notes: Notes, index: Int[Array, ""]) -> tuple[Any, Notes]:
        positions = jax.vmap(self.replica.position)(state)
        log_likelihood = jax.vmap(self.posterior.log_likelihood)(positions)
        weighted = self.posterior.likelihood_power * log_likelihood
        order, acceptance = exchange(key, self.powers, weighted, index)
        moved = jax.tree.map(lambda leaf: leaf[order], positions)
        state = jax.vmap(lambda power, state, position: self._at(power).place(state, position))(
            self.powers, state, moved
        )
        notes = {**_coldest(notes), "swap_acceptance": acceptance}
        notes["is_accepted"] = notes["is_accepted"] | (order[-1] != len(self.powers) - 1)
        ladder = {f"{LADDER}{k:03d}": value for k, value in enumerate(log_likelihood[order])}
        return state, {**notes, **ladder}


def exchange(
    key: PRNGKey, powers: Float[Array, " replica"], log_likelihood: Float[Array, " replica"], index: Int[Array, ""]
) -> tuple[Int[Array, " replica"], Float[Array, ""]]:
    """Whose position each replica takes, and the mean acceptance of the pairs that were asked.

    Pairs (0, 1), (2, 3), … are asked at even `index`, pairs (1, 2), (3, 4), … at odd ones.
    """
    replicas = jnp.arange(len(powers))
    left = replicas[:-1]
    is_asked = left % 2 == index % 2
    log_ratio = (powers[:-1] - powers[1:]) * (log_likelihood[1:] - log_likelihood[:-1])
    acceptance = jnp.where(is_asked, jnp.exp(jnp.minimum(jnp.nan_to_num(log_ratio, nan=-jnp.inf), 0)), 0.0)
    swaps: Bool[Array, " pair"] = jax.random.uniform(key, acceptance.shape, acceptance.dtype) < acceptance
    no = jnp.zeros((1,), bool)
    up, down = jnp.concatenate([swaps, no]), jnp.concatenate([no, swaps])
    order = replicas + up.astype(replicas.dtype) - down.astype(replicas.dtype)
    return order, jnp.sum(acceptance) / jnp.maximum(jnp.sum(is_asked), 1)


def _coldest(state: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[-1], state)
