"""Hamiltonian Monte Carlo: the gold standard that other methods are measured against.

Chains start at the network's own initial weights (or at `init`), warm up, and are then run with fixed tuning; they are
sharded over devices and vectorised within each. Draws target p(θ | D) exactly as their number grows.

Reference: Neal (2011), MCMC using Hamiltonian dynamics, section 3.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.core import Plan, PRNGKey, Progress, Tree, map_chains, registered
from weightscape.core.checks import require, require_count, require_fraction, require_positive
from weightscape.core.keys import chain_keys
from weightscape.core.numbers import number
from weightscape.draws import Draws, Recorder
from weightscape.inference.mcmc.recording import WARMUP_SHARE, record_chains, warm_up_chains
from weightscape.inference.mcmc.transition import Transition
from weightscape.inference.mcmc.warmup import Warmup
from weightscape.inference.method import Circumstances, Method, settings
from weightscape.inference.start import require_gradient, start_positions
from weightscape.posterior import Posterior


@registered("inference.HMC")
class HMC(Method):
    """Hamiltonian Monte Carlo with warm-up.

    - `num_chains`, `num_draws`: how many chains, and draws kept of each.
    - `num_warmup`: transitions of warm-up; 0 keeps `step_size` as it is.
    - `num_leapfrog`: leapfrog steps of a transition, on average.
    - `jitter`: trajectories vary by this fraction around `num_leapfrog`; 0 makes all equally long.
    - `step_size`: ε, the first guess where warm-up adapts it.
    - `target_acceptance`: what warm-up aims at.
    - `adapt_mass`: whether warm-up learns a diagonal mass.
    - `thin`: transitions for each draw kept.
    """

    num_chains: int = eqx.field(static=True, default=4)
    num_draws: int = eqx.field(static=True, default=500)
    num_warmup: int = eqx.field(static=True, default=500)
    num_leapfrog: int = eqx.field(static=True, default=32)
    jitter: Float[Array, ""] = eqx.field(default=0.5, converter=number)
    step_size: Float[Array, ""] = eqx.field(default=0.05, converter=number)
    target_acceptance: Float[Array, ""] = eqx.field(default=0.8, converter=number)
    adapt_mass: bool = eqx.field(static=True, default=True)
    thin: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        for name in ("num_chains", "num_draws", "num_leapfrog", "thin"):
            require_count(f"`{name}` of HMC", getattr(self, name))
        require_count("`num_warmup` of HMC", self.num_warmup, least=0)
        require_positive("`step_size` of HMC", self.step_size)
        require_fraction("`target_acceptance` of HMC", float(self.target_acceptance))
        jitter = float(self.jitter)
        require(0 <= jitter <= 1, "`jitter` of HMC must lie between 0 and 1", jitter, "Pass a fraction such as 0.5.")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        require_gradient(posterior, "HMC")
        progress, began = around.progress, time.monotonic()
        key_start, key_warmup, key_draws = jax.random.split(key, 3)
        recorder = Recorder(posterior, around.store)
        transition = Transition(posterior, jnp.asarray(self.num_leapfrog), self.jitter)
        warmup = Warmup(
            transition,
            self.step_size,
            self.target_acceptance,
            jnp.asarray(self.num_warmup),
            jnp.asarray(int(self.adapt_mass)),
        )
        positions = start_positions(key_start, posterior, self.num_chains, around.init)
        state = self._warm_up(key_warmup, warmup, positions, progress)
        warm = time.monotonic() - began
        plan = Plan(self.num_draws, self.thin, seconds=progress.seconds_left())
        record_chains(recorder, transition, chain_keys(key_draws, self.num_chains), state, plan, progress)
        facts = {**settings(self), "warmup_seconds": warm, "seconds": time.monotonic() - began}
        return recorder.finish(facts, examine=True)

    def _warm_up(self, key: PRNGKey, warmup: Warmup, positions: Tree, progress: Progress) -> Tree:
        state = map_chains(warmup.init, positions)
        plan = Plan(self.num_warmup, seconds=WARMUP_SHARE * progress.seconds_left())
        state = warm_up_chains(warmup, chain_keys(key, self.num_chains), state, plan, progress)
        return map_chains(warmup.finish, state)
