"""A canary for compilers that return wrong numbers without a word.

jax 0.10.2 on CPU compiles a vmapped matrix-vector product followed by a reduction, the shape of a per-example
log-likelihood, so that rows past a tile of 128 KiB (32,768 float32 or 16,384 float64) are wrong (jax issue 39103).
Measured there: 3 features, 2 or 3 outputs, 32,769 to some 45,000 rows; a sixth of the rows and 18 % of a gradient
wrong. Each case compares compiled code with the same code run operation by operation, and that with float64 numpy.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike

NUM_ROWS = 40_000
# A product of 3 terms, a sum of 3 and an exponential round to a few eps; the mean of 40,000 float32 terms to
# 40,000 · eps / 2 = 2.4e-3 at the very worst and to about the root of that many eps, 1.2e-5, in practice.
TOLERANCE = {"float32": 1e-4, "float64": 1e-12}


class Case(NamedTuple):
    """A function of (weights, inputs), and its value computed by numpy."""

    run: Callable[[jax.Array, jax.Array], jax.Array]
    reference: Callable[[np.ndarray, np.ndarray], np.ndarray]


def per_example(reduce: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array, jax.Array], jax.Array]:
    return lambda weights, x: jax.vmap(lambda row: reduce(weights @ row))(x)


def squared_norm(outputs: jax.Array) -> jax.Array:
    return jnp.sum(outputs**2)


def log_sum_exp(outputs: jax.Array) -> jax.Array:
    return jnp.log(jnp.sum(jnp.exp(outputs)))


def mean_log_sum_exp(weights: jax.Array, x: jax.Array) -> jax.Array:
    return per_example(log_sum_exp)(weights, x).mean()


def numpy_log_sum_exp(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.log(np.exp(x @ weights.mT).sum(-1))


def numpy_softmax(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp(x @ weights.mT - numpy_log_sum_exp(weights, x)[..., None])


CASES = {
    "sum": Case(per_example(jnp.sum), lambda w, x: (x @ w.mT).sum(-1)),
    "squared norm": Case(per_example(squared_norm), lambda w, x: ((x @ w.mT) ** 2).sum(-1)),
    "log-sum-exp": Case(per_example(log_sum_exp), numpy_log_sum_exp),
    "log-sum-exp of jax": Case(per_example(jax.nn.logsumexp), numpy_log_sum_exp),
    "after a hidden layer": Case(
        lambda w, x: per_example(squared_norm)(w, jnp.tanh(x)),
        lambda w, x: ((np.tanh(x) @ w.mT) ** 2).sum(-1),
    ),
    "gradient by weights": Case(jax.grad(mean_log_sum_exp), lambda w, x: numpy_softmax(w, x).mT @ x / x.shape[-2]),
    "gradient by inputs": Case(
        lambda w, x: jax.vmap(jax.grad(lambda row: log_sum_exp(w @ row)))(x),
        lambda w, x: numpy_softmax(w, x) @ w,
    ),
}
FAULTY_SHAPES = [(3, 3), (3, 2)]


def problem(num_chains: int, num_rows: int, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Weights (chain, output, feature) and inputs (chain, row, feature), in double precision."""
    num_features, num_outputs = shape
    random = np.random.default_rng(0)
    weights = random.normal(size=(num_chains, num_outputs, num_features))
    return weights, random.normal(size=(num_chains, num_rows, num_features))


def assert_compiled_is_right(case: Case, weights: np.ndarray, x: np.ndarray, dtype: str) -> None:
    arguments = jnp.asarray(weights, dtype), jnp.asarray(x, dtype)
    eager, compiled = case.run(*arguments), jax.jit(case.run)(*arguments)
    assert_close(eager, case.reference(weights, x), dtype)
    assert_close(compiled, eager, dtype)


def assert_close(actual: ArrayLike, expected: ArrayLike, dtype: str) -> None:
    """Both are equal up to rounding, relative to the largest value."""
    scale = np.abs(np.asarray(expected)).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("shape", [*FAULTY_SHAPES, (4, 1), (30, 2)])
@pytest.mark.parametrize("name", CASES)
def test_compiled_code_equals_eager_code_and_numpy(name: str, shape: tuple[int, int]):
    weights, x = problem(1, NUM_ROWS, shape)
    assert_compiled_is_right(CASES[name], weights[0], x[0], "float32")


@pytest.mark.parametrize("name", CASES)
def test_compiled_code_is_right_for_chains(name: str):
    weights, x = problem(2, 32_769, FAULTY_SHAPES[0])
    case = CASES[name]
    assert_compiled_is_right(Case(jax.vmap(case.run), case.reference), weights, x, "float32")


@pytest.mark.parametrize("name", CASES)
def test_compiled_code_is_right_for_chains_that_share_the_data(name: str):
    weights, x = problem(4, NUM_ROWS // 4, FAULTY_SHAPES[0])
    case = CASES[name]
    assert_compiled_is_right(Case(jax.vmap(case.run, (0, None)), case.reference), weights, x[0], "float32")


@pytest.mark.parametrize("name", CASES)
def test_compiled_code_is_right_in_double_precision(name: str, x64: None):
    weights, x = problem(1, NUM_ROWS // 2, FAULTY_SHAPES[0])
    assert_compiled_is_right(CASES[name], weights[0], x[0], "float64")
