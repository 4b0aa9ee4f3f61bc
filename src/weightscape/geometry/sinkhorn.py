"""Sinkhorn matching: soft permutations that harden as a temperature falls.

    S = sinkhorn(gains / τ),        gains[i, j] of unit j in the place of unit i

Sinkhorn's iteration makes a matrix doubly stochastic by scaling rows and columns in turn. A group's soft permutation
acts on the weights as S ∘ f, with f the best multiplier of each pair; the gains of one group are those of weights on
which all others have acted softly. At τ → 0 the matrices are permutations; what is left is rounded by an assignment.
(Gold and Rangarajan 1996, graduated assignment; Peña et al. 2023 take soft permutations to networks.)
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core.checks import require_count, require_positive
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.geometry.assignment import assign
from weightscape.geometry.group_step import pair_multipliers, with_pairs
from weightscape.geometry.match import Matched, Matching, Task
from weightscape.geometry.multipliers import Multiplier, exponent_kinds, exponents_of
from weightscape.geometry.unit_products import Place, unit_products
from weightscape.symmetry import Group, Symmetry

_NUM_NORMALISATIONS = 20


class SinkhornMatching(Matching):
    """Soft permutations of all groups, annealed and rounded.

    - `temperature`, `final_temperature`: the first and the last τ, in standard deviations of a group's gains; those
      between are a geometric sequence.
    - `num_iterations`: how many temperatures there are; every group is gone through at each.

    It gives no promise on the distance, and uses no randomness.
    """

    temperature: Scalar = eqx.field(default=1.0, converter=number)
    final_temperature: Scalar = eqx.field(default=0.01, converter=number)
    num_iterations: int = eqx.field(static=True, default=50)

    def __check_init__(self):
        require_positive("`temperature` of SinkhornMatching", self.temperature)
        require_positive("`final_temperature` of SinkhornMatching", self.final_temperature)
        require_count("`num_iterations` of SinkhornMatching", self.num_iterations, least=2)

    def find(self, key: PRNGKey, task: Task) -> Matched:
        element = task.identities()
        if task.symmetry.groups:
            for g, soft in enumerate(annealed(self, task)):
                permutation = jnp.asarray(assign(np.asarray(soft.plan)))
                element = with_pairs(element, g, permutation, soft.multiplier)
        return task.matched(element, jnp.full(task.num_networks, self.num_iterations))


class Soft(NamedTuple):
    """The soft permutation S of a group, the best multiplier of each pair, and S ∘ f for each kind of places."""

    plan: Float[Array, "*batch unit unit"]
    multiplier: Multiplier
    matrices: Float[Array, "*batch kind unit unit"]


def sinkhorn(log_weights: Float[Array, "unit unit"]) -> Float[Array, "unit unit"]:
    """The doubly stochastic matrix of the form a_i exp(log_weights[i, j]) b_j, computed with logarithms."""

    def normalise(_: Array, z: Array) -> Array:
        z = z - jax.nn.logsumexp(z, axis=1, keepdims=True)
        return z - jax.nn.logsumexp(z, axis=0, keepdims=True)

    return jnp.exp(jax.lax.fori_loop(0, _NUM_NORMALISATIONS, normalise, log_weights))


@eqx.filter_jit
def annealed(matching: SinkhornMatching, task: Task) -> tuple[Soft, ...]:
    """The soft permutations of all groups at the last temperature, for each network."""
    fall = matching.final_temperature / matching.temperature

    def anneal(params: Tree) -> tuple[Soft, ...]:
        def iteration(i: Array, softs: tuple[Soft, ...]) -> tuple[Soft, ...]:
            temperature = matching.temperature * fall ** (i / (matching.num_iterations - 1))
            for g in range(len(softs)):
                new = _softened(task, g, params, softs, temperature)
                softs = (*softs[:g], new, *softs[g + 1 :])
            return softs

        start = tuple(_even(group, jnp.result_type(*jax.tree.leaves(params))) for group in task.symmetry.groups)
        return jax.lax.fori_loop(0, matching.num_iterations, iteration, start)

    return jax.vmap(anneal)(task.params)


def _softened(task: Task, group: int, params: Tree, softs: tuple[Soft, ...], temperature: Scalar) -> Soft:
    """The soft permutation of one group, given those of the others."""
    known = jnp.ones(len(softs))
    moved = _moved_softly(task.symmetry, softs)
    units = unit_products(task.symmetry, group, params, task.reference, moved=moved, known=known)
    multiplier = pair_multipliers(task.symmetry.groups[group], units)
    gains = -multiplier.cost
    spread = jnp.maximum(jnp.std(gains), jnp.finfo(gains.dtype).tiny)
    plan = sinkhorn(gains / (temperature.astype(gains.dtype) * spread))
    return Soft(plan, multiplier, plan[None] * _factors(task.symmetry.groups[group], multiplier))


def _even(group: Group, dtype: np.dtype) -> Soft:
    """All units alike; the two signs of a place undo each other."""
    n, kinds = group.size, exponent_kinds(group)
    plan = jnp.full((n, n), 1 / n, dtype)
    signs, scales = jnp.ones((n, n, group.num_signs), jnp.int8), jnp.zeros((n, n, group.num_scalings), dtype)
    matrices = jnp.stack([jnp.zeros_like(plan) if any(flips) else plan for _, flips in kinds])
    return Soft(plan, Multiplier(jnp.zeros((n, n), dtype), signs, scales), matrices)


def _factors(group: Group, multiplier: Multiplier) -> Float[Array, "kind unit unit"]:
    """f_c = Π σ^e · exp(Σ e u) of every pair, for each kind of places."""
    made = []
    for scale_exponents, sign_exponents in exponent_kinds(group):
        flips = jnp.prod(multiplier.signs ** jnp.asarray(sign_exponents, int)[None, None, :], axis=-1)
        log_scale = multiplier.log_scales @ jnp.asarray(scale_exponents, multiplier.log_scales.dtype)
        made.append(flips * jnp.exp(log_scale))
    return jnp.stack(made)


def _moved_softly(symmetry: Symmetry, softs: tuple[Soft, ...]) -> Callable[[Place, Array], Array]:
    """The leaf after the soft permutations along its other factors."""

    def moved(place: Place, leaf: Array) -> Array:
        split = leaf.reshape(place.factors.sizes)
        for axis, along in enumerate(place.factors.members):
            for g, m in along if axis != place.member.factor else ():
                member = symmetry.groups[g].members[m]
                matrix = softs[g].matrices[exponent_kinds(symmetry.groups[g]).index(exponents_of(member))]
                split = _multiplied(matrix.astype(leaf.dtype), split, axis, np.asarray(member.positions))
        return split.reshape(leaf.shape)

    return moved


def _multiplied(matrix: Array, split: Array, axis: int, positions: np.ndarray) -> Array:
    front = jnp.moveaxis(split, axis, 0)
    return jnp.moveaxis(front.at[positions].set(jnp.tensordot(matrix, front[positions], axes=1)), 0, axis)
