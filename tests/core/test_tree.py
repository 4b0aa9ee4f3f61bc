"""Tree arithmetic is vector arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from weightscape.core import tree

ONE = {"a": jnp.arange(3.0), "b": (jnp.ones((2, 2)) * 0.5, jnp.asarray(2.0))}
OTHER = jax.tree.map(lambda leaf: leaf**2 - 1, ONE)


def flat(value):
    return np.asarray(ravel_pytree(value)[0])


def test_arithmetic_is_that_of_flat_vectors():
    np.testing.assert_allclose(flat(tree.add(ONE, OTHER)), flat(ONE) + flat(OTHER))
    np.testing.assert_allclose(flat(tree.subtract(ONE, OTHER)), flat(ONE) - flat(OTHER))
    np.testing.assert_allclose(flat(tree.scale(3.0, ONE)), 3 * flat(ONE))
    np.testing.assert_allclose(tree.dot(ONE, OTHER), flat(ONE) @ flat(OTHER))
    np.testing.assert_allclose(tree.norm(ONE), np.linalg.norm(flat(ONE)))
    np.testing.assert_allclose(tree.total(ONE), flat(ONE).sum())
    assert tree.size(ONE) == 8
    assert float(tree.total(())) == 0.0


def test_finite_looks_at_every_leaf():
    assert bool(tree.all_finite(ONE))
    assert not bool(tree.all_finite({**ONE, "c": jnp.asarray([0.0, jnp.nan])}))


def test_normal_draws_differ_between_leaves():
    drawn = tree.normal_like(jax.random.key(0), {"a": jnp.zeros((50,)), "b": jnp.zeros((50,))})
    assert abs(np.corrcoef(drawn["a"], drawn["b"])[0, 1]) < 0.6


def test_leaves_have_readable_names():
    assert list(tree.named_leaves(ONE)) == ["a", "b/0", "b/1"]


def test_stack_adds_a_leading_axis():
    stacked = tree.stack([ONE, OTHER])
    np.testing.assert_allclose(stacked["b"][0][1], OTHER["b"][0])
