"""A canary for compilers that return wrong numbers without a word.

On CPU, jax before 0.11 hands a product followed by a reduction, the shape of a per-example log-likelihood, to a
library that gets it wrong (jax issue 39103). Measured, with 3 features, 2 or 3 outputs and 32,769 to some 45,000 rows:

- 0.10.2 is wrong for every row past 128 KiB of results (32,768 float32, 16,384 float64), whatever is reduced: up to
  a fifth of the rows, 18 % of a gradient;
- 0.9.2, 0.10.0 and 0.10.1 are wrong in the same rows where the product itself is summed or its maximum taken;
- 0.10.1 crashes where a product of 66,000 rows is summed over its rows, as the gradient of a bias does;
- `XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=-reduce`, set before the backend starts, cures all of them.

Each case compares compiled code with the same code run operation by operation, and that with float64 numpy.
"""

import os
import subprocess
import sys
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
    "maximum": Case(per_example(jnp.max), lambda w, x: (x @ w.mT).max(-1)),
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


PROBE = """
import weightscape
import jax, numpy as np
random = np.random.default_rng(0)
x, weights = random.normal(size=(40_000, 3)).astype("f"), random.normal(size=(3, 3)).astype("f")
compiled = jax.jit(jax.vmap(lambda row: (weights @ row).sum()))(x)
np.testing.assert_allclose(compiled, (x @ weights.T).sum(-1), atol=1e-4)
x, weights = random.normal(size=(70_000, 2)).astype("f"), random.normal(size=(16, 2)).astype("f")
compiled = jax.jit(lambda x: (x @ weights.T).sum(0))(x)
np.testing.assert_allclose(compiled, (x @ weights.T).sum(0), atol=1e-5 * len(x))
"""


def test_importing_weightscape_is_enough():
    """Outside these tests, where nothing but the library sets flags, the numbers are right too."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
