"""Where a pull is wrong: what its error costs at each time, without the noise of the targets it learned from.

Two targets that are independent given x_t have pulls y and y′ whose distances from f share nothing but that of G:

    cost(t) E[(f − y)·(f − y′)] = cost(t) E‖f − G‖²

in nats for each unit of time; the integral is KL(p ‖ q) of paths with many steps. The second target is a chain of HMC
among the targets of x_t, from the first. Where that has not forgotten its start the value is too large.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.flow import Flow
from weightscape.flow.conditional import Conditional, Stiffness
from weightscape.flow.objective import Pair
from weightscape.flow.paths import point
from weightscape.flow.pull import factors, pull_of_pair
from weightscape.flow.swing import Swing
from weightscape.flow.target import Target

TIMES = tuple(round(0.05 + 0.1 * i, 2) for i in range(10))
_NUM_TRANSITIONS = 30
_NUM_LEAPFROG = 40
_STEP_SIZE = 0.08
_NUM_AT_ONCE = 64


def profile(key: jax.Array, flow: Flow, z: Float[np.ndarray, "draw weight"], stiffness: Stiffness) -> dict[str, float]:
    """The cost of a flow's error at each time, and its standard error, from draws of the posterior."""
    target = Target(flow.posterior, flow.source)
    found: dict[str, float] = {}
    for index, time in enumerate(TIMES):
        keys = jax.random.split(jax.random.fold_in(key, index), len(z))
        values = np.asarray(_costs(flow.bare(), target, stiffness, jnp.asarray(time, z.dtype), keys, jnp.asarray(z)))
        error = float(values.std() / len(values) ** 0.5)
        found |= {f"cost_at_{time}": float(values.mean()), f"cost_error_at_{time}": error}
    return found


@eqx.filter_jit
def _costs(flow: Flow, target: Target, stiffness: Stiffness, time: Array, keys: Array, z: Array) -> Array:
    path = flow.objective.path

    def one(key: Array, z: Array) -> Array:
        key_source, key_walk, *keys = jax.random.split(key, 4)
        first = Pair(flow.source.sample(key_source), z, target.gradient(z))
        x, at = point(path, time, first.source, z), path.coefficients(time)
        other = _other(key_walk, target, stiffness, (at.a, at.b), first)
        swing = Swing(target, stiffness, 64)
        swung = [swing(key, path, time, pair) for key, pair in zip(keys, (first, other), strict=True)]
        curvature = flow.model.curvature(time)
        pulls = [pull_of_pair(path, time, x, pair.target, pair.gradient, curvature) for pair in swung]
        said = flow.model(time, x)
        return factors(path, time).cost * jnp.sum((said - pulls[0]) * (said - pulls[1]))

    return jax.lax.map(lambda each: one(*each), (keys, z), batch_size=_NUM_AT_ONCE)


def _other(key: Array, target: Target, stiffness: Stiffness, ab: tuple[Array, Array], pair: Pair) -> Pair:
    """A pair with the same point, and a target that HMC has led elsewhere."""
    a, b = ab
    size = jnp.sqrt(a**2 + b**2)
    x = a * pair.source + b * pair.target
    targets = Conditional(target, stiffness, b * x / size**2, a / size)

    def transition(u: Array, key: Array) -> tuple[Array, None]:
        key_momentum, key_step, key_accept = jax.random.split(key, 3)
        start = targets.state(u, jax.random.normal(key_momentum, u.shape, u.dtype) / jnp.sqrt(targets.mass))
        step_size = _STEP_SIZE * jax.random.uniform(key_step, (), u.dtype, 0.7, 1.0)
        end = jax.lax.fori_loop(0, _NUM_LEAPFROG, lambda _, state: targets.step(state, step_size), start)
        gain = targets.energy(start) - targets.energy(end)
        accepted = jnp.log(jax.random.uniform(key_accept, (), u.dtype)) < gain
        return jnp.where(accepted, end.u, u), None

    begun = stiffness.along((a * pair.target - b * pair.source) / size)
    u = jax.lax.scan(transition, begun, jax.random.split(key, _NUM_TRANSITIONS))[0]
    z = targets.place(u)
    source = (a * x - b * size * stiffness.vector(u)) / size**2
    return Pair(source, z, target.gradient(z))
