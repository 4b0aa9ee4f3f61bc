"""The best signs and scales for one unit put in the place of another.

The weights P_c of a unit go where the reference has R_c; c runs over the kinds of places that share their exponents.
With norms p_c = ‖P_c‖² and products b_c = ⟨R_c, P_c⟩ the squared distance is, up to a constant,

    h(σ, u) = Σ_c p_c (f_c² − 1) − 2 b_c f_c,        f_c = Π_k σ_k^{e_ck} · exp(Σ_k e_ck u_k),      u = log s

It is least over all 2^K patterns of signs σ. For each of them the scales are found one generator at a time by Newton's
method in u, from the best of several starts; steps that do not lower h are shortened. |u| stays within a bound, as h
may fall for ever where a scale goes to zero.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from weightscape.core.types import Scalar
from weightscape.symmetry.group import Group, Member

Exponents = tuple[tuple[int, ...], tuple[int, ...]]
"""Of one kind of places: those of the scales, those of the signs."""

_BOUND = 10.0
_NUM_NEWTON_STEPS = 14
_NUM_CYCLES = 8
_NUM_GRID = 9
_SURE_STEP = 1e-3


class Multiplier(NamedTuple):
    """The best signs and log scales, one for each generator of the group, and their h."""

    cost: Scalar
    signs: Int[Array, " sign"]
    log_scales: Float[Array, " scaling"]


def exponent_kinds(group: Group) -> tuple[Exponents, ...]:
    """The different exponents of a group's members, in the order of first use."""
    return tuple(dict.fromkeys(map(exponents_of, group.members)))


def exponents_of(member: Member) -> Exponents:
    """Those of one member."""
    return member.scale_exponents, member.sign_exponents


def best_multiplier(
    kinds: tuple[Exponents, ...], norms: Float[Array, " kind"], products: Float[Array, " kind"]
) -> Multiplier:
    """The signs and scales of least h for one pair of units; vmap for many.

    - `kinds`: e_c.  `norms`: p_c.  `products`: b_c.
    """
    scale_exponents = [scales for scales, _ in kinds]
    sign_exponents = np.array([signs for _, signs in kinds], int).reshape(len(kinds), -1)
    patterns = np.array(list(itertools.product((1, -1), repeat=sign_exponents.shape[1])), int)
    flips = np.prod(patterns[:, None, :] ** sign_exponents[None], axis=2)

    def with_flips(flips: Array) -> tuple[Scalar, Float[Array, " scaling"]]:
        flipped = products * flips
        log_scales = _best_log_scales(scale_exponents, norms, flipped)
        powers = _powers(scale_exponents, log_scales, norms)
        return jnp.sum(norms * (powers**2 - 1) - 2 * flipped * powers), log_scales

    # The first pattern has no flips and wins a tie, so that nothing is flipped without need.
    costs, log_scales = jax.vmap(with_flips)(jnp.asarray(flips, products.dtype))
    best = jnp.argmin(costs)
    return Multiplier(jnp.min(costs), jnp.asarray(patterns, jnp.int8)[best], log_scales[best])


def _powers(exponents: list[tuple[int, ...]], u: Float[Array, " scaling"], like: Array) -> Float[Array, " kind"]:
    """exp(e_c · u); sums are written out, as products of tiny matrices are slow where there are many pairs."""
    zero = jnp.zeros((), like.dtype)
    return jnp.exp(jnp.stack([sum((e * u[k] for k, e in enumerate(of_kind)), zero) for of_kind in exponents]))


def _best_log_scales(exponents: list[tuple[int, ...]], norms: Array, products: Array) -> Float[Array, " scaling"]:
    """u by one generator after the other; a single one needs one round."""
    num_scalings = len(exponents[0])

    def cycle(_: Array, u: Float[Array, " scaling"]) -> Float[Array, " scaling"]:
        for k in range(num_scalings):
            rest = _powers(exponents, u.at[k].set(0.0), norms)
            terms = [
                Term(of_kind[k], norms[c] * rest[c] ** 2, products[c] * rest[c])
                for c, of_kind in enumerate(exponents)
                if of_kind[k]
            ]
            u = u.at[k].set(_best_log_scale(terms, u[k]))
        return u

    num_cycles = min(num_scalings, 1) if num_scalings < 2 else _NUM_CYCLES
    return jax.lax.fori_loop(0, num_cycles, cycle, jnp.zeros((num_scalings,), norms.dtype))


class Term(NamedTuple):
    """p s^2e − 2 b s^e: what one kind of places adds to h, as a function of one scale."""

    exponent: int
    norm: Scalar
    product: Scalar


def _best_log_scale(terms: list[Term], current: Scalar) -> Scalar:
    """argmin_u Σ_c p_c exp(2 e_c u) − 2 b_c exp(e_c u), for one generator."""
    bound = _BOUND / max(abs(term.exponent) for term in terms)

    def step(_: Array, carry: tuple[Scalar, Scalar, Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        u, height, radius = carry
        slope, curvature = _derivatives(terms, u)
        newton = -slope / jnp.maximum(jnp.abs(curvature), jnp.finfo(u.dtype).tiny)
        new = jnp.clip(u + jnp.clip(newton, -radius, radius), -bound, bound)
        new_height = _height(terms, new)
        # Close to the minimum h is flat to rounding while its slope is not: there Newton's step is taken unseen.
        sure = (jnp.abs(newton) < _SURE_STEP) & (curvature > 0)
        lower = sure | (new_height < height)
        pick = lambda yes, no: jnp.where(lower, yes, no)
        return pick(new, u), pick(new_height, height), pick(radius, radius / 4)

    start = _best_start(terms, current, bound)
    return jax.lax.fori_loop(0, _NUM_NEWTON_STEPS, step, (*start, jnp.ones_like(current)))[0]


def _best_start(terms: list[Term], current: Scalar, bound: float) -> tuple[Scalar, Scalar]:
    """Of the present u, the minimum of each term alone and a coarse grid, the one of lowest h; and that h."""

    def lower(best: tuple[Scalar, Scalar], u: Scalar) -> tuple[Scalar, Scalar]:
        height = _height(terms, u)
        return jnp.where(height < best[1], u, best[0]), jnp.minimum(height, best[1])

    best, tiny = (current, _height(terms, current)), jnp.finfo(current.dtype).tiny
    for e, p, b in terms:
        alone = jnp.log(jnp.maximum(b, tiny) / jnp.maximum(p, tiny)) / e
        best = lower(best, jnp.clip(jnp.where((b > tiny) & (p > tiny), alone, current), -bound, bound))
    spacing = 2 * bound / (_NUM_GRID - 1)
    on_grid = lambda i, best: lower(best, (i * spacing - bound).astype(current.dtype))
    return jax.lax.fori_loop(0, _NUM_GRID, on_grid, best)


def _height(terms: list[Term], u: Scalar) -> Scalar:
    s = jnp.exp(u)
    return sum((p * s ** (2 * e) - 2 * b * s**e for e, p, b in terms), jnp.zeros_like(u))


def _derivatives(terms: list[Term], u: Scalar) -> tuple[Scalar, Scalar]:
    """h′ and h″ with respect to u = log s."""
    s, zero = jnp.exp(u), jnp.zeros_like(u)
    slope = sum((2 * e * s**e * (p * s**e - b) for e, p, b in terms), zero)
    return slope, sum((2 * e**2 * s**e * (2 * p * s**e - b) for e, p, b in terms), zero)
